from __future__ import annotations

import asyncio
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import rollscope as rs
from rollscope.instrument.binding import bind_span_types
from rollscope.instrument.buffers import ATTRS, FIELDS, ROW, SPAN, Buffers
from rollscope.instrument.spans import NOOP, Span
from rollscope.model.batch import read_number_column
from rollscope.model.refs import span_hex
from rollscope.runner import Runner
from rollscope.runner.outcome import Outcome, Reason, Status
from rollscope.runner.recording import announce_sessions, learn_late, record_sessions
from rollscope.runner.sessionfacts import StartFacts, facts_of
from rollscope.runner.task import TaskOptions
from rollscope.testing import FakeClock, SequentialIds, capture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.instrument.hosted import HostedSession
    from rollscope.model.batch import SpanColumns
    from rollscope.model.records import SpanRecord
    from rollscope.testing.capture import Capture

PATIENCE_S = 20.0
CURRENT: ContextVar[Span] = ContextVar("recording", default=NOOP)
WAITS = {
    "replica": "pool",
    "queue_wait_s": 1.0,
    "runner_wait_s": 2.0,
    "execution_s": 3.0,
    "post_wait_s": 4.0,
    "total_s": 10.0,
}


async def quick(value: Any = None) -> Any:
    return value


@pytest.fixture
def run() -> Iterator[Capture]:
    with capture() as run:
        yield run


class Bench:
    """A recorder's buffers without its threads."""

    def __init__(self) -> None:
        self.buffers = Buffers()
        self.types = bind_span_types(self.buffers, CURRENT, SequentialIds(), FakeClock())

    def begin(self, number: int, **options: Any) -> HostedSession:
        start = quick, number, TaskOptions(**options), 3, 1000, StartFacts("pool"), None
        span = copy_context().run(self.types.hosted.begin, *start)
        span.is_over = True
        return span

    def find_open(self, number: int, **options: Any) -> HostedSession:
        span = self.begin(number, **options)
        span.is_over = False
        self.buffers.open_started()
        return span

    def record(self, *outcomes: Outcome) -> SpanColumns | None:
        return record_sessions(
            self.types, [entry for outcome in outcomes for entry in facts_of(outcome)]
        )

    def rows(self) -> list[list[Any]]:
        rows = self.buffers.rows
        return [rows[at : at + ROW] for at in range(0, len(rows), ROW)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def outcome_of(span: HostedSession, **changes: Any) -> Outcome:
    known: dict[str, Any] = {
        "id": span.number,
        "status": Status.OK,
        "reason": Reason.ACCEPTED,
        "value": None,
        "error": None,
        "detail": "",
        "group": None,
        "tier": "train",
        "tags": {},
        "attempts": 1,
        "submitted_ns": 0,
        "admitted_ns": 1_000_000_000,
        "started_ns": 3_000_000_000,
        "finished_ns": 6_000_000_000,
        "version_start": 3,
        "version_end": 4,
        "versions": (3,),
        "execution_ns": 3_000_000_000,
        "span": span,
        "delivered_ns": 10_000_000_000,
    }
    return Outcome(**{**known, **changes})


def as_read(written: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(written), strict=False)


def sessions(run: Capture) -> dict[str, SpanRecord]:
    return {span.task_key or "": span for span in run.spans() if span.name == "session"}


def test_a_session_that_nobody_has_read_is_written_whole(run: Capture) -> None:
    with Runner(name="pool", probe_s=None) as runner:
        runner.set_version(3)
        runner.options(key="item", sample=2, group=7).submit(quick)
        runner.submit(quick)
        first, second = sorted(runner.wait(2, PATIENCE_S), key=lambda outcome: outcome.id)
    found = sessions(run)
    session = found["item"]
    assert f"00-{session.trace_id}-{session.span_id}-01" == str(first.span.ref)
    assert (session.group, session.sample, session.parent_id) == ("7", 2, None)
    assert (session.outcome, session.reason) == ("accepted", "accepted")
    assert (session.version_start, session.version_end) == (3, 3)
    waits = ("queue_wait_s", "runner_wait_s", "execution_s", "post_wait_s")
    assert session.attrs["replica"] == "pool"
    assert session.attrs["total_s"] == pytest.approx(sum(session.attrs[name] for name in waits))
    assert found[f"quick/{second.id}"].span_id == span_hex(second.span.id)


def test_the_waits_are_those_of_the_outcome(bench: Bench) -> None:
    columns = bench.record(outcome_of(bench.begin(1)))
    assert columns is not None
    assert msgspec.msgpack.decode(columns.attrs) == [WAITS]
    assert bench.rows() == []


def test_what_nobody_has_fetched_yet_is_written_with_the_rest_and_learned_later(
    bench: Bench,
) -> None:
    spans = [bench.begin(number) for number in (1, 2)]
    unfetched = outcome_of(spans[1], delivered_ns=None)
    columns = bench.record(outcome_of(spans[0]), unfetched)
    assert columns is not None
    later = {name: WAITS[name] for name in ("post_wait_s", "total_s")}
    at_once = {name: value for name, value in WAITS.items() if name not in later}
    assert msgspec.msgpack.decode(columns.attrs) == [WAITS, at_once]
    assert bench.rows() == []
    (fact,) = learn_late([*facts_of(outcome_of(spans[1]))], at_ns=11)
    assert (fact.span_id, fact.mono_ns, fact.facts) == (spans[1].id, 11, later)


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({"tags": {"set": "aime"}}, {}),
        ({"key": "k" * 1000}, {}),
        ({"key": "ключ"}, {}),
        ({"sample": 2**70}, {}),
        ({}, {"attempts": 2}),
        ({}, {"detail": "why"}),
        ({}, {"started_ns": None, "admitted_ns": None}),
        ({}, {"version_end": 2**70}),
    ],
)
def test_an_uncommon_session_becomes_a_row(
    bench: Bench, options: dict[str, Any], changes: dict[str, Any]
) -> None:
    odd, common = bench.begin(1, **options), bench.begin(2)
    columns = bench.record(outcome_of(odd, **changes), outcome_of(common))
    written = [] if columns is None else list(read_number_column(columns.span_id))
    in_rows = [row[SPAN] for row in bench.rows()]
    assert odd.id in in_rows
    assert sorted(written + in_rows) == sorted([odd.id, common.id])


