"""Where session time goes, by span path."""

from typing import Final, Literal, NamedTuple

import msgspec

from rollscope.analysis.hotspots import SEPARATOR, Hotspots, PathTotal, hotspots
from rollscope.analysis.ranks import NEEDED_FOR_P95, NEEDED_FOR_P99
from rollscope.answers.phases import in_scope
from rollscope.answers.scope import StepScope
from rollscope.answers.source import Source, fetch
from rollscope.store.dialect import Value

__all__ = ["HotspotAnswer", "HotspotGrouping", "find_hotspots"]

HotspotGrouping = Literal["path", "name", "host", "tool", "family"]

_GROUPS: Final[dict[HotspotGrouping, str]] = {
    "path": "CAST(NULL AS {text})",
    "name": "CAST(NULL AS {text})",
    "host": "w.host",
    "tool": "s.detail",
    "family": "s.family",
}


_UNLIKE_PARENTS: Final = frozenset[HotspotGrouping]({"tool", "family"})
"""Groupings in which a span may be in another group than its parent, so that what children cover
has to be found span by span."""


_LENGTH: Final = "(greatest(coalesce(s.end_ns, $now), s.start_ns) - s.start_ns)"
_IS_BELOW_ANOTHER: Final = "s.parent_path = '' AND s.kind <> 'session' AND s.parent_id IS NOT NULL"
"""A process knows no path of a parent that another one has recorded."""


class _Place(NamedTuple):
    """Where a span stands, as SQL."""

    path: str
    above: str
    """The path of its parent."""
    overlap: str
    """How much of it does not count as time of its parent."""
    join: str = ""


class HotspotAnswer(msgspec.Struct, kw_only=True):
    """Paths by self time, and what closes the sum."""

    scope: str
    grouped_by: str
    outside: bool
    hotspots: Hotspots


def find_hotspots(
    source: Source, scope: StepScope, by: HotspotGrouping = "path", *, outside: bool = False
) -> HotspotAnswer:
    """Tell where the time goes.

    Spans that are open count up to now, lost ones until their process was last heard of;
    percentiles are of those that were measured.

    Args:
        source: The run.
        scope: Which steps' sessions.
        by: How rows are grouped.
        outside: Look at what is not part of a session instead: trainers, syncs, services.
    """
    rank = source.dialect.rank
    text = "VARCHAR" if source.dialect.name == "duckdb" else "Nullable(String)"
    group = _GROUPS[by].format(text=text)
    where, values = _where(source, scope, outside=outside)
    measured = "CASE WHEN s.status <> 'lost' THEN s.duration_ns ELSE NULL END"
    top = "s.kind = 'session'" if not outside else "s.parent_path = ''"
    place = _Place("s.path", f"CASE WHEN {top} THEN NULL ELSE s.parent_path END", "s.overlap_ns")
    if not outside and _crosses_processes(source, where, values):
        place = _place_across(top, where)
    join, inside = "", f"CAST(NULL AS {text})"
    if by == "host":
        join = "LEFT JOIN processes AS w ON s.process = w.process"
    if by in _UNLIKE_PARENTS or (by == "host" and place.join):
        join += _children(place, where)
        inside = "sum(coalesce(c.covered_ns, 0))"
    sql = f"""
        SELECT {place.path} AS path, {place.above} AS parent_path, {group} AS "group",
            count(*) AS count, sum({_LENGTH}) AS total_ns, {rank(measured, 50)} AS p50_ns,
            {rank(measured, 95)} AS p95_ns, {rank(measured, 99)} AS p99_ns,
            max({measured}) AS max_ns, count({measured}) AS measured,
            sum(CASE WHEN s.status = 'error' THEN 1 ELSE 0 END) AS errors,
            sum(CASE WHEN s.status = 'open' THEN 1 ELSE 0 END) AS open_now,
            sum({_LENGTH} - {place.overlap}) AS covered_ns, {inside} AS inside_ns
        FROM spans AS s {place.join} {join}
        WHERE {where}
        GROUP BY {place.path}, {place.above}, {group}
        ORDER BY path, parent_path, "group" """
    totals = fetch(source, PathTotal, sql, now=source.now_ns, **values)
    _move_below(totals)
    for total in totals:
        if total.measured < NEEDED_FOR_P95:
            total.p95_ns = None
        if total.measured < NEEDED_FOR_P99:
            total.p99_ns = None
    found = hotspots(totals, by_name=by == "name")
    return HotspotAnswer(scope=scope.text, grouped_by=by, outside=outside, hotspots=found)


