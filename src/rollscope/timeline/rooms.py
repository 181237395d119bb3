"""Where on the lanes there is room: which rows each depth of a lane has, and what stands there.

A span gets the first row of its depth that has room for it, else a row of its own at the bottom.
Most that is new comes behind all that its line has, so for each line it is enough to know how far
it reaches; only where that does not settle it are the spans themselves looked at.
"""

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from typing import Final

import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import Part, Times
from rollscope.timeline.merging import line_codes
from rollscope.timeline.sorting import find_lines, line_crowds, order_spans

__all__ = ["Rooms", "Stretches"]

_MOST_ROWS: Final = 0xFFFF
_LONG_AGO: Final = -(2**62)


class Stretches:
    """The stretches of one line that spans cover, in order."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def has_room(self, start: int, end: int) -> bool:
        """Say whether nothing is in the way of a span."""
        place = bisect_right(self.ends, start)
        return place >= len(self.starts) or self.starts[place] >= end

    def busy_until(self, start: int, end: int) -> int | None:
        """Say until when nothing like a span can begin here; None if it has room."""
        place = bisect_right(self.ends, start)
        if place >= len(self.starts) or self.starts[place] >= end:
            return None
        return self.ends[place] if self.starts[place] <= start else start

    def add(self, start: int, end: int) -> None:
        """Cover a stretch."""
        place = bisect_left(self.starts, start)
        while place < len(self.starts) and self.starts[place] == start and self.ends[place] < end:
            place += 1
        self.starts.insert(place, start)
        self.ends.insert(place, end)

    def change(self, start: int, end: int) -> None:
        """Let the last stretch that began at `start` end at another time."""
        self.ends[bisect_right(self.starts, start) - 1] = max(end, start)

    def remove(self, start: int) -> None:
        """Cover the last stretch that began at `start` no more."""
        place = bisect_right(self.starts, start) - 1
        del self.starts[place], self.ends[place]


class Rooms:
    """The rows of every lane; what may still change is known to it one by one.

    Args:
        base: What has a place already.
        depths: How deep the spans of each line of it are.
    """

    def __init__(self, base: Part, depths: npt.NDArray[np.uint8]) -> None:
        self.parts: tuple[Part, ...] = (base,)
        """What has ended, by line; kept up to date by whoever adds to it."""
        self._base, self._depths = base, depths
        self._rows: dict[int, list[int]] = {}
        """(lane, depth) to its rows."""
        self._row_counts: dict[int, int] = {}
        self._new_depths: dict[int, int] = {}
        """(lane, row) to its depth, for rows that were not there at first."""
        self._reached: dict[int, int] = {}
        """(lane, row) to when the last of what has ended did so."""
        self._open: dict[int, Stretches] = {}
        """(lane, row) to what may still change there."""

    # --- what may still change ------------------------------------------------------------------

    def hold(self, lane: int, row: int, start: int, end: int) -> None:
        """Keep the place of a span that may still change."""
        self._open.setdefault(lane << 16 | row, Stretches()).add(start, end)

    def adopt_row(self, lane: int, row: int, depth: int) -> None:
        """Learn of a row that only open spans stand on."""
        rows = self._rows_of(lane << 8 | depth)
        if row not in rows:
            rows.append(row)
            self._new_depths[lane << 16 | row] = depth
            self._row_counts[lane] = max(self._row_counts[lane], row + 1)

    def change(self, lane: int, row: int, start: int, end: int) -> None:
        """Let a span that is held end at another time."""
        self._open[lane << 16 | row].change(start, end)

    def let_go(self, lane: int, row: int, start: int, end: int) -> None:
        """Hold a span no more: it has ended for good."""
        line = lane << 16 | row
        held = self._open[line]
        held.remove(start)
        if not held.starts:
            del self._open[line]
        self._reached[line] = max(self._reach(line), end)

    def can_grow(self, lane: int, row: int, span: tuple[int, int], end: int) -> bool:
        """Say whether nothing else begins before a span that is held would end now."""
        start, ends_now = span
        starts = self._open[lane << 16 | row].starts
        between = bisect_left(starts, end) - bisect_left(starts, ends_now)
        is_itself = start == ends_now
        return between == is_itself and not any(
            np.diff(np.searchsorted(part.start[first:last], [ends_now, end]))[0]
            for part in self.parts
            for first, last in [_bounds(part, lane << 16 | row)]
        )

    # --- rows for what is new -------------------------------------------------------------------

    def place(
        self,
        lane: npt.NDArray[np.uint32],
        depth: npt.NDArray[np.uint8],
        start: Times,
        end: Times,
        is_final: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.uint16]:
        """Give each of some spans its row.

        Args:
            lane: The lane of each.
            depth: How deep it is there.
            start: When it begins.
            end: When it ends.
            is_final: Whether it has ended for good; the others have to be held afterwards.
        """
        rows = np.zeros(len(lane), np.uint16)
        if not len(lane):
            return rows
        codes, line = find_lines(lane, depth)
        order = order_spans(line, start, end)
        line, start, end, is_final = line[order], start[order], end[order], is_final[order]
        first = np.concatenate([[0], np.flatnonzero(np.diff(line)) + 1])
        is_crowded = np.logical_or.reduceat(line_crowds(line, start, end) >= 0, first)
        groups = zip(
            codes[line[first]].tolist(),
            first.tolist(),
            [*first[1:].tolist(), len(order)],
            is_crowded.tolist(),
            start[first].tolist(),
            np.maximum.reduceat(end, first).tolist(),
            np.maximum.reduceat(np.where(is_final, end, _LONG_AGO), first).tolist(),
            strict=True,
        )
        for code, low, high, has_crowd, begins, ends, reaches in groups:
            row = None if has_crowd else self._clear_row(code, begins, ends)
            if row is not None:
                rows[order[low:high]] = row
                self._reach_to(code >> 8 << 16 | row, reaches)
            else:
                own = slice(low, high)
                rows[order[own]] = self._place_each(code, start[own], end[own], is_final[own])
        return rows

    def _clear_row(self, code: int, begins: int, ends: int) -> int | None:
        """Give the first row of a depth if nothing there is later than a time, or in the way."""
        rows = self._rows_of(code)
        if not rows:
            return self._new_row(code)
        line = code >> 8 << 16 | rows[0]
        held = self._open.get(line)
        is_clear = self._reach(line) <= begins and (held is None or held.has_room(begins, ends))
        return rows[0] if is_clear else None

    def _place_each(
        self, code: int, start: Times, end: Times, is_final: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.uint16]:
        """Give spans of one lane and depth, in order of their start, a row one by one."""
        top = code >> 8 << 16
        rows, since = self._rows_of(code), int(start[0])
        covered = [self._covered(top | row, since) for row in rows]
        free, busy = list(range(len(rows))), list[tuple[int, int]]()
        order = np.lexsort((end, start))
        columns = (start[order], end[order], is_final[order])
        found = []
        for begins, ends, has_ended in zip(*(column.tolist() for column in columns), strict=True):
            while busy and busy[0][0] <= begins:
                heappush(free, heappop(busy)[1])
            while free:
                place = heappop(free)
                until = covered[place].busy_until(begins, ends)
                if until is None:
                    break
                heappush(busy, (until, place))
            else:
                place = len(rows)
                self._new_row(code)
                covered.append(Stretches())
            covered[place].add(begins, ends)
            heappush(busy, (ends, place))
            found.append(rows[place])
            if has_ended:
                self._reach_to(top | rows[place], ends)
        placed = np.empty(len(start), np.uint16)
        placed[order] = found
        return placed

    def _covered(self, line: int, since: int) -> Stretches:
        """Give what is covered of a line after a time."""
        stretches = Stretches()
        if self._reach(line) > since:
            for part in self.parts:
                first, last = _bounds(part, line)
                first += int(np.searchsorted(part.end[first:last], since, side="right"))
                for start, end in zip(
                    part.start[first:last].tolist(), part.end[first:last].tolist(), strict=True
                ):
                    stretches.add(start, end)
        held = self._open.get(line)
        if held is not None:
            for start, end in zip(held.starts, held.ends, strict=True):
                stretches.add(start, end)
        return stretches

    def _reach(self, line: int) -> int:
        reached = self._reached.get(line)
        if reached is None:
            first, last = _bounds(self._base, line)
            reached = self._reached[line] = (
                int(self._base.end[last - 1]) if last > first else _LONG_AGO
            )
        return reached

    def _reach_to(self, line: int, end: int) -> None:
        if end > self._reach(line):
            self._reached[line] = end

    def _rows_of(self, code: int) -> list[int]:
        rows = self._rows.get(code)
        if rows is None:
            base, lane = self._base, code >> 8
            low, high = np.searchsorted(base.line_lane, [lane, lane + 1]).tolist()
            if lane not in self._row_counts:
                self._row_counts[lane] = int(base.line_row[high - 1]) + 1 if high > low else 0
            rows = self._rows[code] = base.line_row[low:high][
                self._depths[low:high] == code & 0xFF
            ].tolist()
        return rows

    def _new_row(self, code: int) -> int:
        lane = code >> 8
        rows = self._rows_of(code)
        row = self._row_counts[lane]
        self._row_counts[lane] = min(row + 1, _MOST_ROWS)
        rows.append(row)
        self._new_depths[lane << 16 | row] = code & 0xFF
        return row

    def depths_in(self, part: Part) -> npt.NDArray[np.uint8]:
        """Say how deep the spans of each line of a part are."""
        codes, known = line_codes(part), line_codes(self._base)
        places = np.searchsorted(known, codes)
        depths = np.zeros(len(codes), np.uint8)
        is_known = np.append(known, -1)[places] == codes
        depths[is_known] = self._depths[places[is_known]]
        new = np.flatnonzero(~is_known)
        depths[new] = [self._new_depths[code] for code in codes[new].tolist()]
        return depths


def _bounds(part: Part, line: int) -> tuple[int, int]:
    """Give where a line begins and ends in a part; twice the same if it has none."""
    low, high = np.searchsorted(part.line_lane, [line >> 16, (line >> 16) + 1]).tolist()
    found = low + int(np.searchsorted(part.line_row[low:high], line & 0xFFFF))
    if found >= high or part.line_row[found] != line & 0xFFFF:
        return 0, 0
    return int(part.bounds[found]), int(part.bounds[found + 1])
