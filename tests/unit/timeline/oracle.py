"""What the timeline must show, found out the slow way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from rollscope.timeline import decode_frame
from rollscope.timeline.columns import NEVER, NO_SESSION, Part, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollscope.timeline import TileQuery, TimelineIndex

__all__ = ["Page", "brute_cells", "brute_exact", "check_lines", "contents", "stored_spans"]

OPEN = 0xFFFFFFFF


def all_rows(index: TimelineIndex) -> Rows:
    """Give every span of an index."""
    return Rows.join([part.all_rows() for part in index.parts])


def contents(index: TimelineIndex) -> Counter[tuple[Any, ...]]:
    """Say what is there, whatever its lane: group, session, name, times, flags."""
    rows, ids = all_rows(index), index.session_ids.tolist()
    groups = [index.lanes.groups.words[group] for group in index.lanes.group]
    return Counter(
        (
            groups[lane],
            None if session == NO_SESSION else ids[session],
            index.names.words[name],
            start,
            None if end == NEVER else end,
            flags,
        )
        for start, end, session, name, flags, lane in zip(
            rows.start.tolist(),
            rows.end.tolist(),
            rows.session.tolist(),
            rows.name.tolist(),
            rows.flags.tolist(),
            rows.lane.tolist(),
            strict=True,
        )
    )


def stored_spans(index: TimelineIndex) -> Counter[tuple[Any, ...]]:
    """Give what the store holds: session, name, start, end."""
    sql = "SELECT session_id, name, start_ns, end_ns, status FROM spans"
    return Counter(
        (
            row["session_id"],
            row["name"],
            row["start_ns"],
            None if row["status"] == "open" else max(row["end_ns"], row["start_ns"]),
        )
        for row in index.store.query(sql).to_pylist()
    )


def check_lines(index: TimelineIndex) -> None:
    """Make sure that nothing overlaps on a line, and that each session has one lane."""
    part = Part(all_rows(index))
    for line in range(part.lines):
        low, high = part.bounds[line], part.bounds[line + 1]
        assert (part.start[low + 1 : high] >= part.end[low : high - 1]).all()
    rows = part.all_rows()
    inside = rows.session != NO_SESSION
    pairs = set(zip(rows.session[inside].tolist(), rows.lane[inside].tolist(), strict=True))
    assert len(pairs) == len({session for session, _ in pairs})


def _in_view(index: TimelineIndex, query: TileQuery) -> Iterable[tuple[int, ...]]:
    rows = all_rows(index)
    position = {
        lane: place
        for place, lane in enumerate(
            index.lanes.order[query.first : query.first + query.lanes].tolist()
        )
    }
    for start, end, lane, row, name, flags in zip(
        rows.start.tolist(),
        rows.end.tolist(),
        rows.lane.tolist(),
        rows.row.tolist(),
        rows.name.tolist(),
        rows.flags.tolist(),
        strict=True,
    ):
        touches = start < query.t1_ns and (end > query.t0_ns or start >= query.t0_ns)
        if lane in position and touches:
            yield start, end, position[lane], row, name, flags


def _is_wide(start: int, end: int, query: TileQuery) -> bool:
    return (end - start) * query.width >= query.t1_ns - query.t0_ns


def brute_exact(index: TimelineIndex, query: TileQuery) -> Counter[tuple[int, ...]]:
    """Give the spans of at least a pixel."""
    return Counter(span for span in _in_view(index, query) if _is_wide(span[0], span[1], query))


def brute_cells(
    index: TimelineIndex, query: TileQuery, roles: list[int]
) -> dict[tuple[int, int, int], tuple[int, ...]]:
    """Give the cells: name, role, covered, count, longest, flags."""
    found: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
    window_ns = query.t1_ns - query.t0_ns
    for start, end, lane, row, name, flags in _in_view(index, query):
        if not _is_wide(start, end, query):
            pixel = max(start - query.t0_ns, 0) * query.width // window_ns
            found.setdefault((lane, row, pixel), []).append((name, end - start, flags))
    return {cell: _cell(spans, roles) for cell, spans in found.items()}


def _cell(spans: list[tuple[int, int, int]], roles: list[int]) -> tuple[int, ...]:
    names: Counter[int] = Counter()
    by_role: Counter[int] = Counter()
    for name, length, _ in spans:
        names[name] += length
        by_role[roles[name]] += length
    lengths = [length for _, length, _ in spans]
    flags = int(np.bitwise_or.reduce([flag for _, _, flag in spans]))
    return (
        min(names, key=lambda name: (-names[name], name)),
        min(by_role, key=lambda role: (-by_role[role], role)),
        sum(lengths),
        len(spans),
        max(lengths),
        flags,
    )


class Page:
    """A page that loaded a whole frame once and then lives on deltas."""

    def __init__(self, frame: bytes) -> None:
        self.header: dict[str, Any] = {}
        self._spans: list[list[Any]] = []
        self._handles: dict[int, list[Any]] = {}
        self._take(frame)

    def apply(self, delta: bytes) -> None:
        """Take in a delta."""
        columns = self._take(delta)
        for handle, dur, flags in zip(
            columns["ended_handle"], columns["ended_dur"], columns["ended_flags"], strict=True
        ):
            self._handles[handle][1:3] = dur, flags

    def _take(self, frame: bytes) -> dict[str, list[int]]:
        read = decode_frame(frame)
        self.header = read.header
        columns = {name: column.tolist() for name, column in read.columns.items()}
        halves = columns["session_ids"]
        ids = [low | high << 32 for low, high in zip(halves[::2], halves[1::2], strict=True)]
        names = ("start", "dur", "flags", "name", "session", "lane", "row")
        new = [list(row) for row in zip(*(columns[name] for name in names), strict=True)]
        for row in new:
            row[3] = self.header["names"][row[3]]
            row[4] = None if row[4] == NO_SESSION else ids[row[4]]
        for place, handle in zip(columns["open_index"], columns["open_handle"], strict=True):
            self._handles[handle] = new[place]
        self._spans += new
        return columns

    def contents(self) -> Counter[tuple[Any, ...]]:
        """Say what the page shows."""
        return Counter(tuple(span) for span in self._spans)
