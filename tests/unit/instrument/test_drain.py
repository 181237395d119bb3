from __future__ import annotations

from contextlib import ExitStack
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.config import Settings
from rollscope.instrument.binding import bind_span_types
from rollscope.instrument.buffers import HOSTED, Buffers, Host
from rollscope.instrument.calls import COUNT, GAUGE
from rollscope.instrument.clock import WallLine
from rollscope.instrument.drain import Drain
from rollscope.instrument.encoder import encode_rows
from rollscope.instrument.outbox import Outbox
from rollscope.instrument.parcel import Importance, Parcel
from rollscope.instrument.sinks import NullSink, Opening
from rollscope.instrument.spans import NOOP, Span
from rollscope.instrument.stacks import SpanStack
from rollscope.model.batch import Batch, Fact, SpanColumns, decode_batch
from rollscope.model.frames import scan_frames
from rollscope.model.kinds import Kind, Status
from rollscope.model.records import (
    DropRecord,
    EndRecord,
    FactRecord,
    HeartbeatRecord,
    MetricRecord,
    PayloadRecord,
    ProcessRecord,
    Record,
    SpanRecord,
    StackRecord,
)
from rollscope.testing import FakeClock, SequentialIds
from tests.builders import PROCESS, make_batch, make_header, make_row, records_of

if TYPE_CHECKING:
    from rollscope.instrument.hosted import HostedSession


class CollectingOutbox(Outbox):
    """Keeps parcels and lets a test say how far behind the sink is."""

    behind = False

    def __init__(self) -> None:
        super().__init__(NullSink(), Opening("r", "d", PROCESS, make_header(), {}), 10**9)
        self.parcels: list[Parcel] = []

    @property
    def is_behind(self) -> bool:
        return self.behind

    def put(self, parcel: Parcel) -> None:
        self.parcels.append(parcel)


