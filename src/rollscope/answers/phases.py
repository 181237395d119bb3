"""How long phases take: by name, tool, task family or worker; queueing apart from service."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from rollscope.analysis.ranks import NEEDED_FOR_P95, NEEDED_FOR_P99
from rollscope.analysis.rows import SessionRow
from rollscope.answers.rows import (
    bound_ids,
    charged_extent,
    charged_sessions,
    extent,
    in_batches,
    one_of,
)
from rollscope.answers.scope import StepScope
from rollscope.answers.sharing import shared
from rollscope.answers.source import Source, fetch
from rollscope.store.dialect import Value

__all__ = [
    "BLAMED",
    "ErrorKind",
    "Grouping",
    "PhaseLine",
    "Phases",
    "in_scope",
    "phase_unions",
    "phases",
]

Grouping = Literal["name", "detail", "family", "worker"]

_GROUPS: Final[dict[Grouping, str]] = {
    "name": "CAST(NULL AS {text})",
    "detail": "p.detail",
    "family": "p.family",
    "worker": "coalesce(p.replica, w.title)",
}
BLAMED: Final = """coalesce(attrs, '') NOT LIKE '%"error.copied":true%'"""
"""Of an error that was written for a span and again for those above it, the innermost one."""


class PhaseLine(msgspec.Struct, kw_only=True):
    """All phases of one name and group."""

    name: str
    group: str | None
    count: int
    measured: int
    """Those that ended and were not cut off by a death; percentiles are of these."""
    total_ns: int
    """Of all of them: up to now where they are open, until last heard of where they are lost."""
    p50_ns: int
    p95_ns: int | None
    """None with fewer than 20."""
    p99_ns: int | None
    """None with fewer than 100."""
    max_ns: int
    queue_p50_ns: int | None
    """Of those that say how long they waited for their service."""
    queue_p95_ns: int | None
    """None with fewer than 20."""
    queue_share: float | None
    """How much of their time was waiting, of those that say so."""
    errors: int
    open_now: int


class ErrorKind(msgspec.Struct, kw_only=True):
    """One kind of error."""

    kind: str
    """What precedes the colon of the reason."""
    name: str
    """The phase, span or session it ended."""
    count: int
    first_ns: int
    last_ns: int
    first_step: int | None
    example: str
    """A whole reason."""
    example_id: int
    """The span that ended so first."""
    example_session: int | None


class Phases(msgspec.Struct, kw_only=True):
    """Phases by total time, the most first, and the errors that ended spans."""

    scope: str
    grouped_by: str
    lines: list[PhaseLine]
    errors: list[ErrorKind]


class _Line(PhaseLine, kw_only=True):
    queue_ns: int | None = None
    queued_ns: int | None = None
    queued: int = 0


def in_scope(source: Source, scope: StepScope, session_id: str) -> tuple[str, dict[str, Value]]:
    """Give the condition that a span's session counts for the steps of a scope."""
    if scope.first is None or scope.last is None:
        return "TRUE", {}
    chosen = f"""
        SELECT session_id FROM ({charged_sessions(source)}) AS scoped
        WHERE charged_step BETWEEN $first AND $last"""
    table, dot, _ = session_id.rpartition(".")
    low, high = charged_extent(source, scope.first, scope.last)
    return (
        f"{session_id} IN ({chosen}) AND {table}{dot}recorded_start_ns BETWEEN $low AND $high",
        {"first": scope.first, "last": scope.last, "low": low, "high": high},
    )


def phases(source: Source, scope: StepScope, by: Grouping = "name") -> Phases:
    """Tell how long phases take.

    What is open or lost counts as in hotspots; percentiles are of those that were measured.

    Args:
        source: The run.
        scope: Which steps' sessions.
        by: What to group phases of one name by.
    """
    rank = source.dialect.rank
    text = "VARCHAR" if source.dialect.name == "duckdb" else "Nullable(String)"
    group = _GROUPS[by].format(text=text)
    where, values = in_scope(source, scope, "p.session_id")
    measured = "CASE WHEN p.status <> 'lost' THEN p.duration_ns ELSE NULL END"
    length = "(greatest(coalesce(p.end_ns, $now), p.start_ns) - p.start_ns)"
    queue = "CASE WHEN p.status <> 'lost' AND p.end_ns IS NOT NULL THEN p.queue_ns ELSE NULL END"
    sql = f"""
        SELECT p.name AS name, {group} AS "group", count(*) AS count,
            count({measured}) AS measured, sum({length}) AS total_ns,
            coalesce({rank(measured, 50)}, 0) AS p50_ns, {rank(measured, 95)} AS p95_ns,
            {rank(measured, 99)} AS p99_ns, coalesce(max({measured}), 0) AS max_ns,
            {rank(queue, 50)} AS queue_p50_ns, {rank(queue, 95)} AS queue_p95_ns,
            count({queue}) AS queued, sum({queue}) AS queue_ns,
            sum(CASE WHEN p.queue_ns IS NULL THEN NULL ELSE {measured} END) AS queued_ns,
            CAST(NULL AS {text}) AS queue_share,
            sum(CASE WHEN p.status = 'error' THEN 1 ELSE 0 END) AS errors,
            sum(CASE WHEN p.status = 'open' THEN 1 ELSE 0 END) AS open_now
        FROM phases AS p LEFT JOIN processes AS w ON p.process = w.process
        WHERE {where}
        GROUP BY p.name, {group}
        ORDER BY total_ns DESC, name, "group" """
    lines = [_finish(line) for line in fetch(source, _Line, sql, now=source.now_ns, **values)]
    return Phases(scope=scope.text, grouped_by=by, lines=lines, errors=_error_kinds(source, scope))


