from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType

import pytest

from rollscope.instrument import outbox as module
from rollscope.instrument.outbox import Outbox
from rollscope.instrument.parcel import Importance, Parcel
from rollscope.instrument.sinks import Frame, Opening
from rollscope.instrument.sinks.memory import MemorySink
from rollscope.instrument.waiting import wait_until
from tests.builders import make_header

OPENING = Opening("a-run", "runs", b"\0" * 8, make_header(), {})
ORDINARY, PHASE, OWNER, VITAL = Importance


class GatedSink(MemorySink):
    """Takes a frame only when the gate is open, and says when it is asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.asked = threading.Event()

    def write(self, frame: Frame) -> None:
        self.asked.set()
        assert self.gate.wait(30)
        super().write(frame)


class FailingSink(MemorySink):
    """Fails each call as often as it is told, then works."""

    def __init__(self, error: BaseException, opens: int = 0, writes: int = 0) -> None:
        super().__init__()
        self._error, self._opens, self._writes = error, opens, writes
        self.attempts = 0

    def open(self, opening: Opening) -> None:
        self._opens -= 1
        if self._opens >= 0:
            raise self._error
        super().open(opening)

    def write(self, frame: Frame) -> None:
        self.attempts += 1
        self._writes -= 1
        if self._writes >= 0:
            raise self._error
        super().write(frame)


def parcel(data: str, importance: Importance = ORDINARY, **contents: int) -> Parcel:
    return Parcel(Frame(data.encode()), importance, contents or {"span": 1})


Start = Callable[..., Outbox]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start outboxes that retry at once; they are closed in the end."""
    monkeypatch.setattr(module, "_FIRST_RETRY_S", 0.001)
    monkeypatch.setattr(module, "_LAST_RETRY_S", 0.002)
    started: list[Outbox] = []

    def start(sink: MemorySink, limit_bytes: int = 1000) -> Outbox:
        outbox = Outbox(sink, OPENING, limit_bytes)
        outbox.start()
        started.append(outbox)
        return outbox

    yield start
    for outbox in started:
        outbox.close(10)


def kept(sink: MemorySink) -> list[str]:
    return [frame.data.decode() for frame in sink.frames]


@pytest.fixture
def gated() -> Iterator[GatedSink]:
    """Give a sink that is let go of in the end."""
    sink = GatedSink()
    yield sink
    sink.gate.set()


def block(outbox: Outbox, sink: GatedSink) -> None:
    """Let the sink hang over a first parcel."""
    outbox.put(parcel("x", VITAL))
    assert sink.asked.wait(10)


def test_frames_reach_the_sink_in_order(start: Start) -> None:
    sink = MemorySink()
    outbox = start(sink)
    for number in range(100):
        outbox.put(parcel(str(number)))
    assert outbox.wait_empty(10)
    assert kept(sink) == [str(number) for number in range(100)]
    assert sink.openings == [OPENING]
    assert outbox.unsent() == 0
    assert outbox.dropped() == {}


def test_closing_writes_what_waits_and_closes_the_sink(start: Start) -> None:
    sink = MemorySink()
    outbox = start(sink)
    outbox.put(parcel("a"))
    outbox.put(parcel("b"))
    assert outbox.close(10)
    assert kept(sink) == ["a", "b"]
    assert sink.closed


def test_a_sink_without_frames_is_never_opened(start: Start) -> None:
    sink = MemorySink()
    assert start(sink).close(10)
    assert sink.openings == []


def test_putting_does_not_wait_for_a_sink_that_hangs(start: Start, gated: GatedSink) -> None:
    outbox = start(gated)
    block(outbox, gated)
    for _ in range(100):
        outbox.put(parcel("y"))
    assert outbox.is_behind
    assert not outbox.wait_empty(0.01)
    assert outbox.unsent() == 101
    gated.gate.set()
    assert outbox.wait_empty(10)
    assert not outbox.is_behind