def test_a_session_that_was_read_keeps_what_was_added_to_it(bench: Bench) -> None:
    span = bench.begin(1)
    span.attrs["mine"] = 5
    assert bench.record(outcome_of(span)) is None
    assert [row[ATTRS] for row in bench.rows()] == [{**WAITS, "mine": 5}]


def test_a_session_that_was_only_looked_at_is_written_like_the_others(bench: Bench) -> None:
    seen, unseen = bench.begin(1, group="g", sample=2), bench.begin(2)
    scope = seen.scope.as_row()
    columns = bench.record(outcome_of(seen), outcome_of(unseen))
    assert columns is not None
    assert as_read(columns.scopes)[0] == list(scope)
    assert list(read_number_column(columns.span_id)) == [seen.id, unseen.id]
    assert list(read_number_column(columns.parent_id)) == [0, 0]
    assert msgspec.msgpack.decode(columns.attrs) == [WAITS, WAITS]
    assert columns.fields[0] == columns.fields[1]
    assert bench.rows() == []


def test_open_sessions_are_announced_as_they_would_be_one_by_one(bench: Bench) -> None:
    first, second = bench.find_open(1, group="g", sample=2), bench.find_open(2, key="item")
    columns, left = announce_sessions(bench.types, [first, second])
    assert columns is not None
    assert left == []
    assert list(read_number_column(columns.span_id)) == [first.id, second.id]
    assert list(read_number_column(columns.start_ns)) == [1000, 1000]
    assert list(read_number_column(columns.end_ns)) == [0, 0]
    assert msgspec.msgpack.decode(columns.attrs) == [first.attrs, second.attrs]
    scopes = [list(span.scope.as_row()) for span in (first, second)]
    assert as_read(columns.scopes) == scopes
    assert as_read(columns.fields)[0] == first.fields == {"version_start": 3}


@pytest.mark.parametrize("options", [{"tags": {"set": "aime"}}, {"key": "ключ"}, {"sample": 2**70}])
def test_an_uncommon_open_session_is_left_to_be_announced_alone(
    bench: Bench, options: dict[str, Any]
) -> None:
    odd = bench.find_open(1, **options)
    assert announce_sessions(bench.types, [odd]) == (None, [odd])