def _finish(line: _Line) -> PhaseLine:
    if line.measured < NEEDED_FOR_P95:
        line.p95_ns = None
    if line.measured < NEEDED_FOR_P99:
        line.p99_ns = None
    if line.queued < NEEDED_FOR_P95:
        line.queue_p95_ns = None
    if line.queued_ns:
        line.queue_share = (line.queue_ns or 0) / line.queued_ns
    values = {name: getattr(line, name) for name in PhaseLine.__struct_fields__}
    return PhaseLine(**values)


def _error_kinds(source: Source, scope: StepScope) -> list[ErrorKind]:
    where, values = in_scope(source, scope, "session_id")
    colon = "position(':' IN reason)"
    kind = f"CASE WHEN {colon} > 0 THEN substring(reason, 1, {colon} - 1) ELSE reason END"
    alike = "OVER (PARTITION BY error_kind, name)"
    sql = f"""
        WITH failed AS (
            SELECT coalesce({kind}, 'unknown') AS error_kind, name, end_ns, step, span_id,
                session_id, coalesce(reason, 'unknown') AS example
            FROM spans WHERE status = 'error' AND {BLAMED} AND {where}
        ), ranked AS (
            SELECT error_kind, name, example, span_id AS example_id, session_id AS example_session,
                count(*) {alike} AS count, min(end_ns) {alike} AS first_ns,
                max(end_ns) {alike} AS last_ns, min(step) {alike} AS first_step,
                row_number() OVER (PARTITION BY error_kind, name ORDER BY end_ns, span_id) AS place
            FROM failed
        )
        SELECT error_kind AS kind, name, count, first_ns, last_ns, first_step, example, example_id,
            example_session
        FROM ranked WHERE place = 1 ORDER BY count DESC, error_kind, name LIMIT 100"""
    return fetch(source, ErrorKind, sql, **values)


def phase_unions(source: Source, sessions: Sequence[SessionRow]) -> Mapping[int, Mapping[str, int]]:
    """Give for each session how long its phases took, by name; overlaps count once."""
    key = "unions", frozenset(one.span_id for one in sessions)
    return shared(source, key, lambda: _unions(source, sessions)) if sessions else {}


def _unions(source: Source, sessions: Sequence[SessionRow]) -> dict[int, dict[str, int]]:
    low, high = extent(source, sessions)
    unions: dict[int, dict[str, int]] = {}
    for ids in in_batches([one.span_id for one in sessions]):
        sql = f"""
            SELECT session_id, name, start_ns, coalesce(end_ns, $now) AS end_ns FROM phases
            WHERE {one_of(source, "session_id")}
                AND recorded_start_ns BETWEEN $low AND $high
            ORDER BY session_id, name, start_ns"""
        values = bound_ids(ids)
        columns = source.query(sql, **values, now=source.now_ns, low=low, high=high).to_pydict()
        _add_unions(zip(*columns.values(), strict=True), unions)
    return unions


def _add_unions(
    rows: Iterable[tuple[int, str, int, int]], unions: dict[int, dict[str, int]]
) -> None:
    """Add up times that come by session, name and start."""
    last: tuple[int, str] | None = None
    covered_ns = 0
    for session_id, name, start_ns, end_ns in rows:
        if last != (session_id, name):
            last = session_id, name
            covered_ns = start_ns
            of_session = unions.setdefault(session_id, {})
            of_session[name] = 0
        if end_ns > (free_ns := max(start_ns, covered_ns)):
            of_session[name] += end_ns - free_ns
            covered_ns = end_ns