def test_ordinary_frames_are_dropped_first_and_owners_last(start: Start, gated: GatedSink) -> None:
    outbox = start(gated, limit_bytes=60)
    block(outbox, gated)  # one byte, which is being written and stays
    for name, importance in (
        ("o1", OWNER),
        ("p1", PHASE),
        ("s1", ORDINARY),
        ("v1", VITAL),
        ("s2", ORDINARY),
        ("p2", PHASE),
        ("o2", OWNER),
    ):
        outbox.put(parcel(name * 4, importance, **{name: 1}))
    dropped: list[str] = []
    for number in range(7):
        outbox.put(parcel("vvvvvvvv", VITAL, new=1))
        dropped += [key for key in outbox.dropped() if key not in dropped]
        assert len(dropped) == number + 1
    names = ["s1", "s2", "p1", "p2", "o1", "o2", "v1"]
    assert dropped == [f"{name}.slow_sink" for name in names]
    gated.gate.set()
    assert outbox.wait_empty(10)
    assert kept(gated) == ["x"] + ["vvvvvvvv"] * 7


def test_a_newcomer_of_least_importance_is_what_is_dropped(start: Start, gated: GatedSink) -> None:
    outbox = start(gated, limit_bytes=21)
    block(outbox, gated)
    outbox.put(parcel("o" * 10, OWNER, session=1))
    outbox.put(parcel("p" * 10, PHASE, phase=1))
    outbox.put(parcel("s" * 10, ORDINARY, span=1))
    assert outbox.dropped() == {"span.slow_sink": 1}


def test_the_bound_is_in_bytes_and_holds_at_every_moment(start: Start, gated: GatedSink) -> None:
    outbox = start(gated, limit_bytes=500)
    block(outbox, gated)
    for size in (499, 1, 250, 7, 499, 100, 100, 100, 300):
        outbox.put(parcel("z" * size))
        waiting = sum(len(parcel.frame.data) for parcel in outbox._waiting)
        assert waiting + 1 <= 500
        assert outbox._bytes == waiting + 1


def test_a_parcel_larger_than_the_bound_is_dropped_and_counted(start: Start) -> None:
    sink = MemorySink()
    outbox = start(sink, limit_bytes=10)
    outbox.put(parcel("z" * 11, OWNER, session=3, task=1))
    outbox.put(parcel("small"))
    assert outbox.wait_empty(10)
    assert outbox.dropped() == {"session.slow_sink": 3, "task.slow_sink": 1}
    assert kept(sink) == ["small"]


def test_the_bound_is_free_again_once_the_sink_has_caught_up(
    start: Start, gated: GatedSink
) -> None:
    outbox = start(gated, limit_bytes=100)
    block(outbox, gated)
    outbox.put(parcel("a" * 90))
    gated.gate.set()
    assert outbox.wait_empty(10)
    for _ in range(5):
        outbox.put(parcel("b" * 90))
        assert outbox.wait_empty(10)
    assert outbox.dropped() == {}


