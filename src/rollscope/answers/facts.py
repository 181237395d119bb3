"""Everything that bears on some steps, fetched in a few queries and sorted by step."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from rollscope.analysis.path import SpansOf
from rollscope.analysis.roles import PUBLISHED_EVENT
from rollscope.analysis.rows import PhaseTotal, SessionRow, SpanRow, StepFacts
from rollscope.answers.capacity import declared_slots, most_at_once
from rollscope.answers.rows import (
    MAYBE_CHARGED,
    SESSION_COLUMNS,
    WAITS_COLUMNS,
    add_tokens,
    bound_ids,
    charged_extent,
    charged_sessions,
    event_rows,
    extent,
    in_batches,
    most_moved,
    one_of,
    process_rows,
    session_rows,
    sessions_with,
    span_rows,
)
from rollscope.answers.source import Source, fetch
from rollscope.store.dialect import Value

__all__ = ["SessionSpans", "gather_steps", "step_spans", "trainer_spans"]

_LIKELY_ASKED: Final = 12
_LIKELY_SHARE: Final = 0.05
"""Sessions of a step whose spans are fetched ahead, the last to end: the path leads through them,
and a tail that more of them hold is not put down to single ones."""

_IN_FLIGHT: Final = """
    SELECT span_id FROM spans
    WHERE kind = 'session' AND start_ns < $high AND (end_ns IS NULL OR end_ns > $low)
        AND recorded_start_ns < $files_high
        AND (recorded_end_ns IS NULL OR recorded_end_ns > $files_low)"""


class _StepPhase(PhaseTotal, kw_only=True):
    step: int


class SessionSpans:
    """Gives the spans of a session, fetched once; those that will be asked for, all together."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: dict[int, list[SpanRow]] = {}

    def prefetch(self, sessions: Sequence[SessionRow]) -> None:
        """Fetch the spans of several sessions at once."""
        wanted = [one for one in sessions if one.span_id not in self._known]
        if not wanted:
            return
        low, high = extent(self._source, wanted)
        where = f"{one_of(self._source, 'session_id')} AND recorded_start_ns BETWEEN $low AND $high"
        for ids in in_batches([one.span_id for one in wanted]):
            self._fetch(ids, where, **bound_ids(ids), low=low, high=high)

    def _fetch(self, session_ids: Sequence[int], where: str, **values: Value) -> None:
        self._known |= {session_id: [] for session_id in session_ids}
        for span in span_rows(self._source, where, **values):
            if span.session_id is not None and span.span_id != span.session_id:
                self._known[span.session_id].append(span)

    def __call__(self, session_id: int) -> Sequence[SpanRow]:
        """Give the spans of one session, itself not among them."""
        if session_id not in self._known:
            self.prefetch(sessions_with(self._source, [session_id]))
        if session_id not in self._known:  # nothing says when it was
            self._fetch([session_id], "session_id = $id", id=session_id)
        return self._known[session_id]


def gather_steps(
    source: Source,
    first: int,
    last: int,
    *,
    outlined_before: int | None = None,
    is_light: bool = False,
) -> tuple[list[StepFacts], SpansOf]:
    """Gather the steps with these numbers, both included.

    Args:
        source: The run.
        first: The first step.
        last: The last step.
        outlined_before: Steps before this one come without their sessions, which is all that
            history needs.
        is_light: Leave out what does not bear on who waited: tokens, phases, most of sessions.

    Returns:
        The steps in order, and what gives the spans of a session.
    """
    spans = step_spans(source, first, last)
    spans_of = SessionSpans(source)
    if not spans:
        return [], spans_of
    now_ns = source.now_ns
    detailed = [span for span in spans if (span.step or 0) >= (outlined_before or 0)] or spans[-1:]
    low = min(span.start_ns for span in detailed)
    high = max(now_ns if span.end_ns is None else span.end_ns for span in detailed)
    moved_ns = most_moved(source)
    sessions = session_rows(
        source,
        "charged_step BETWEEN $first AND $last"
        " OR (start_ns < $high AND (end_ns IS NULL OR end_ns > $low))",
        WAITS_COLUMNS if is_light else SESSION_COLUMNS,
        among=f"{MAYBE_CHARGED} UNION ALL {_IN_FLIGHT}",
        first=detailed[0].step or 0,
        last=last,
        low=low,
        high=high,
        files_low=low - moved_ns,
        files_high=high + moved_ns,
    )
    if not is_light:
        add_tokens(source, sessions)
    states = span_rows(
        source,
        "kind = 'state' AND start_ns < $high AND (end_ns IS NULL OR end_ns > $low)",
        low=low,
        high=high,
    )
    events = event_rows(
        source, "name = $name AND time_ns <= $high", name=PUBLISHED_EVENT, high=high
    )
    trainer = trainer_spans(source, spans, first, last)
    phases = {} if is_light else _phase_totals(source, first, last)
    processes = process_rows(source)
    declared, assumed = declared_slots(source), most_at_once(source)
    by_step = defaultdict(list)
    for session in sessions:
        by_step[session.charged_step].append(session)
    found = []
    around = _Around(sessions, now_ns)
    for span in spans:
        if span.start_ns < low:
            found.append(StepFacts(span=span, now_ns=now_ns, phases=phases.get(span.step, [])))
            continue
        end_ns = now_ns if span.end_ns is None else span.end_ns
        found.append(
            StepFacts(
                span=span,
                now_ns=now_ns,
                trainer=trainer.get(span.span_id, []),
                sessions=by_step.get(span.step, []),
                around=around.between(span.start_ns, end_ns),
                states=[one for one in states if _overlaps(one, span.start_ns, end_ns)],
                events=[event for event in events if event.time_ns <= end_ns],
                processes=processes,
                capacity=declared,
                assumed_capacity=assumed,
                phases=phases.get(span.step, []),
            )
        )
    if not is_light:
        spans_of.prefetch(_likely_asked(found))
    return found, spans_of


