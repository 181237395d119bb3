"""Sorting spans by lane, row and start, after each has got a row.

A row is a depth, or one of several where spans of one depth overlap. A few lanes are sorted at a
time, since what sorting needs beside the spans themselves is three times as much as they are.
"""

from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import NEVER, Part, Rows, Times
from rollscope.timeline.reading import Block
from rollscope.timeline.slots import find_crowds, stack_rows

__all__ = ["Sorted", "Unsorted", "find_lines", "line_crowds", "order_spans", "sort_spans"]

_AT_ONCE: Final = 1_000_000
I64 = npt.NDArray[np.int64]


class Unsorted:
    """Spans as they come, with the lanes that they stand on."""

    def __init__(self, size: int) -> None:
        self._filled = 0
        self.start = np.empty(size, np.int64)
        self.end = np.empty(size, np.int64)
        self.session = np.empty(size, np.uint32)
        self.lane = np.empty(size, np.uint32)
        self.name = np.empty(size, np.uint16)
        self.flags = np.empty(size, np.uint8)
        self.depth = np.empty(size, np.uint8)

    def __len__(self) -> int:
        return len(self.start)

    def add(
        self, block: Block, session: npt.NDArray[np.uint32], lane: npt.NDArray[np.uint32]
    ) -> None:
        """Add spans behind those that are there."""
        into = slice(self._filled, self._filled + len(block))
        self.start[into], self.end[into] = block.start, block.end
        self.session[into], self.lane[into] = session, lane
        self.name[into], self.flags[into] = block.name, block.flags
        self.depth[into] = block.depth
        self._filled = into.stop


class Sorted(msgspec.Struct):
    """What has settled as a part, and the rest."""

    part: Part
    depths: npt.NDArray[np.uint8]
    """How deep the spans of each line of the part are."""
    open_places: I64
    """Which of the spans that have not settled stands at each row of the following."""
    open_rows: Rows
    open_depths: npt.NDArray[np.uint8]
    unsealed: I64
    """Places in the part of spans that are in no segment yet."""


class _Chunk(msgspec.Struct):
    """Some lanes, sorted."""

    order: I64
    """Which span stands at each place."""
    line: I64
    """The line of each, by number."""
    lane: npt.NDArray[np.uint32]
    row: npt.NDArray[np.uint16]
    depth: npt.NDArray[np.uint8]
    """Of each line."""


def sort_spans(spans: Unsorted, *, settled: int, sealed: int) -> Sorted:
    """Give each span a row and sort all.

    Args:
        spans: The spans.
        settled: How many of them, from the first on, will not change any more.
        sealed: How many of those, from the first on, are in segments.
    """
    columns = ("start", "end", "session", "name", "flags")
    out: dict[str, Any] = {name: np.empty(settled, getattr(spans, name).dtype) for name in columns}
    lines: list[tuple[npt.NDArray[Any], ...]] = []
    rest: list[tuple[I64, Rows, npt.NDArray[np.uint8]]] = []
    unsealed = [np.zeros(0, np.int64)]
    filled = 0
    for members in _lane_ranges(spans.lane):
        chunk = _sort_chunk(spans, members)
        is_open = chunk.order >= settled
        if is_open.any():
            rest.append(_open_part(spans, chunk, is_open, settled))
            chunk.order, chunk.line = chunk.order[~is_open], chunk.line[~is_open]
        into = slice(filled, filled + len(chunk.order))
        for name in columns:
            out[name][into] = getattr(spans, name)[chunk.order]
        if sealed < settled:
            unsealed.append(np.flatnonzero(chunk.order >= sealed) + filled)
        counts = np.bincount(chunk.line, minlength=len(chunk.lane))
        used = counts > 0
        lines.append((chunk.lane[used], chunk.row[used], chunk.depth[used], counts[used]))
        filled = into.stop
    lane, row, depth, counts = (
        np.concatenate([np.zeros(0, kind), *(line[place] for line in lines)])
        for place, kind in enumerate((np.uint32, np.uint16, np.uint8, np.int64))
    )
    part = Part.assembled(out, lane, row, np.concatenate([[0], np.cumsum(counts)]))
    return Sorted(
        part,
        depth,
        np.concatenate([np.zeros(0, np.int64), *(one[0] for one in rest)]),
        Rows.join([Rows.none(), *(one[1] for one in rest)]),
        np.concatenate([np.zeros(0, np.uint8), *(one[2] for one in rest)]),
        np.concatenate(unsealed),
    )


