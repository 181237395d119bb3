"""Which open sessions are stuck."""

import pytest

from rollscope.analysis.rows import ProcessRow, SessionRow, SpanRow
from rollscope.analysis.stuck import Band, Reference, StuckRow, judge_sessions, judge_spans
from rollscope.model.kinds import Kind, Status

S = 1_000_000_000
NOW = 1000 * S
MANY = Reference(count=200, p99_ns=10 * S, max_ns=50 * S)


def _session(span_id: int = 1, start_s: int = 0, **fields: object) -> SessionRow:
    made = SessionRow(span_id=span_id, start_ns=start_s * S, status=Status.OPEN)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _span(
    span_id: int,
    start_s: float,
    parent_id: int | None = 1,
    session_id: int | None = 1,
    name: str = "toolcall",
    detail: str | None = None,
) -> SpanRow:
    return SpanRow(
        span_id=span_id,
        parent_id=parent_id,
        session_id=session_id,
        kind=Kind.PHASE,
        name=name,
        detail=detail,
        start_ns=round(start_s * S),
        status=Status.OPEN,
    )


def _judge(
    span: SpanRow, references: dict[tuple[str, str | None], Reference], session: SessionRow
) -> StuckRow:
    (row,) = judge_sessions([span], [session], references, now_ns=NOW)
    return row


def test_the_score_is_the_age_of_the_leaf_over_the_p99_of_its_kind() -> None:
    row = _judge(_span(2, 960), {("toolcall", None): MANY}, _session())

    assert row.age_ns == 40 * S
    assert row.score == 4.0
    assert row.band == "stuck"
    assert row.is_alarm
    assert not row.is_approximate


def test_spans_of_the_same_detail_are_the_reference_if_there_are_enough() -> None:
    span = _span(2, 960, detail="browser")
    slow = Reference(count=100, p99_ns=80 * S, max_ns=90 * S)
    few = Reference(count=99, p99_ns=80 * S, max_ns=90 * S)

    enough = _judge(span, {("toolcall", "browser"): slow, ("toolcall", None): MANY}, _session())
    too_few = _judge(span, {("toolcall", "browser"): few, ("toolcall", None): MANY}, _session())

    assert enough.score == 0.5
    assert too_few.score == 4.0


def test_of_a_few_finished_spans_the_longest_stands_for_p99() -> None:
    few = Reference(count=20, p99_ns=30 * S, max_ns=40 * S)

    row = _judge(_span(2, 960), {("toolcall", None): few}, _session())

    assert row.score == 1.0
    assert row.is_approximate
    assert row.band == "slow"
    assert not row.is_alarm


def test_too_few_finished_spans_give_no_score() -> None:
    row = _judge(_span(2, 0), {("toolcall", None): Reference(19, S, S)}, _session())

    assert row.score is None
    assert row.band == "unknown"
    assert not row.is_alarm


