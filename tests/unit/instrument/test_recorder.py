from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.instrument.sinks import Frame
from rollscope.instrument.sinks.memory import MemorySink
from rollscope.model.kinds import Status
from rollscope.model.records import EndRecord, HeartbeatRecord, SpanRecord
from rollscope.testing import FakeClock, capture

if TYPE_CHECKING:
    from collections.abc import Iterator


class GatedSink(MemorySink):
    """Hangs until the gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def write(self, frame: Frame) -> None:
        self.gate.wait(30)
        super().write(frame)


@pytest.fixture
def gated() -> Iterator[GatedSink]:
    sink = GatedSink()
    yield sink
    sink.gate.set()


def test_everything_is_written_when_recording_stops() -> None:
    sink = MemorySink()
    tracer = rs.Tracer(sink=sink, drain_s=60)
    for number in range(500):
        with tracer.span(f"s{number}"):
            pass
    assert tracer.shutdown()
    assert sink.closed
    assert sum(frame.data.count(b"s499") for frame in sink.frames) == 1


def test_the_last_frame_says_why_the_log_ends() -> None:
    with capture() as run:
        rs.event("e")
        sink = run.sink
        run.tracer.shutdown(why="because")
        end = run.records()[-1]
    assert isinstance(end, EndRecord)
    assert end.why == "because"
    assert sink.closed


def test_a_span_left_open_at_the_end_is_announced_and_listed() -> None:
    with capture(clock=FakeClock()) as run:
        span = rs.span("open").__enter__()
        run.tracer.shutdown()
        records = run.records()
    announced = [r for r in records if isinstance(r, SpanRecord)]
    assert [(r.name, r.status) for r in announced] == [("open", Status.OPEN)]
    last = [r for r in records if isinstance(r, HeartbeatRecord)][-1]
    assert last.open_spans == [f"{span.id:016x}"]


def test_flushing_a_sink_that_hangs_gives_up_in_time(gated: GatedSink) -> None:
    with rs.Tracer(sink=gated) as tracer:
        tracer.event("e")
        assert not tracer.flush(timeout_s=0.05)
        gated.gate.set()
        assert tracer.flush(timeout_s=30)


def test_stopping_with_a_sink_that_hangs_gives_up_in_time_and_tells(
    gated: GatedSink, caplog: pytest.LogCaptureFixture
) -> None:
    tracer = rs.Tracer(sink=gated, run="stuck")
    for _ in range(3):
        tracer.event("e")
    assert not tracer.shutdown(timeout_s=0.1)
    assert not tracer.enabled()
    (message,) = caplog.messages
    assert "could not write the last 3 records of run 'stuck'" in message


def test_the_program_does_not_wait_for_a_sink_that_hangs(gated: GatedSink) -> None:
    with rs.Tracer(sink=gated, drain_s=0.01) as tracer:
        for _ in range(20_000):
            with tracer.span("s"):
                pass
        gated.gate.set()
        assert tracer.flush(30)


def test_many_callers_may_flush_at_once() -> None:
    with capture() as run:
        results: list[bool] = []

        def work(number: int) -> None:
            with rs.span(f"s{number}"):
                pass
            results.append(rs.flush())

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [True] * 8
        assert len(run.spans()) == 8


def test_a_fault_in_one_drain_does_not_end_the_writing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from rollscope.instrument.announcing import Announcer

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    faults = [RuntimeError("once"), SystemExit(1), MemoryError()]
    announce = Announcer.announce

    def fail_at_first(announcer: Announcer) -> list[object]:
        if faults:
            raise faults.pop()
        return announce(announcer)

    monkeypatch.setattr(Announcer, "announce", fail_at_first)
    with capture() as run:
        for number in range(4):
            with rs.span(f"s{number}"):
                rs.flush()
        assert [span.name for span in run.spans()] == ["s0", "s1", "s2", "s3"]
    assert not faults
    assert len(caplog.messages) == 1


def test_drops_of_a_slow_sink_reach_the_run(gated: GatedSink) -> None:
    from rollscope.store.fold import fold
    from rollscope.testing import Capture

    tracer = rs.Tracer(sink=gated, buffer_mb=1, drain_s=0.01)
    text = "x" * 1000
    for _ in range(5000):
        with tracer.span("s", text=text):
            pass
    with tracer.session():
        pass
    tracer.flush(0.5)
    gated.gate.set()
    assert tracer.shutdown(30)
    folded = fold(Capture(tracer, gated).records())
    (counts,) = folded.drops.values()
    lost = sum(number for what, number in counts.items() if what.startswith("span."))
    assert lost > 0
    names = [span.name for span in folded.spans.values()]
    assert names.count("s") > 0
    assert names.count("s") + lost == 5000
    assert "session" in names


class HoldingClock(FakeClock):
    """Holds the writer, from when it is told to until the gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.is_holding = False
        self.reached, self.gate = threading.Event(), threading.Event()

    def mono_ns(self) -> int:
        if self.is_holding and threading.current_thread() is not threading.main_thread():
            self.reached.set()
            self.gate.wait(30)
        return super().mono_ns()


def test_stopping_before_the_writer_is_done_says_so(caplog: pytest.LogCaptureFixture) -> None:
    clock = HoldingClock()
    tracer = rs.Tracer(run="r", sink=MemorySink(), clock=clock, drain_s=0.02)
    clock.is_holding = True
    assert clock.reached.wait(30)
    for _ in range(3):
        with tracer.span("late"):
            tracer.count("calls")
    assert not tracer.shutdown(timeout_s=0.05)
    clock.gate.set()
    (sentence,) = [record.getMessage() for record in caplog.records]
    assert sentence == "Rollscope could not write the last 6 records of run 'r' in 0.05 s"
