from __future__ import annotations

import msgspec
import pytest

from rollscope.errors import FrameError
from rollscope.model.batch import Fact, Heartbeat, Metric, Payload, Stack, number_column
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.model.kinds import EVENT_CODE, Category, Kind, MetricType, Outcome, Status
from rollscope.model.records import (
    DropRecord,
    EndRecord,
    EventRecord,
    FactRecord,
    HeartbeatRecord,
    MetricRecord,
    PayloadRecord,
    ProcessRecord,
    SpanRecord,
    StackRecord,
)
from rollscope.model.scope import Scope
from rollscope.model.unpack import batch_records
from tests.builders import (
    EPOCH,
    SECOND,
    make_batch,
    make_columns,
    make_header,
    make_row,
    records_of,
)

PROCESS = "0000000000000001"


def only_span(*args: object) -> SpanRecord:
    (record,) = args
    assert isinstance(record, SpanRecord)
    return record


def test_a_span_comes_back_with_every_field() -> None:
    scope = Scope(b"\xab" * 16, 41, "gsm8k/1", "g", 0x77, 3)
    row = make_row(
        0x99,
        "session",
        kind=Kind.SESSION,
        status=Status.ERROR,
        scope=scope,
        parent_id=0x88,
        start_ns=3 * SECOND,
        end_ns=5 * SECOND,
        attrs={"reward": 1.0},
        fields={
            "reason": "why",
            "outcome": "failed",
            "version_start": 1,
            "version_end": 2,
            "lane": "l",
        },
    )
    assert records_of(make_batch(spans=make_columns(row))) == [
        SpanRecord(
            process=PROCESS,
            trace_id="ab" * 16,
            span_id="0000000000000099",
            parent_id="0000000000000088",
            kind=Kind.SESSION,
            name="session",
            category=None,
            start_ns=EPOCH + 3 * SECOND,
            end_ns=EPOCH + 5 * SECOND,
            status=Status.ERROR,
            reason="why",
            outcome=Outcome.FAILED,
            step=41,
            version_start=1,
            version_end=2,
            task_key="gsm8k/1",
            sample=3,
            group="g",
            lane="l",
            session_id="0000000000000077",
            attrs={"reward": 1.0},
        )
    ]


def test_a_plain_span_has_no_more_than_it_was_given() -> None:
    span = only_span(*records_of(make_batch(spans=make_columns(make_row()))))
    assert span.parent_id is None
    assert span.category is Category.MISC
    assert (span.status, span.reason, span.outcome) == (Status.OK, None, None)
    assert (span.step, span.task_key, span.group, span.sample, span.session_id) == (None,) * 5
    assert (span.version_start, span.version_end, span.lane) == (None,) * 3
    assert span.attrs == {}
    assert span.duration_s == 1.0


def test_an_open_span_has_no_end() -> None:
    row = make_row(status=Status.OPEN)
    span = only_span(*records_of(make_batch(spans=make_columns(row))))
    assert (span.status, span.end_ns, span.duration_s) == (Status.OPEN, None, None)


def test_rows_without_attributes_do_not_share_a_map() -> None:
    first, second = records_of(make_batch(spans=make_columns(make_row(1), make_row(2))))
    assert isinstance(first, SpanRecord)
    assert isinstance(second, SpanRecord)
    first.attrs["mine"] = True
    assert second.attrs == {}


def test_an_event_is_an_instant_with_the_scope_it_happened_in() -> None:
    row = list(make_row(5, "published", parent_id=4, scope=Scope(b"t" * 16, 7, None, None, 9)))
    row[0] = EVENT_CODE
    assert records_of(make_batch(spans=make_columns(tuple(row)))) == [
        EventRecord(
            process=PROCESS,
            trace_id=(b"t" * 16).hex(),
            event_id="0000000000000005",
            parent_id="0000000000000004",
            name="published",
            time_ns=EPOCH + SECOND,
            step=7,
            session_id="0000000000000009",
            attrs={},
        )
    ]