def _lane_ranges(lane: npt.NDArray[np.uint32]) -> list[I64]:
    """Divide the spans among ranges of lanes, so that each has not many more than can be sorted."""
    if len(lane) <= _AT_ONCE:
        return [np.arange(len(lane))] if len(lane) else []
    before = np.cumsum(np.bincount(lane))
    chunk_of = (before // _AT_ONCE).astype(np.uint16)
    chunk = chunk_of[lane]
    return [
        found
        for number in range(int(chunk_of[-1]) + 1)
        if len(found := np.flatnonzero(chunk == number))
    ]


def _open_part(
    spans: Unsorted, chunk: _Chunk, is_open: npt.NDArray[np.bool_], settled: int
) -> tuple[I64, Rows, npt.NDArray[np.uint8]]:
    places, line = chunk.order[is_open], chunk.line[is_open]
    rows = Rows(
        start=spans.start[places],
        end=spans.end[places],
        session=spans.session[places],
        name=spans.name[places],
        flags=spans.flags[places],
        lane=chunk.lane[line],
        row=chunk.row[line],
    )
    return places - settled, rows, chunk.depth[line]


def _sort_chunk(spans: Unsorted, members: I64) -> _Chunk:
    codes, line = find_lines(spans.lane[members], spans.depth[members])
    start, end = spans.start[members], spans.end[members]
    order = order_spans(line, start, end)
    line, start, end = line[order], start[order], end[order]
    levels = stack_rows(line_crowds(line, start, end), start, end)
    final, code = _number_lines(codes, line, levels)
    if levels.any():
        settled = _merge(final, start, levels)
        order, final = order[settled], final[settled]
    lane = code >> 8
    depth = (code & 0xFF).astype(np.uint8)
    return _Chunk(members[order], final, lane.astype(np.uint32), _rows_in_lanes(lane), depth)


def find_lines(lane: npt.NDArray[np.uint32], depth: npt.NDArray[np.uint8]) -> tuple[I64, I64]:
    """Number what occurs of lane and depth, in order; a table is quicker than to sort."""
    depths, low = int(depth.max()) + 1, int(lane.min())
    key = (lane - low).astype(np.int64) * depths + depth
    occurs = np.zeros((int(lane.max()) - low + 1) * depths, bool)
    occurs[key] = True
    found = np.flatnonzero(occurs)
    return (found // depths + low) << 8 | found % depths, (np.cumsum(occurs) - 1)[key]


def order_spans(line: I64, start: Times, end: Times) -> I64:
    """Sort by line and start."""
    if not len(start):
        return np.zeros(0, np.int64)
    low = int(start.min())
    time_bits = max(int(start.max()) - low, 1).bit_length()
    if time_bits + int(line.max()).bit_length() > 62:
        return np.lexsort((end, start, line))
    return np.argsort(line << time_bits | (start - low))


def line_crowds(line: I64, start: Times, end: Times) -> I64:
    """Find spans that overlap on one line, by the ranks of times so that lines stay apart."""
    if not len(start):
        return np.zeros(0, np.int64)
    low = int(start.min())
    ended = np.minimum(end, int(max(start.max(), end[end < NEVER].max(initial=0))) + 1)
    time_bits = max(int(ended.max()) - low, 1).bit_length()
    if time_bits + int(line.max()).bit_length() <= 62:
        lifted = line << time_bits
        return find_crowds(lifted + (start - low), lifted + (ended - low))
    crowds = np.full(len(line), -1, np.int64)
    edges = np.flatnonzero(np.diff(line)) + 1
    for places in np.split(np.arange(len(line)), edges):
        found = find_crowds(start[places], end[places])
        crowds[places] = np.where(found < 0, -1, found + places[0])
    return crowds


def _number_lines(codes: I64, line: I64, levels: I64) -> tuple[I64, I64]:
    """Number lines by lane, depth and level; give the line of each span, and the code of each."""
    deepest = np.zeros(len(codes), np.int64)
    crowded = np.flatnonzero(levels)
    np.maximum.at(deepest, line[crowded], levels[crowded])
    first = np.cumsum(deepest + 1) - (deepest + 1)
    return first[line] + levels, np.repeat(codes, deepest + 1)


def _merge(final: I64, start: Times, levels: I64) -> I64:
    """Sort again where levels have moved spans to lines of their own; the others are in order."""
    stay = np.flatnonzero(levels == 0)
    move = np.flatnonzero(levels)
    move = move[np.lexsort((start[move], final[move]))]
    places = np.searchsorted(final[stay], final[move])
    return np.insert(stay, places, move)


def _rows_in_lanes(lane: I64) -> npt.NDArray[np.uint16]:
    """Number the lines of each lane from 0."""
    first = np.concatenate([[0], np.flatnonzero(lane[1:] != lane[:-1]) + 1])
    counts = np.diff(first, append=len(lane))
    row: I64 = np.arange(len(lane)) - np.repeat(first, counts)
    return np.minimum(row, 0xFFFF).astype(np.uint16)