def step_spans(source: Source, first: int, last: int) -> list[SpanRow]:
    """Give one span for each step: of the lowest rank, and of the last try if repeated."""
    rows = span_rows(
        source, "kind = 'step' AND step BETWEEN $first AND $last", first=first, last=last
    )
    rank_of = {row.process: row.rank or 0 for row in process_rows(source)}
    chosen: dict[int | None, SpanRow] = {}
    for row in rows:
        known = chosen.get(row.step)
        rank = rank_of.get(row.process, 0)
        if known is None or (rank, -row.start_ns) <= (
            rank_of.get(known.process, 0),
            -known.start_ns,
        ):
            chosen[row.step] = row
    return sorted(chosen.values(), key=lambda row: (row.step or 0, row.start_ns))


def trainer_spans(
    source: Source, steps: Sequence[SpanRow], first: int, last: int
) -> dict[int, list[SpanRow]]:
    """Give the spans below each step's span that belong to no session."""
    rows = span_rows(
        source,
        "step BETWEEN $first AND $last AND session_id IS NULL AND task_key IS NULL"
        " AND kind <> 'step'",
        first=first,
        last=last,
    )
    parent_of = {row.span_id: row.parent_id for row in rows}
    roots = {step.span_id for step in steps}
    below: dict[int, list[SpanRow]] = {}
    for row in rows:
        at: int | None = row.parent_id
        seen = 0
        while at is not None and at not in roots and seen < len(rows):
            at = parent_of.get(at)
            seen += 1
        if at is not None and at in roots:
            below.setdefault(at, []).append(row)
    return below


def _phase_totals(source: Source, first: int, last: int) -> dict[int | None, list[PhaseTotal]]:
    """Add up the measured phases of each step by name and detail."""
    low, high = charged_extent(source, first, last)
    sql = f"""
        SELECT s.charged_step AS step, p.name AS name, p.detail AS detail, count(*) AS count,
            sum(p.duration_ns) AS total_ns, {source.dialect.rank("p.duration_ns", 95)} AS p95_ns,
            coalesce(sum(p.queue_ns), 0) AS queue_ns,
            sum(CASE WHEN p.status = 'error' THEN 1 ELSE 0 END) AS errors
        FROM phases AS p JOIN (
            SELECT session_id, charged_step
            FROM ({charged_sessions(source)}) AS maybe
            WHERE charged_step BETWEEN $first AND $last
        ) AS s ON p.session_id = s.session_id
        WHERE p.end_ns IS NOT NULL AND p.status <> 'lost'
            AND p.recorded_start_ns BETWEEN $low AND $high
        GROUP BY s.charged_step, p.name, p.detail
        ORDER BY step, total_ns DESC, name, detail"""
    totals: dict[int | None, list[PhaseTotal]] = {}
    for row in fetch(source, _StepPhase, sql, first=first, last=last, low=low, high=high):
        values = {name: getattr(row, name) for name in PhaseTotal.__struct_fields__}
        totals.setdefault(row.step, []).append(PhaseTotal(**values))
    return totals


class _Around:
    """Finds the sessions that were open at some time during a stretch."""

    def __init__(self, sessions: Sequence[SessionRow], now_ns: int) -> None:
        self._sessions = sessions  # by start
        self._starts = [session.start_ns for session in sessions]
        self._now_ns = now_ns

    def between(self, low: int, high: int) -> list[SessionRow]:
        """Give them in order of their start."""
        started = self._sessions[: bisect_left(self._starts, high)]
        now = self._now_ns
        return [one for one in started if (now if one.end_ns is None else one.end_ns) > low]


def _overlaps(span: SpanRow, low: int, high: int) -> bool:
    return span.start_ns < high and (span.end_ns is None or span.end_ns > low)


def _likely_asked(steps: Iterable[StepFacts]) -> list[SessionRow]:
    likely: list[SessionRow] = []
    for step in steps:
        ended = [one for one in step.sessions if one.end_ns is not None]
        ended.sort(key=lambda one: one.end_ns or 0)
        most = max(_LIKELY_ASKED, int(len(ended) * _LIKELY_SHARE) + 1)
        likely += ended[-most:]
    return likely