def test_the_divisor_is_at_least_a_second() -> None:
    quick = Reference(count=500, p99_ns=S // 1000, max_ns=S)

    row = _judge(_span(2, 999.5), {("toolcall", None): quick}, _session())

    assert row.score == 0.5
    assert row.band == "fine"


@pytest.mark.parametrize(
    ("start_s", "deadline_s", "seen_s", "band"),
    [
        (999, None, 999, "fine"),
        (985, None, 999, "slow"),
        (985, 1000, 999, "slow"),
        (985, 999, 999, "overdue"),
        (960, 999, 999, "stuck"),
        (960, 999, 997, "stuck"),
        (999, None, 996, "silent"),
    ],
)
def test_bands(start_s: int, deadline_s: int | None, seen_s: int, band: Band) -> None:
    session = _session(deadline_ns=None if deadline_s is None else deadline_s * S)
    process = ProcessRow(process=0, host="gpu-07", role="rollout", rank=3, last_seen_ns=seen_s * S)

    (row,) = judge_sessions(
        [_span(2, start_s)],
        [session],
        {("toolcall", None): MANY},
        now_ns=NOW,
        processes=[process],
    )

    assert row.band == band
    assert (row.host, row.process) == ("gpu-07", "rollout 3")


def test_what_an_imported_file_left_open_is_judged_by_its_age_at_the_files_end() -> None:
    process = ProcessRow(process=0, status="imported", last_seen_ns=900 * S)

    (row,) = judge_sessions(
        [_span(2, 960)],
        [_session()],
        {("toolcall", None): MANY},
        now_ns=NOW,
        processes=[process],
    )

    assert row.band == "stuck"


def test_the_leaf_is_the_deepest_open_span_and_the_latest_of_several() -> None:
    spans = [
        _span(1, 0, parent_id=None, name="session"),
        _span(2, 10, name="env"),
        _span(3, 20, parent_id=2, name="toolcall"),
        _span(4, 30, parent_id=2, name="reward"),
        _span(5, 90, name="generate"),
    ]

    (row,) = judge_sessions(spans, [_session()], {}, now_ns=NOW)

    assert (row.span_id, row.name) == (4, "reward")


def test_a_session_without_an_open_child_is_judged_itself() -> None:
    by_span = judge_sessions(
        [_span(1, 5, parent_id=None, session_id=None, name="session")],
        [_session(start_s=5)],
        {},
        now_ns=NOW,
    )
    by_row = judge_sessions([], [_session(start_s=5)], {}, now_ns=NOW)

    assert [(row.span_id, row.name, row.age_ns) for row in by_span] == [(1, "session", 995 * S)]
    assert [(row.span_id, row.name, row.age_ns) for row in by_row] == [(1, "session", 995 * S)]


def test_quiet_is_the_time_since_the_last_progress() -> None:
    spans = [_span(2, 900)]

    (heard,) = judge_sessions(spans, [_session()], {}, now_ns=NOW, progress_ns={1: 990 * S})
    (unheard,) = judge_sessions(spans, [_session()], {}, now_ns=NOW)

    assert heard.quiet_ns == 10 * S
    assert unheard.quiet_ns == 100 * S


def test_scored_sessions_come_first_by_score_then_the_others_by_age() -> None:
    sessions = [_session(number) for number in (1, 2, 3, 4)]
    spans = [
        _span(11, 10, session_id=1, name="new"),
        _span(12, 990, session_id=2),
        _span(13, 900, session_id=3),
        _span(14, 5, session_id=4, name="new"),
    ]

    rows = judge_sessions(spans, sessions, {("toolcall", None): MANY}, now_ns=NOW)

    assert [row.session_id for row in rows] == [3, 2, 4, 1]


def test_sessions_on_the_same_line_are_counted() -> None:
    sessions = [_session(number) for number in (1, 2, 3)]
    spans = [_span(10 + number, 0, session_id=number) for number in (1, 2, 3)]
    stacks = {
        11: (998 * S, ["a.py:1 run", "b.py:7 recv"]),
        12: (999 * S, ["c.py:2 run", "b.py:7 recv"]),
    }

    rows = judge_sessions(spans, sessions, {}, now_ns=NOW, stacks=stacks)

    by_session = {row.session_id: row for row in rows}
    assert [by_session[number].same_line for number in (1, 2, 3)] == [1, 1, 0]
    assert by_session[1].stack_age_ns == 2 * S
    assert by_session[3].stack_age_ns is None


def test_a_line_of_the_standard_library_is_not_where_a_program_waits() -> None:
    asyncio_line = "/usr/lib/python3.11/asyncio/locks.py:213 Event.wait"
    sessions = [_session(number) for number in (1, 2, 3)]
    spans = [_span(10 + number, 0, session_id=number) for number in (1, 2, 3)]
    stacks = {
        11: (998 * S, ["a.py:1 run", asyncio_line]),
        12: (999 * S, ["a.py:1 run", asyncio_line]),
        13: (999 * S, ["b.py:7 recv", asyncio_line]),
    }

    rows = judge_sessions(spans, sessions, {}, now_ns=NOW, stacks=stacks)

    by_session = {row.session_id: row for row in rows}
    assert [by_session[number].line for number in (1, 2, 3)] == [
        "a.py:1 run",
        "a.py:1 run",
        "b.py:7 recv",
    ]
    assert [by_session[number].same_line for number in (1, 2, 3)] == [1, 1, 0]


def test_sessions_that_are_over_are_left_out() -> None:
    assert judge_sessions([], [_session(end_ns=S)], {}, now_ns=NOW) == []
    assert judge_sessions([], [], {}, now_ns=NOW) == []


def test_spans_outside_of_sessions_are_judged_by_their_innermost() -> None:
    spans = [
        _span(1, 0, parent_id=None, session_id=None, name="step"),
        _span(2, 900, parent_id=1, session_id=None, name="train"),
        _span(3, 900, session_id=9),
    ]

    rows = judge_spans(spans, {("train", None): MANY}, now_ns=NOW)

    assert [(row.session_id, row.name, row.score) for row in rows] == [(None, "train", 10.0)]