def test_the_other_parts_come_back_as_records() -> None:
    batch = make_batch(
        mono_ns=4 * SECOND,
        header=make_header(rank=2, parent=b"\xff" * 8),
        facts=[Fact(b"t" * 16, 7, SECOND, {"reward": 0.5})],
        metrics=[
            Metric(MetricType.COUNTER, "n", {"a": "b"}, 2.0, 2),
            Metric(MetricType.GAUGE, "g", {}, 1.0, 3, 0.5, 1.0, {}, 3 * SECOND, 7),
        ],
        payloads=[Payload(b"t" * 16, 7, SECOND, "messages", "[]", False)],
        stacks=[Stack(7, 2 * SECOND, "Task-1", ["a.py:1 f"])],
        heartbeat=Heartbeat(number_column([1, 2**64 - 1])),
        drops={"span.slow_sink": 4},
        end="exit",
    )
    now_ns = EPOCH + 4 * SECOND
    process, *others = records_of(batch)
    assert isinstance(process, ProcessRecord)
    assert (process.rank, process.parent, process.schema) == (2, "ff" * 8, 1)
    trace_id, span_id = (b"t" * 16).hex(), "0000000000000007"
    assert others == [
        FactRecord(
            process=PROCESS,
            trace_id=trace_id,
            span_id=span_id,
            time_ns=EPOCH + SECOND,
            facts={"reward": 0.5},
        ),
        MetricRecord(
            process=PROCESS,
            type=MetricType.COUNTER,
            name="n",
            labels={"a": "b"},
            time_ns=now_ns,
            value=2.0,
            count=2,
            min=None,
            max=None,
            buckets={},
        ),
        MetricRecord(
            process=PROCESS,
            type=MetricType.GAUGE,
            name="g",
            labels={},
            time_ns=EPOCH + 3 * SECOND,
            value=1.0,
            count=3,
            min=0.5,
            max=1.0,
            buckets={},
            step=7,
        ),
        PayloadRecord(
            process=PROCESS,
            trace_id=trace_id,
            span_id=span_id,
            time_ns=EPOCH + SECOND,
            name="messages",
            text="[]",
            cut=False,
        ),
        StackRecord(
            process=PROCESS,
            span_id=span_id,
            time_ns=EPOCH + 2 * SECOND,
            task="Task-1",
            frames=["a.py:1 f"],
        ),
        HeartbeatRecord(process=PROCESS, time_ns=now_ns, open_spans=["0000000000000001", "f" * 16]),
        DropRecord(process=PROCESS, time_ns=now_ns, counts={"span.slow_sink": 4}),
        EndRecord(process=PROCESS, time_ns=now_ns, why="exit"),
    ]


def test_a_heartbeat_without_a_list_is_told_from_one_with_an_empty_list() -> None:
    bare, listed = records_of(
        make_batch(heartbeat=Heartbeat()), make_batch(heartbeat=Heartbeat(b""))
    )
    assert isinstance(bare, HeartbeatRecord)
    assert isinstance(listed, HeartbeatRecord)
    assert (bare.open_spans, listed.open_spans) == (None, [])


def test_times_follow_the_line_in_force_when_they_were_taken() -> None:
    second_line = ClockLine(10 * SECOND, EPOCH + 10 * SECOND + 5)
    old, new = (make_row(n, start_ns=n * SECOND, end_ns=n * SECOND + 1) for n in (2, 12))
    batches = (
        make_batch(0, spans=make_columns(make_row(1))),
        make_batch(1, clock=second_line, spans=make_columns(old, new)),
    )
    clock = ClockMap()
    _, *spans = (record for batch in batches for record in batch_records(batch, clock))
    starts = [span.start_ns for span in spans if isinstance(span, SpanRecord)]
    assert starts == [EPOCH + 2 * SECOND, EPOCH + 12 * SECOND + 5]


def test_a_length_is_the_monotonic_clocks_even_across_a_change_of_line() -> None:
    fast = ClockLine(10 * SECOND, EPOCH + 10 * SECOND, 500_000)
    row = make_row(start_ns=9 * SECOND, end_ns=19 * SECOND)
    records = records_of(make_batch(0), make_batch(1, clock=fast, spans=make_columns(row)))
    assert only_span(*records).duration_s == 10.0


@pytest.mark.parametrize(
    "attrs", [b"\xc1", b"\x91\x01", b"\x90", b"\x92\x80\x80", b"\x91\x81\x01\x02"]
)
def test_attributes_that_do_not_fit_their_rows_are_refused(attrs: bytes) -> None:
    columns = msgspec.structs.replace(make_columns(make_row()), attrs=msgspec.Raw(attrs))
    with pytest.raises(FrameError):
        records_of(make_batch(spans=columns))


def test_an_outcome_that_we_do_not_know_is_refused() -> None:
    row = make_row(fields={"outcome": "glorious"})
    with pytest.raises(FrameError):
        records_of(make_batch(spans=make_columns(row)))