class Bench:
    """A drain with everything around it in the test's hands."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        self.buffers = Buffers()
        self.outbox = CollectingOutbox()
        current: ContextVar[Span] = ContextVar("bench", default=NOOP)
        self.types = bind_span_types(self.buffers, current, SequentialIds(), self.clock)
        wall = WallLine(self.clock)
        self.watched: list[int] = []
        self.drain = Drain(
            self.buffers,
            self.outbox,
            Settings(**settings),
            self.clock,
            wall,
            PROCESS,
            make_header(),
            self.watched.extend,
        )

    def open(self, name: str, **attrs: Any) -> Span:
        return self.types.new_span(name, "misc", attrs).__enter__()

    def close(self, span: Span) -> None:
        span.__exit__(None, None, None)

    def run(self, seconds: float = 0.2, **arguments: Any) -> list[Record]:
        """Let time pass, drain, and read what was packed."""
        self.clock.advance(seconds)
        before = len(self.outbox.parcels)
        self.drain.run(**arguments)
        return records_of(*self.batches()[before:])

    def batches(self) -> list[Batch]:
        frames = [parcel.frame.data for parcel in self.outbox.parcels]
        return [decode_batch(body) for frame in frames for body in scan_frames(frame).bodies]


def spans_in(records: list[Record]) -> list[tuple[str, Status]]:
    return [(record.name, record.status) for record in records if isinstance(record, SpanRecord)]


def lists_in(records: list[Record]) -> list[list[str] | None]:
    return [record.open_spans for record in records if isinstance(record, HeartbeatRecord)]


def test_the_first_drain_says_who_records() -> None:
    bench = Bench()
    assert isinstance(bench.run()[0], ProcessRecord)
    assert bench.run() == []


def test_frames_are_numbered_without_gaps() -> None:
    bench = Bench(payloads=True)
    for _ in range(30):
        bench.close(bench.open("x"))
        bench.buffers.payloads.append((b"t" * 16, 1, 1, "p", "text"))
        bench.buffers.facts.append((b"t" * 16, 1, 1, {"a": 1}))
        bench.run(0.5)
    numbers = [batch.number for batch in bench.batches() if not batch.payloads]
    assert numbers == list(range(len(numbers)))
    apart = [batch.number for batch in bench.batches() if batch.payloads]
    assert apart == [-1 - place for place in range(30)]


def test_spans_found_open_are_watched_once_in_order_of_their_beginning() -> None:
    bench = Bench()
    first, second = bench.open("first"), bench.open("second")
    bench.close(bench.open("short"))
    bench.run()
    third = bench.open("third")
    bench.run()
    bench.run()
    assert bench.watched == [first.id, second.id, third.id]


def test_a_short_span_costs_one_record() -> None:
    bench = Bench()
    bench.close(bench.open("short"))
    assert spans_in(bench.run()) == [("short", Status.OK)]
    assert spans_in(bench.run()) == []


def test_an_open_span_is_announced_exactly_once() -> None:
    bench = Bench()
    outer = bench.open("outer", a=1)
    assert spans_in(bench.run()) == [("outer", Status.OPEN)]
    inner = bench.open("inner")
    assert spans_in(bench.run()) == [("inner", Status.OPEN)]
    for _ in range(50):
        assert spans_in(bench.run()) == []
    bench.close(inner)
    assert spans_in(bench.run()) == [("inner", Status.OK)]
    bench.close(outer)
    assert spans_in(bench.run()) == [("outer", Status.OK)]


def test_an_announcement_holds_what_is_known_by_then() -> None:
    bench = Bench()
    session = bench.types.new_session(3, 12, "g", 41, {"early": 1}).__enter__()
    session.set(later=2)
    (record,) = (record for record in bench.run() if isinstance(record, SpanRecord))
    assert (record.kind, record.sample, record.version_start) == (Kind.SESSION, 3, 12)
    assert (record.group, record.step, record.status) == ("g", 41, Status.OPEN)
    assert record.attrs == {"early": 1, "later": 2}
    assert record.end_ns is None
    session.set(after=3)
    session.__exit__(None, None, None)
    (record,) = (record for record in bench.run() if isinstance(record, SpanRecord))
    assert record.attrs == {"early": 1, "later": 2, "after": 3}


def test_a_span_that_is_being_entered_is_announced_at_the_next_drain() -> None:
    bench = Bench()
    span = bench.types.new_phase("slow to start", {})
    span.__enter__()
    start_ns = span.start_ns
    del span.start_ns  # the writer came between the two last lines of __enter__
    assert spans_in(bench.run()) == []
    span.start_ns = start_ns
    assert spans_in(bench.run()) == [("slow to start", Status.OPEN)]


def test_thousands_of_open_spans_are_announced_in_frames_of_bounded_size() -> None:
    bench = Bench()
    for number in range(2500):
        bench.open(f"s{number % 7}")
    assert len(spans_in(bench.run())) == 2500
    sizes = [len(batch.spans.what) for batch in bench.batches() if batch.spans is not None]
    assert sizes == [1000, 1000, 500]


def test_rows_are_packed_in_slices_and_in_order() -> None:
    bench = Bench()
    for number in range(2500):
        bench.types.add_event(f"e{number}", {})
    names = [getattr(record, "name", None) for record in bench.run()]
    assert [name for name in names if name] == [f"e{number}" for number in range(2500)]
    sizes = [len(batch.spans.what) for batch in bench.batches() if batch.spans is not None]
    assert sizes == [1000, 1000, 500]
    assert bench.buffers.rows == []


def test_few_rows_are_packed_in_small_slices_so_that_nobody_waits_for_the_lock() -> None:
    bench = Bench()
    for number in range(500):
        bench.types.add_event(f"e{number}", {})
    bench.run()
    sizes = [len(batch.spans.what) for batch in bench.batches() if batch.spans is not None]
    assert sizes == [200, 200, 100]


def test_the_writer_steps_aside_between_any_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.run()
    packed_before: list[int] = []
    monkeypatch.setattr(
        "rollscope.instrument.drain.step_aside",
        lambda: packed_before.append(len(bench.outbox.parcels) - 1),
    )
    for number in range(2500):
        bench.types.add_event(f"e{number}", {})
    bench.run()
    assert packed_before == [1, 2]


def test_rows_with_very_large_attributes_are_split_over_frames() -> None:
    bench = Bench(attr_max_bytes=1024 * 1024)
    for number in range(40):
        bench.close(bench.open(f"s{number}", text="x" * 1024 * 1024))
    assert len(spans_in(bench.run())) == 40
    assert max(len(parcel.frame.data) for parcel in bench.outbox.parcels) < 10 * 1024 * 1024


def test_a_row_that_fits_into_no_frame_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench(attr_max_bytes=1024 * 1024)
    text = "x" * 1024 * 1024
    bench.close(bench.open("monster", **{f"a{number}": text for number in range(70)}))
    bench.close(bench.open("fine"))
    assert spans_in(bench.run()) == [("fine", Status.OK)]
    assert bench.outbox.dropped() == {"span.too_large": 1}
    assert len(caplog.messages) == 1


# Heart-beats


def test_a_heartbeat_comes_once_in_a_while() -> None:
    bench = Bench(heartbeat_s=1.0)
    beats = [len(lists_in(bench.run(0.2))) for _ in range(50)]
    assert sum(beats) == 10
    assert max(beats) == 1


def test_every_tenth_heartbeat_lists_the_open_spans_and_repeats_the_header() -> None:
    bench = Bench(heartbeat_s=1.0)
    first, second = bench.open("a"), bench.open("b")
    ids = sorted(f"{span.id:016x}" for span in (first, second))
    bench.run(0.1)
    for _ in range(3):
        for beat in range(10):
            records = bench.run(1.0)
            assert lists_in(records) == [ids if beat == 0 else None]
            assert any(isinstance(record, ProcessRecord) for record in records) is (beat == 0)
    bench.close(first)
    assert lists_in(bench.run(1.0)) == [ids[1:]]


def test_a_list_of_open_spans_names_only_what_was_announced() -> None:
    bench = Bench(heartbeat_s=1.0)
    for number in range(5):
        bench.open(f"s{number}")
    records = bench.run(1.0)
    announced = [record.span_id for record in records if isinstance(record, SpanRecord)]
    assert lists_in(records) == [sorted(announced)]


def test_the_last_drain_lists_what_is_left_open_and_ends_the_log() -> None:
    bench = Bench(heartbeat_s=600)
    span = bench.open("left open")
    *_, heartbeat, end = bench.run(0.0, end="shutdown")
    assert isinstance(heartbeat, HeartbeatRecord)
    assert heartbeat.open_spans == [f"{span.id:016x}"]
    assert isinstance(end, EndRecord)
    assert end.why == "shutdown"


# Drops


def test_drops_are_reported_with_the_next_heartbeat_and_only_when_they_grew() -> None:
    bench = Bench(heartbeat_s=1.0)
    bench.run(1.0)
    bench.outbox.count_drop({"span": 3}, "slow_sink")
    (drops,) = (record for record in bench.run(1.0) if isinstance(record, DropRecord))
    assert drops.counts == {"span.slow_sink": 3}
    assert not any(isinstance(record, DropRecord) for record in bench.run(1.0))
    bench.outbox.count_drop({"span": 1, "phase": 1}, "slow_sink")
    (drops,) = (record for record in bench.run(1.0) if isinstance(record, DropRecord))
    assert drops.counts == {"span.slow_sink": 4, "phase.slow_sink": 1}


def test_the_last_drain_reports_drops_whatever_the_time() -> None:
    bench = Bench(heartbeat_s=600)
    bench.outbox.count_drop({"span": 3}, "slow_sink")
    records = bench.run(0.0, end="exit")
    assert any(isinstance(record, DropRecord) for record in records)


def test_frames_are_sorted_by_importance_only_while_the_sink_is_behind() -> None:
    bench = Bench()

    def record_some() -> None:
        types = bench.types
        spans = [
            types.new_step(1, None, {}),
            types.new_task("t", None, None, {}),
            types.new_session(0, None, None, None, {}),
            types.new_phase("p", {}),
            types.new_state("l", "lane", {}),
            types.new_span("s", "io", {}),
        ]
        with ExitStack() as stack:
            for span in spans:
                stack.enter_context(span)
            types.add_event("e", {})

    record_some()
    bench.drain.run()
    _, mixed = bench.outbox.parcels
    assert mixed.importance is Importance.OWNER
    assert mixed.contents == {
        "event": 1,
        "span": 1,
        "phase": 1,
        "state": 1,
        "session": 1,
        "task": 1,
        "step": 1,
    }
    bench.outbox.behind = True
    record_some()
    bench.drain.run()
    by_importance = {parcel.importance: parcel.contents for parcel in bench.outbox.parcels[2:]}
    assert by_importance == {
        Importance.ORDINARY: {"event": 1, "span": 1, "state": 1},
        Importance.PHASE: {"phase": 1},
        Importance.OWNER: {"session": 1, "task": 1, "step": 1},
    }


@pytest.mark.parametrize("room", range(100_000, 165_000, 3_000))
def test_a_session_does_not_share_a_frame_that_may_be_dropped(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    bench.run()
    monkeypatch.setattr(bench.outbox, "room_bytes", lambda: room)
    for _ in range(150):
        bench.close(bench.open("s", text="x" * 1000))
    with bench.types.new_session(0, None, None, None, {}):
        pass
    before = len(bench.outbox.parcels)
    bench.run()
    (whole,) = [
        parcel for parcel in bench.outbox.parcels[before:] if parcel.importance is Importance.OWNER
    ]
    assert whole.contents["session"] == 1
    assert whole.contents == {"session": 1} or len(whole.frame.data) < room


def test_frames_are_small_where_little_may_wait() -> None:
    bench = Bench(buffer_mb=1)
    for _ in range(2_000):
        bench.close(bench.open("s", text="x" * 1000))
    bench.run()
    sizes = [len(parcel.frame.data) for parcel in bench.outbox.parcels]
    assert sum(sizes) > 2_000_000
    assert max(sizes) < 200_000


def test_a_full_drain_says_that_all_open_spans_are_announced() -> None:
    bench = Bench()
    bench.run()
    outer = bench.open("outer")
    bench.close(bench.open("inner"))
    bench.drain.run_rows()
    assert not any(batch.drained for batch in bench.batches())
    bench.run()
    *_, announced = [batch for batch in bench.batches() if batch.spans is not None]
    assert announced.spans is not None
    assert announced.spans.names == ["outer"]
    assert announced.drained
    frames = len(bench.outbox.parcels)
    bench.run()
    assert not any(batch.drained for batch in bench.batches()[frames:])  # nothing to say
    bench.close(outer)


def test_rows_that_cannot_be_encoded_are_counted_and_the_others_come_through(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")
    bench = Bench()
    bench.buffers.rows.extend(make_row(span_id=2**70, kind=Kind.PHASE))  # no such id can be
    bench.drain.run()
    bench.close(bench.open("fine"))
    assert spans_in(bench.run()) == [("fine", Status.OK)]
    assert bench.outbox.dropped() == {"phase.not_encodable": 1}
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    ("waiting", "kept"),
    [
        (100, {Kind.SPAN, Kind.STATE, Kind.PHASE, Kind.SESSION}),
        (101, {Kind.PHASE, Kind.SESSION}),
        (149, {Kind.PHASE, Kind.SESSION}),
        (151, {Kind.SESSION}),
        (201, set()),
    ],
)
def test_rows_that_come_too_fast_are_given_up_by_their_importance(
    monkeypatch: pytest.MonkeyPatch, waiting: int, kept: set[Kind]
) -> None:
    from rollscope.instrument import drain as module

    monkeypatch.setattr(module, "_LEAST_ROWS", 100)
    bench = Bench()
    monkeypatch.setattr(bench.outbox, "room_bytes", lambda: 0)
    kinds = [Kind.SPAN, Kind.STATE, Kind.PHASE, Kind.SESSION]
    rows = [entry for n, kind in enumerate(kinds) for entry in make_row(n + 1, kind=kind)]
    bench.buffers.rows += make_row(99) * waiting
    left = bench.drain._thin_out(rows)
    found = records_of(make_batch(spans=encode_rows(left, 4096)))
    assert {span.kind for span in found if isinstance(span, SpanRecord)} == kept
    dropped = {f"{kind}.overload": 1 for kind in kinds if kind not in kept}
    assert bench.outbox.dropped() == dropped


# Sessions of a runner


def leave(bench: Bench, count: int) -> None:
    """Leave sessions to the writer: the first entry of each is its number."""
    for number in range(1, count + 1):
        bench.buffers.hosted.extend((number,) * HOSTED)


def announce_none(spans: list[Any]) -> tuple[None, list[Any]]:
    return None, spans


def learn_nothing(late: list[Any], at_ns: int) -> list[Fact]:
    return []


def encode_numbered(hosted: list[Any]) -> SpanColumns:
    rows = [make_row(number, kind=Kind.SESSION) for number in hosted[::HOSTED]]
    return encode_rows([entry for row in rows for entry in row], 4096)


def test_sessions_that_a_runner_gives_are_written_in_slices_and_in_order() -> None:
    bench = Bench()
    bench.buffers.host = Host(encode_numbered, announce_none, learn_nothing)
    leave(bench, 2500)
    found = [record for record in bench.run() if isinstance(record, SpanRecord)]
    assert [int(record.span_id, 16) for record in found] == list(range(1, 2501))
    sizes = [len(batch.spans.what) for batch in bench.batches() if batch.spans is not None]
    assert sizes == [1000, 1000, 500]
    assert bench.batches()[-1].drained


def test_sessions_that_cannot_be_given_are_counted_and_the_others_come_through(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(hosted: list[Any]) -> None:
        raise ValueError("odd")

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    bench = Bench()
    bench.buffers.host = Host(fail, announce_none, learn_nothing)
    leave(bench, 3)
    bench.close(bench.open("fine"))
    assert spans_in(bench.run()) == [("fine", Status.OK)]
    assert bench.outbox.dropped() == {"session.not_encodable": 3}
    assert len(caplog.messages) == 1


def begin_hosted(bench: Bench, count: int) -> list[HostedSession]:
    def describe(span: HostedSession) -> Any:
        return f"item/{span.number}", 0, None, {}, 1

    def begin(number: int) -> HostedSession:
        return bench.types.hosted.begin("fn", number, None, None, 5, describe, None)

    return [copy_context().run(begin, number) for number in range(count)]


def announce_even(spans: list[Any]) -> tuple[SpanColumns, list[Any]]:
    even = [span for span in spans if span.number % 2 == 0]
    rows = [make_row(span.id, "many", status=Status.OPEN) for span in even]
    columns = encode_rows([entry for row in rows for entry in row], 4096)
    return columns, [span for span in spans if span.number % 2]


def test_open_sessions_of_a_runner_are_announced_together_or_one_by_one_and_once() -> None:
    bench = Bench()
    bench.buffers.host = Host(encode_numbered, announce_even, learn_nothing)
    sessions = begin_hosted(bench, 5)
    sessions[4].is_over = True
    found = spans_in(bench.run())
    assert sorted(found) == [("many", Status.OPEN)] * 2 + [("session", Status.OPEN)] * 2
    assert bench.batches()[-1].drained
    bench.open("later")
    assert spans_in(bench.run()) == [("later", Status.OPEN)]


def test_open_sessions_that_cannot_be_announced_together_are_announced_one_by_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(spans: list[Any]) -> tuple[None, list[Any]]:
        raise ValueError("odd")

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    bench = Bench()
    bench.buffers.host = Host(encode_numbered, fail, learn_nothing)
    begin_hosted(bench, 2)
    assert spans_in(bench.run()) == [("session", Status.OPEN)] * 2
    assert len(caplog.messages) == 1


def learn_numbers(late: list[Any], at_ns: int) -> list[Fact]:
    return [Fact(bytes(16), number, at_ns, {"total_s": 1.0}) for number in late[::HOSTED]]


def facts_in(bench: Bench) -> list[int]:
    found = [record for record in bench.run() if isinstance(record, FactRecord)]
    return [int(record.span_id, 16) for record in found]


def test_what_a_runner_learns_of_sessions_later_is_written_the_latest_of_it_if_it_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rollscope.instrument import taking as module

    bench = Bench()
    bench.buffers.host = Host(encode_numbered, announce_none, learn_numbers)
    for number in range(1, 4):
        bench.buffers.late.extend((number,) * HOSTED)
    assert facts_in(bench) == [1, 2, 3]
    assert facts_in(bench) == []
    monkeypatch.setitem(module._MOST_AT_ONCE, "fact", 2)
    for number in range(1, 4):
        bench.buffers.late.extend((number,) * HOSTED)
    assert facts_in(bench) == [2, 3]
    assert bench.outbox.dropped() == {"fact.overload": 1}


def test_what_a_runner_cannot_say_later_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(late: list[Any], at_ns: int) -> list[Fact]:
        raise ValueError("odd")

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    bench = Bench()
    bench.buffers.host = Host(encode_numbered, announce_none, fail)
    bench.buffers.late.extend((1,) * 3 * HOSTED)
    bench.close(bench.open("fine"))
    assert spans_in(bench.run()) == [("fine", Status.OK)]
    assert bench.outbox.dropped() == {"fact.not_encodable": 3}
    assert len(caplog.messages) == 1


def test_sessions_that_come_too_fast_are_given_up_from_the_oldest_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rollscope.instrument import drain as module

    monkeypatch.setattr(module, "_LEAST_ROWS", 10)
    bench = Bench()
    bench.buffers.host = Host(encode_numbered, announce_none, learn_nothing)
    monkeypatch.setattr(bench.outbox, "room_bytes", lambda: 0)
    leave(bench, 25)
    found = [record for record in bench.run() if isinstance(record, SpanRecord)]
    assert [int(record.span_id, 16) for record in found] == list(range(6, 26))
    assert bench.outbox.dropped() == {"session.overload": 5}


def test_where_nothing_has_changed_only_the_heart_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(heartbeat_s=1.0)
    parked = bench.open("parked")
    assert spans_in(bench.run()) == [("parked", Status.OPEN)]
    with monkeypatch.context() as patched:
        patched.setattr(bench.buffers, "opened_since", None)  # nobody looks through what is open
        assert bench.run() == []
        bench.buffers.samples.extend((COUNT, "lag", 1, {}))
        assert [record.name for record in metrics_in(bench.run())] == ["lag"]
        assert lists_in(bench.run(1.0)) != []
    bench.close(parked)
    bench.open("another")
    assert spans_in(bench.run()) == [("parked", Status.OK), ("another", Status.OPEN)]


# Facts, metrics, payloads, stacks


def test_facts_are_cleaned_and_written() -> None:
    bench = Bench()
    bench.buffers.facts.append((b"t" * 16, 5, 10, {"reward": 0.5, "odd": object()}))
    (fact,) = (record for record in bench.run() if isinstance(record, FactRecord))
    assert fact.facts == {"reward": 0.5, "odd": "<builtins.object>"}
    assert bench.outbox.parcels[-1].importance is Importance.OWNER
    assert bench.outbox.parcels[-1].contents == {"fact": 1}


def test_stacks_are_written_along() -> None:
    bench = Bench()
    stacks = [SpanStack(7, "Task-1", ["a.py:1 f"])]
    (stack,) = (record for record in bench.run(stacks=stacks) if isinstance(record, StackRecord))
    assert (stack.span_id, stack.task, stack.frames) == (f"{7:016x}", "Task-1", ["a.py:1 f"])


def test_thousands_of_facts_stacks_and_metrics_are_spread_over_frames() -> None:
    bench = Bench(metric_series=5000)
    bench.buffers.facts += [(b"t" * 16, 5, 10, {"a": n}) for n in range(2500)]
    for n in range(2500):
        bench.buffers.samples.extend((GAUGE, f"g{n}", n, {}))
    records = bench.run(stacks=[SpanStack(n, "t", []) for n in range(1, 2501)])
    assert len(records) == 1 + 3 * 2500
    for batch in bench.batches():
        assert len(batch.facts) + len(batch.metrics) + len(batch.stacks) <= 1000


def metrics_in(records: list[Record]) -> list[MetricRecord]:
    return [record for record in records if isinstance(record, MetricRecord)]


def test_a_metric_is_written_at_once_and_then_when_its_time_has_come() -> None:
    bench = Bench(metric_s=1.0)
    values = []
    for _ in range(12):
        bench.buffers.samples.extend((COUNT, "n", 1, {}))
        values.append([metric.value for metric in metrics_in(bench.run())])
    assert values == [[1], [], [], [], [], [5], [], [], [], [], [5], []]
    bench.buffers.samples.extend((COUNT, "n", 1, {}))
    assert [metric.value for metric in metrics_in(bench.run(is_flush=True))] == [2]


def test_what_is_left_of_a_metric_is_written_though_nothing_else_happens() -> None:
    bench = Bench(metric_s=1.0)
    for _ in range(2):
        bench.buffers.samples.extend((COUNT, "n", 1, {}))
        bench.run()
    assert [metric.value for _ in range(5) for metric in metrics_in(bench.run())] == [1]


def test_the_end_writes_metrics_that_are_not_due() -> None:
    bench = Bench(metric_s=60)
    for _ in range(3):
        bench.buffers.samples.extend((COUNT, "n", 1, {}))
        bench.run()
    assert [metric.value for metric in metrics_in(bench.run(end="shutdown"))] == [2]


def test_between_drains_metrics_are_added_up_and_not_written() -> None:
    bench = Bench()
    bench.run()
    bench.buffers.samples.extend((COUNT, "n", 1, {}))
    frames = len(bench.outbox.parcels)
    bench.drain.run_rows()
    assert (bench.buffers.samples, len(bench.outbox.parcels)) == ([], frames)
    assert [metric.value for metric in metrics_in(bench.run())] == [1]


def test_each_step_within_one_drain_keeps_its_own_metrics() -> None:
    bench = Bench()
    for number in (4, 5):
        with bench.types.new_step(number, None, {}):
            bench.clock.advance(0.01)
            bench.buffers.samples.extend((GAUGE, "loss", number / 10, {}))
    bench.buffers.samples.extend((GAUGE, "loss", 9.0, {}))
    found = metrics_in(bench.run())
    assert [(metric.step, metric.value) for metric in found] == [(4, 0.4), (5, 0.5), (None, 9.0)]
    times = [metric.time_ns for metric in found]
    assert times[1] - times[0] == 10_000_000
    assert times == sorted(set(times))


def test_payloads_go_into_frames_of_their_own() -> None:
    bench = Bench()
    bench.buffers.payloads.append((b"t" * 16, 5, 10, "messages", [{"role": "user"}]))
    (payload,) = (record for record in bench.run() if isinstance(record, PayloadRecord))
    assert (payload.name, payload.text, payload.cut) == ("messages", '[{"role":"user"}]', False)
    assert [parcel.frame.is_payload for parcel in bench.outbox.parcels] == [False, True]
    assert bench.outbox.parcels[-1].importance is Importance.ORDINARY


def test_many_large_payloads_are_spread_over_frames() -> None:
    bench = Bench(payload_max_bytes=1024 * 1024)
    for _ in range(20):
        bench.buffers.payloads.append((b"t" * 16, 5, 10, "text", "x" * 1_000_000))
    assert sum(isinstance(record, PayloadRecord) for record in bench.run()) == 20
    assert max(len(parcel.frame.data) for parcel in bench.outbox.parcels) < 10 * 1024 * 1024
