"""Where the time of all sessions goes, by span path, such that the parts make the whole."""

from collections.abc import Iterable, Sequence

import msgspec

__all__ = ["SEPARATOR", "Footer", "Hotspot", "Hotspots", "PathTotal", "hotspots"]

SEPARATOR = " / "
"""Between the names of a path."""


class PathTotal(msgspec.Struct, kw_only=True):
    """All spans of one path, as a query adds them up."""

    path: str
    parent_path: str | None = None
    """None for a session."""
    group: str | None = None
    """What rows are grouped by: a host, tool or task family."""
    count: int = 0
    measured: int = 0
    total_ns: int = 0
    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    max_ns: int | None = None
    errors: int = 0
    open_now: int = 0
    covered_ns: int = 0
    """How much of their parents' time they cover; where several overlap, it counts once."""
    inside_ns: int | None = None
    """How much of their own time their direct children cover. Needed where rows are grouped by what
    a span and its parent may differ in; otherwise the rows below tell it."""


class Hotspot(msgspec.Struct, kw_only=True):
    """One row."""

    path: str
    group: str | None
    count: int
    measured: int
    """Those that ended and were not cut off by a death; percentiles are of these."""
    total_ns: int
    self_ns: int
    """Their time less what their direct children cover."""
    share: float
    """Of all session time, by self time."""
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    errors: int
    error_share: float
    open_now: int


class Footer(msgspec.Struct, frozen=True):
    """What closes the sum: all self times are `session_ns` and `overlap_ns` together."""

    session_ns: int
    """The time of all sessions."""
    children_ns: int
    """The self time of all rows below sessions."""
    other_ns: int
    """Session time outside of any child."""
    overlap_ns: int
    """What counts more than once, for spans that overlap or outlive what they lie in."""


class Hotspots(msgspec.Struct):
    """Rows by self time, the most first, and what closes the sum."""

    rows: list[Hotspot]
    footer: Footer


_Key = tuple[str | None, str]


def hotspots(totals: Iterable[PathTotal], *, by_name: bool = False) -> Hotspots:
    """Tell where the time of all sessions goes.

    A row lies below the row of its parent path in its own group, or else in none.

    Args:
        totals: One for each group and path. Those below no path count as sessions.
        by_name: Take all paths together that end in the same name. Percentiles of several cannot
            be told from theirs, and become None.
    """
    given = list(totals)
    rows = {_key(total): _row(total) for total in given}
    paths = {total.path for total in given}
    session_ns = overlap_ns = other_ns = 0
    roots = []
    for total in given:
        own = rows[_key(total)]
        if total.inside_ns is not None:
            own.self_ns -= total.inside_ns
        if total.parent_path is None or total.parent_path not in paths:
            roots.append(own)
            session_ns += total.total_ns
            continue
        overlap_ns += total.total_ns - total.covered_ns
        parent = _parent(total, rows)
        if parent is not None and total.inside_ns is None:
            parent.self_ns -= total.covered_ns
    other_ns = sum(row.self_ns for row in roots)
    children_ns = sum(row.self_ns for row in rows.values()) - other_ns
    shown = _join(rows.values()) if by_name else list(rows.values())
    for row in shown:
        row.share = row.self_ns / session_ns if session_ns else 0.0
        row.error_share = row.errors / row.count if row.count else 0.0
    shown.sort(key=lambda row: (-row.self_ns, row.path, row.group or ""))
    return Hotspots(shown, Footer(session_ns, children_ns, other_ns, overlap_ns))


def _key(total: PathTotal) -> _Key:
    return total.group, total.path


def _parent(total: PathTotal, rows: dict[_Key, Hotspot]) -> Hotspot | None:
    assert total.parent_path is not None  # noqa: S101  (a root has none)
    own = rows.get((total.group, total.parent_path))
    return rows.get((None, total.parent_path)) if own is None else own


def _row(total: PathTotal) -> Hotspot:
    return Hotspot(
        path=total.path,
        group=total.group,
        count=total.count,
        measured=total.measured,
        total_ns=total.total_ns,
        self_ns=total.total_ns,
        share=0.0,
        p50_ns=total.p50_ns,
        p95_ns=total.p95_ns,
        p99_ns=total.p99_ns,
        max_ns=total.max_ns,
        errors=total.errors,
        error_share=0.0,
        open_now=total.open_now,
    )


def _join(rows: Iterable[Hotspot]) -> list[Hotspot]:
    by_name: dict[_Key, list[Hotspot]] = {}
    for row in rows:
        name = row.path.rsplit(SEPARATOR, 1)[-1]
        by_name.setdefault((row.group, name), []).append(row)
    return [_joined(name, alike) for (_, name), alike in by_name.items()]


def _joined(name: str, rows: Sequence[Hotspot]) -> Hotspot:
    first = rows[0]
    is_one = len(rows) == 1
    return Hotspot(
        path=name,
        group=first.group,
        count=sum(row.count for row in rows),
        measured=sum(row.measured for row in rows),
        total_ns=sum(row.total_ns for row in rows),
        self_ns=sum(row.self_ns for row in rows),
        share=0.0,
        p50_ns=first.p50_ns if is_one else None,
        p95_ns=first.p95_ns if is_one else None,
        p99_ns=first.p99_ns if is_one else None,
        max_ns=max((row.max_ns for row in rows if row.max_ns is not None), default=None),
        errors=sum(row.errors for row in rows),
        error_share=0.0,
        open_now=sum(row.open_now for row in rows),
    )