def test_drops_are_told_once(
    start: Start, gated: GatedSink, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = start(gated, limit_bytes=1)
    block(outbox, gated)
    for _ in range(5):
        outbox.put(parcel("zz"))
    assert outbox.dropped() == {"span.slow_sink": 5}
    assert [message for message in caplog.messages if "drops" in message] == caplog.messages
    assert len(caplog.messages) == 1


def test_records_lost_before_they_were_packed_are_counted_too(start: Start) -> None:
    outbox = start(MemorySink())
    outbox.count_drop({"span": 2}, "not_encodable")
    outbox.count_drop({"span": 1, "phase": 1}, "not_encodable")
    assert outbox.dropped() == {"span.not_encodable": 3, "phase.not_encodable": 1}


ERRORS = [
    OSError(28, "No space left on device"),
    RuntimeError("odd"),
    KeyboardInterrupt(),
    SystemExit(1),
    GeneratorExit(),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_failed_write_is_tried_again_with_nothing_lost_or_doubled(
    start: Start, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    sink = FailingSink(error, writes=5)
    outbox = start(sink)
    for data in "abc":
        outbox.put(parcel(data))
    assert outbox.wait_empty(10)
    assert kept(sink) == ["a", "b", "c"]
    assert sink.attempts == 8
    assert len(caplog.messages) == 1
    assert "'a-run'" in caplog.messages[0]
    assert type(error).__name__ in caplog.messages[0]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_failed_open_is_tried_again(start: Start, error: BaseException) -> None:
    sink = FailingSink(error, opens=3)
    outbox = start(sink)
    outbox.put(parcel("a"))
    assert outbox.wait_empty(10)
    assert kept(sink) == ["a"]
    assert sink.openings == [OPENING]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_sink_that_never_works_does_not_keep_us_from_ending(
    start: Start, error: BaseException
) -> None:
    sink = FailingSink(error, writes=10**9)
    outbox = start(sink)
    outbox.put(parcel("a", span=3))
    outbox.put(parcel("b", span=4))
    assert outbox.close(10)
    assert outbox.unsent() == 7
    assert sink.closed
    assert not outbox.wait_empty(10)


def test_a_sink_that_could_not_be_opened_is_not_closed(start: Start) -> None:
    sink = FailingSink(OSError(), opens=10**9)
    outbox = start(sink)
    outbox.put(parcel("a"))
    assert outbox.close(10)
    assert not sink.closed
    assert outbox.unsent() == 1


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_sink_that_fails_to_close_is_told_and_let_go(
    start: Start, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Unclosable(MemorySink):
        def close(self) -> None:
            raise error

    sink = Unclosable()
    outbox = start(sink)
    outbox.put(parcel("a"))
    assert outbox.close(10)
    assert kept(sink) == ["a"]
    assert outbox.unsent() == 0
    assert len(caplog.messages) == 1


def test_closing_does_not_wait_longer_than_asked(start: Start, gated: GatedSink) -> None:
    outbox = start(gated)
    block(outbox, gated)
    assert not outbox.close(0.01)
    assert outbox.unsent() == 1
    gated.gate.set()
    assert outbox.close(10)


def test_retries_wait_longer_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def look(is_so: Callable[[], bool], timeout_s: float) -> bool:
        if threading.current_thread().name != "rollscope-sink":
            return wait_until(is_so, timeout_s)
        waits.append(timeout_s)
        return is_so()

    monkeypatch.setattr("rollscope.instrument.outbox.wait_until", look)
    sink = FailingSink(OSError(), writes=9)
    outbox = Outbox(sink, OPENING, 1000)
    outbox.start()
    outbox.put(parcel("a"))
    assert outbox.wait_empty(10)
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    outbox.put(parcel("b"))
    assert outbox.close(10)
    assert kept(sink) == ["a", "b"]


def test_an_end_may_be_interrupted_by_another_one_at_every_line(start: Start) -> None:
    # A signal handler that ends the recorder may run inside of a call that ends it.
    for line in range(1, 15):
        outbox = start(MemorySink())
        outbox.put(parcel("a"))
        interruption = Interruption(line, partial(outbox.close, 5))
        sys.settrace(interruption)
        try:
            assert outbox.close(10)
        finally:
            sys.settrace(None)
        assert all(interruption.results)


class Interruption:
    """A trace function that calls something at the n-th line that is run."""

    def __init__(self, line: int, call: Callable[[], bool]) -> None:
        self._lines_left = line
        self._call = call
        self.results: list[bool] = []

    def __call__(self, frame: FrameType, event: str, argument: object) -> Interruption:
        if event == "line":
            self._lines_left -= 1
            if self._lines_left == 0:
                sys.settrace(None)
                self.results.append(self._call())
        return self