def test_an_open_session_of_a_very_long_number_is_left_to_be_announced_alone(
    bench: Bench,
) -> None:
    odd = bench.find_open(10**600)
    assert announce_sessions(bench.types, [odd]) == (None, [odd])


def test_an_open_session_that_was_read_is_left_to_be_announced_alone(bench: Bench) -> None:
    read, unread = bench.find_open(1), bench.find_open(2)
    read.attrs["mine"] = 5
    columns, left = announce_sessions(bench.types, [read, unread])
    assert columns is not None
    assert (list(read_number_column(columns.span_id)), left) == ([unread.id], [read])


def test_a_session_that_was_announced_ends_in_columns_too(bench: Bench) -> None:
    span = bench.find_open(1)
    span.is_over = True
    columns = bench.record(outcome_of(span))
    assert columns is not None
    assert list(read_number_column(columns.span_id)) == [span.id]
    assert bench.rows() == []


def test_a_session_in_a_task_is_written_below_it(run: Capture) -> None:
    with Runner(name="pool", probe_s=None) as runner, rs.task("item") as around:
        runner.submit(quick)
        runner.wait(1, PATIENCE_S)
    session = sessions(run)["item"]
    assert session.parent_id == span_hex(around.id)
    assert session.attrs["replica"] == "pool"


def test_a_session_with_a_verdict_of_its_own_keeps_it(bench: Bench) -> None:
    span = bench.begin(1)
    span.fields["outcome"] = "rejected"
    assert bench.record(outcome_of(span)) is None
    assert [row[FIELDS]["outcome"] for row in bench.rows()] == ["rejected"]


def test_sessions_that_ended_differently_keep_their_own_verdicts(run: Capture) -> None:
    async def self_cancelled() -> None:
        raise asyncio.CancelledError

    async def rejected() -> None:
        return None

    with Runner(name="pool", probe_s=None) as runner:
        runner.options(key="good").submit(quick, 1)
        runner.options(key="bad", none_is=Reason.RETURNED_NONE).submit(rejected)
        runner.options(key="gone").submit(self_cancelled)
        runner.wait(3, PATIENCE_S)
    found = sessions(run)
    verdicts = {key: (one.outcome, one.reason, str(one.status)) for key, one in found.items()}
    assert verdicts == {
        "good": ("accepted", "accepted", "ok"),
        "bad": ("rejected", "returned_none", "ok"),
        "gone": ("cancelled", "self_cancelled", "cancelled"),
    }


def test_thousands_of_sessions_are_all_recorded_once(run: Capture) -> None:
    with Runner(name="pool", probe_s=None) as runner:
        for value in range(3000):
            runner.submit(quick, value)
        outcomes = runner.wait(3000, PATIENCE_S)
    columns = [batch.spans for batch in run.batches() if batch.spans is not None]
    ended = [
        span_id
        for column in columns
        for span_id, end in zip(
            read_number_column(column.span_id), read_number_column(column.end_ns), strict=True
        )
        if end
    ]
    assert set(ended) >= {outcome.span.id for outcome in outcomes}
    assert len(ended) == len(set(ended))


def test_what_outlives_its_session_still_belongs_to_it(run: Capture) -> None:
    may_go = asyncio.Event()
    children: list[asyncio.Task[None]] = []

    async def linger() -> None:
        await may_go.wait()
        with rs.phase("late"):
            pass

    async def parent() -> None:
        children.append(asyncio.create_task(linger()))

    async def main() -> None:
        async with Runner(name="pool", probe_s=None) as runner:
            runner.options(key="item").submit(parent)
            await runner.await_outcomes(1, PATIENCE_S)
            await asyncio.to_thread(run.tracer.flush)
            may_go.set()
            await children[0]

    asyncio.run(main())
    late = run.named("late")
    assert (late.task_key, late.parent_id) == ("item", sessions(run)["item"].span_id)


def test_what_is_learned_of_a_recorded_session_is_added_to_it(run: Capture) -> None:
    with Runner(name="pool", probe_s=None) as runner:
        runner.options(key="item").submit(quick)
        (outcome,) = runner.wait(1, PATIENCE_S)
        run.tracer.flush()
        rs.annotate(outcome.span, consumed_step=4)
    assert sessions(run)["item"].attrs["consumed_step"] == 4