def _crosses_processes(source: Source, where: str, values: dict[str, Value]) -> bool:
    """Say whether a span in a session lies below one of another process."""
    sql = f"SELECT 1 FROM spans AS s WHERE {_IS_BELOW_ANOTHER} AND {where} LIMIT 1"
    return bool(source.query(sql, **values).num_rows)


def _move_below(totals: list[PathTotal]) -> None:
    """Let what lies deeper in another process follow the span that it lies in.

    Where that one has several parents, it follows the one with most time.
    """
    paths = {total.path for total in totals}
    moved: dict[str, PathTotal] = {}
    for total in sorted(totals, key=lambda total: total.total_ns):
        if total.parent_path:
            moved[total.path.removeprefix(total.parent_path + SEPARATOR)] = total
    for total in totals:
        if not total.parent_path or total.parent_path in paths:
            continue
        top = total.parent_path.partition(SEPARATOR)[0]
        if top in moved:
            above = moved[top].path.removesuffix(top)
            total.path, total.parent_path = above + total.path, above + total.parent_path


def _place_across(top: str, where: str) -> _Place:
    """Say where spans stand whose parents other processes may have recorded."""
    is_below = f"{_IS_BELOW_ANOTHER} AND a.path IS NOT NULL"
    shared = (
        "greatest(0, least(greatest(coalesce(s.end_ns, $now), s.start_ns), "
        "coalesce(a.end_ns, $now)) - greatest(s.start_ns, a.start_ns))"
    )
    return _Place(
        f"CASE WHEN {is_below} THEN concat(a.path, '{SEPARATOR}', s.path) ELSE s.path END",
        f"CASE WHEN {top} THEN NULL WHEN {is_below} THEN a.path ELSE s.parent_path END",
        f"CASE WHEN {is_below} THEN {_LENGTH} - {shared} ELSE s.overlap_ns END",
        f"""LEFT JOIN (
            SELECT p.span_id AS span_id, p.path AS path, p.start_ns AS start_ns,
                p.end_ns AS end_ns
            FROM spans AS p WHERE p.span_id IN (
                SELECT s.parent_id FROM spans AS s WHERE {_IS_BELOW_ANOTHER} AND {where}
            )
        ) AS a ON s.parent_id = a.span_id""",
    )


def _children(place: _Place, where: str) -> str:
    """Join what the children of each span cover of it."""
    return f""" LEFT JOIN (
            SELECT s.parent_id AS parent_id, sum({_LENGTH} - {place.overlap}) AS covered_ns
            FROM spans AS s {place.join} WHERE s.parent_id IS NOT NULL AND {where}
            GROUP BY s.parent_id
        ) AS c ON s.span_id = c.parent_id"""


def _where(source: Source, scope: StepScope, *, outside: bool) -> tuple[str, dict[str, Value]]:
    if not outside:
        where, values = in_scope(source, scope, "s.session_id")
        return f"s.session_id IS NOT NULL AND {where}", values
    # States say the same as spans, once more.
    where = "s.session_id IS NULL AND s.kind <> 'task' AND s.kind <> 'state'"
    if scope.first is None or scope.last is None:
        return where, {}
    steps: dict[str, Value] = {"first": scope.first, "last": scope.last}
    return f"{where} AND s.step BETWEEN $first AND $last", steps
