"""Which open sessions are stuck: each judged by how long its innermost open span has taken.

What counts as long is measured on finished spans of the same kind; whoever asks brings those
measurements along, and the latest progress and await stack of each session.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from rollscope.analysis.awaits import waiting_line
from rollscope.analysis.rows import ProcessRow, SessionRow, SpanRow

__all__ = [
    "ALARMS",
    "Band",
    "Reference",
    "References",
    "Stack",
    "StuckRow",
    "judge_sessions",
    "judge_spans",
    "leaf_of",
]

Band = Literal["silent", "stuck", "overdue", "slow", "fine", "unknown"]
Stack = tuple[int, Sequence[str]]
"""When an await stack was taken, and its frames, the innermost last."""
References = Mapping[tuple[str, str | None], "Reference"]

ALARMS: Final[frozenset[Band]] = frozenset({"silent", "stuck", "overdue"})
"""Slow is none of them: healthy work goes beyond p99 too."""

_NEEDED_FOR_P99 = 100
_NEEDED_FOR_MAX = 20
_LEAST_DIVISOR_NS = 1_000_000_000
_STUCK_AT = 3.0
_SLOW_AT = 1.0
_MISSED_HEARTBEATS = 3


class Reference(msgspec.Struct, frozen=True):
    """How long finished spans of one name and detail took; of one name, where detail is None."""

    count: int
    p99_ns: int
    max_ns: int


class StuckRow(msgspec.Struct, kw_only=True):
    """One open session, or an open span that belongs to none, and how it is judged."""

    session_id: int | None
    task_key: str | None = None
    sample: int | None = None
    attempt: int = 0
    span_id: int
    """The leaf: the deepest open span."""
    name: str
    detail: str | None
    start_ns: int
    age_ns: int
    """How long the leaf has been open."""
    quiet_ns: int
    """How long ago anything was last heard of the session."""
    score: float | None
    """Age over the p99 of finished spans of its kind; None if too few have finished."""
    is_approximate: bool = False
    """The longest one stands for p99, since few have finished."""
    band: Band
    host: str = ""
    pool: str = ""
    process: str = ""
    deadline_ns: int | None = None
    """The moment by which the session should have ended."""
    last_error: str | None = None
    """The latest error inside the session; before the first, what ended its previous attempt."""
    stack: list[str] = []
    """The chain of awaits, the innermost last."""
    stack_age_ns: int | None = None
    line: str | None = None
    """The innermost line of it that is not the standard library's."""
    same_line: int = 0
    """How many other open sessions sit on the same line."""

    @property
    def is_alarm(self) -> bool:
        """Whether someone should look at it now."""
        return self.band in ALARMS


def judge_sessions(
    spans: Iterable[SpanRow],
    sessions: Iterable[SessionRow],
    references: References,
    *,
    now_ns: int,
    processes: Iterable[ProcessRow] = (),
    progress_ns: Mapping[int, int] | None = None,
    stacks: Mapping[int, Stack] | None = None,
) -> list[StuckRow]:
    """Judge every open session on its deepest open span.

    Args:
        spans: The open spans of these sessions, with or without those of the sessions themselves.
        sessions: The sessions; those that are over are left out.
        references: Finished spans to compare with, by name and detail; detail None stands for the
            name alone.
        now_ns: What ages count up to.
        processes: Who recorded.
        progress_ns: When each session last made progress. The start of an open span counts anyway.
        stacks: The latest await stack of each span, by the span's id.

    Returns:
        The scored ones by score, then the others by age, the highest first.
    """
    by_process = {row.process: row for row in processes}
    by_session: dict[int, list[SpanRow]] = {}
    for span in spans:
        if span.end_ns is None:
            key = span.span_id if span.session_id is None else span.session_id
            by_session.setdefault(key, []).append(span)
    rows = []
    for session in sessions:
        if session.is_over:
            continue
        own = by_session.get(session.span_id, [])
        leaf = leaf_of(own, session)
        heard_ns = max([session.start_ns, *(span.start_ns for span in own)])
        heard_ns = max(heard_ns, (progress_ns or {}).get(session.span_id, heard_ns))
        row = _judge(leaf, references, by_process, now_ns, session.deadline_ns)
        row.session_id = session.span_id
        row.task_key, row.sample = session.task_key, session.sample
        row.attempt, row.pool = session.attempt, session.pool
        row.host = row.host or session.host
        row.quiet_ns = max(now_ns - heard_ns, 0)
        _add_stack(row, (stacks or {}).get(leaf.span_id), now_ns)
        rows.append(row)
    _count_same_lines(rows)
    return sorted(rows, key=_order)


def judge_spans(
    spans: Iterable[SpanRow],
    references: References,
    *,
    now_ns: int,
    processes: Iterable[ProcessRow] = (),
    stacks: Mapping[int, Stack] | None = None,
) -> list[StuckRow]:
    """Judge open spans that belong to no session, such as a trainer's; the innermost of each nest.

    Returns:
        The scored ones by score, then the others by age, the highest first.
    """
    by_process = {row.process: row for row in processes}
    outside = [span for span in spans if span.session_id is None and span.end_ns is None]
    enclosing = {span.parent_id for span in outside}
    rows = []
    for span in outside:
        if span.span_id not in enclosing:
            row = _judge(span, references, by_process, now_ns, None)
            _add_stack(row, (stacks or {}).get(span.span_id), now_ns)
            rows.append(row)
    _count_same_lines(rows)
    return sorted(rows, key=_order)


def leaf_of(spans: Sequence[SpanRow], session: SessionRow) -> SpanRow:
    """Give the deepest of a session's open spans, the latest of several, or else itself."""
    parents = {span.span_id: span.parent_id for span in spans}

    def depth(span: SpanRow) -> int:
        # Counted in open spans only: a parent that ended before its child lends it no depth.
        seen = {span.span_id}
        at = span.parent_id
        while at in parents and at not in seen:
            seen.add(at)
            at = parents[at]
        is_session = session.span_id in seen
        return len(seen) - is_session

    if spans:
        return max(spans, key=lambda span: (depth(span), span.start_ns, span.span_id))
    return SpanRow(
        span_id=session.span_id,
        session_id=session.span_id,
        process=session.process,
        name="session",
        start_ns=session.start_ns,
    )


def _judge(
    leaf: SpanRow,
    references: References,
    processes: Mapping[int, ProcessRow],
    now_ns: int,
    deadline_ns: int | None,
) -> StuckRow:
    process = processes.get(leaf.process)
    age_ns = max(now_ns - leaf.start_ns, 0)
    limit_ns, is_approximate = _limit(references, leaf.name, leaf.detail)
    score = None if limit_ns is None else age_ns / max(limit_ns, _LEAST_DIVISOR_NS)
    is_overdue = deadline_ns is not None and now_ns > deadline_ns
    return StuckRow(
        session_id=None,
        span_id=leaf.span_id,
        name=leaf.name or str(leaf.kind),
        detail=leaf.detail,
        start_ns=leaf.start_ns,
        age_ns=age_ns,
        quiet_ns=age_ns,
        score=score,
        is_approximate=is_approximate,
        band=_band(score, is_overdue, _is_silent(process, now_ns)),
        host="" if process is None else process.host,
        process="" if process is None else process.title,
        deadline_ns=deadline_ns,
    )


def _limit(references: References, name: str, detail: str | None) -> tuple[int | None, bool]:
    """Give what stands for p99, and whether it is only the maximum of a few."""
    alike = references.get((name, detail))
    if alike is not None and alike.count >= _NEEDED_FOR_P99:
        return alike.p99_ns, False
    same_name = references.get((name, None), alike)
    if same_name is None or same_name.count < _NEEDED_FOR_MAX:
        return None, False
    if same_name.count < _NEEDED_FOR_P99:
        return same_name.max_ns, True
    return same_name.p99_ns, False


def _band(score: float | None, is_overdue: bool, is_silent: bool) -> Band:
    if is_silent:  # whether it is still open is not known, so nothing else can be said of it
        return "silent"
    if score is not None and score >= _STUCK_AT:
        return "stuck"
    if is_overdue:
        return "overdue"
    if score is None:
        return "unknown"
    return "slow" if score >= _SLOW_AT else "fine"


def _is_silent(process: ProcessRow | None, now_ns: int) -> bool:
    if process is None or process.status == "imported":  # it is as old as its file says
        return False
    missed_ns = now_ns - process.last_seen_ns
    return process.status != "alive" or missed_ns > _MISSED_HEARTBEATS * process.heartbeat_ns


def _add_stack(row: StuckRow, stack: Stack | None, now_ns: int) -> None:
    if stack is not None:
        row.stack = list(stack[1])
        row.stack_age_ns = max(now_ns - stack[0], 0)


def _count_same_lines(rows: Iterable[StuckRow]) -> None:
    with_stack = [row for row in rows if row.stack]
    for row in with_stack:
        row.line = waiting_line(row.stack)
    lines = Counter(row.line for row in with_stack)
    for row in with_stack:
        row.same_line = lines[row.line] - 1


def _order(row: StuckRow) -> tuple[bool, float, int, int]:
    return row.score is None, -(row.score or 0.0), -row.age_ns, row.span_id
