"""The young part of an index: what is open, what ended since the last build, where it stands.

Whatever has a place keeps it. A new session takes the lowest slot of its unit that is free, a new
span the first line of its depth that has room for it, else a line of its own at the bottom.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.building import Layout
from rollscope.timeline.columns import STUCK, Part, Rows

__all__ = ["CannotFollow", "Placed", "Young"]

_MOST_ROWS: Final = 0xFFFF


class CannotFollow(Exception):
    """What came cannot be added to what is placed; everything has to be placed anew."""


class Placed(msgspec.Struct):
    """A span that came after the build."""

    start: int
    end: int
    session: int
    name: int
    flags: int
    lane: int
    row: int
    handle: int
    """What names it while it is open; 0 once it has ended for good."""


class _Line:
    """The stretches of one line that young spans cover, in order."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def has_room(self, start: int, end: int) -> bool:
        place = bisect_right(self.ends, start)
        return place >= len(self.starts) or self.starts[place] >= end

    def add(self, start: int, end: int) -> None:
        place = bisect_left(self.starts, start)
        while place < len(self.starts) and self.starts[place] == start and self.ends[place] < end:
            place += 1
        self.starts.insert(place, start)
        self.ends.insert(place, end)

    def end(self, start: int, end: int) -> None:
        """Let the stretch that began at `start` and never ended end."""
        place = bisect_right(self.starts, start) - 1
        self.ends[place] = max(end, start)


class Young:
    """Places what is new and keeps it until it is merged into the sorted part."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.open: dict[int, Placed] = {}
        """Span id to what is known of it, for spans whose end may still come."""
        self.ended: list[Placed] = []
        self._lines: dict[int, _Line] = {}
        self._rows: dict[int, list[int]] = {}
        """(lane, depth) to its rows."""
        self._new_depths: dict[int, int] = {}
        """(lane, row) to its depth, for rows that the sorted part does not have."""
        self._row_counts: dict[int, int] = {}
        self._handles = 0
        self._free: dict[int, list[tuple[int, int]]] = {}
        self._adopt(layout)

    def _adopt(self, layout: Layout) -> None:
        """Take over what was open at the build, where the build has put it."""
        rows = layout.open_rows
        columns = [getattr(rows, field).tolist() for field in Rows.__struct_fields__]
        known = zip(layout.open_ids.tolist(), layout.open_depths.tolist(), *columns, strict=True)
        for span_id, depth, *values in known:
            span = Placed(*(*values, 0))
            of_depth = self._rows_of(span.lane << 8 | depth)
            if span.row not in of_depth:
                of_depth.append(span.row)
                self._new_depths[span.lane << 16 | span.row] = depth
                self._row_counts[span.lane] = max(self._row_counts[span.lane], span.row + 1)
            self._keep(span, span_id)

    def __len__(self) -> int:
        return len(self.open) + len(self.ended)

    def place(self, span: Placed, depth: int, span_id: int | None) -> None:
        """Give a span its row; one with an id may still change."""
        code = span.lane << 8 | depth
        rows = self._rows_of(code)
        for row in rows:
            if self._has_room(span.lane, row, span.start, span.end):
                span.row = row
                break
        else:
            span.row = self._new_row(span.lane)
            rows.append(span.row)
            self._new_depths[span.lane << 16 | span.row] = depth
        self._keep(span, span_id)

    def _keep(self, span: Placed, span_id: int | None) -> None:
        line = self._lines.setdefault(span.lane << 16 | span.row, _Line())
        line.add(span.start, span.end)
        if span_id is None:
            self.ended.append(span)
            return
        self._handles += 1
        span.handle = self._handles
        self.open[span_id] = span

    def end(self, span_id: int, end: int, flags: int) -> Placed:
        """Let an open span end for good."""
        span = self.open.pop(span_id)
        self.change(span, end, flags)
        self.ended.append(span)
        return span

    def change(self, span: Placed, end: int, flags: int) -> None:
        """Note what is known of a span now.

        Raises:
            CannotFollow: It lasted longer than was thought, and its place has been taken.
        """
        if end > span.end and not self._can_grow(span, end):
            raise CannotFollow
        if end != span.end:
            self._lines[span.lane << 16 | span.row].end(span.start, end)
        span.end, span.flags = end, flags

    def mark_stuck(self, ids: Iterable[int]) -> list[Placed]:
        """Set the flag on these and clear it on all others; give those that changed."""
        wanted = set(ids)
        changed = []
        for span_id, span in self.open.items():
            flags = span.flags & ~STUCK | (STUCK if span_id in wanted else 0)
            if flags != span.flags:
                span.flags = flags
                changed.append(span)
        return changed

    def rows(self) -> Rows:
        """Give all of it as columns."""
        spans = [*self.ended, *self.open.values()]
        columns = [[getattr(span, field) for span in spans] for field in Rows.__struct_fields__]
        none = Rows.none()
        return Rows(
            *(
                np.array(values, getattr(none, field).dtype)
                for values, field in zip(columns, Rows.__struct_fields__, strict=True)
            )
        )

    def settle(self, part: Part) -> None:
        """Forget what has ended: the sorted part holds it now."""
        self._layout.depths = self.depths_in(part)
        self._layout.part = part
        self._new_depths.clear()
        self.ended.clear()
        self._lines.clear()
        for span in self.open.values():
            line = self._lines.setdefault(span.lane << 16 | span.row, _Line())
            line.add(span.start, span.end)

    def depths_in(self, part: Part) -> npt.NDArray[np.uint8]:
        """Say how deep the spans of each line of a part are."""
        old = self._layout.part
        codes = part.line_lane.astype(np.int64) << 16 | part.line_row
        known = old.line_lane.astype(np.int64) << 16 | old.line_row
        depths = np.zeros(len(codes), np.uint8)
        is_known = np.isin(codes, known)
        depths[is_known] = self._layout.depths[np.searchsorted(known, codes[is_known])]
        for place in np.flatnonzero(~is_known).tolist():
            depths[place] = self._new_depths[int(codes[place])]
        return depths

    def _rows_of(self, code: int) -> list[int]:
        rows = self._rows.get(code)
        if rows is None:
            part, lane = self._layout.part, code >> 8
            low, high = np.searchsorted(part.line_lane, [lane, lane + 1])
            if lane not in self._row_counts:
                self._row_counts[lane] = int(part.line_row[high - 1]) + 1 if high > low else 0
            depths = self._layout.depths
            rows = self._rows[code] = [
                int(part.line_row[line]) for line in range(low, high) if depths[line] == code & 0xFF
            ]
        return rows

    def _new_row(self, lane: int) -> int:
        row = self._row_counts.get(lane, 0)
        self._row_counts[lane] = min(row + 1, _MOST_ROWS)
        return row

    def _has_room(self, lane: int, row: int, start: int, end: int) -> bool:
        line = self._lines.get(lane << 16 | row)
        if line is not None and not line.has_room(start, end):
            return False
        return self._has_room_in_part(lane, row, start, end)

    def _can_grow(self, span: Placed, end: int) -> bool:
        """Say whether nothing else begins before a span would end now."""
        starts = self._lines[span.lane << 16 | span.row].starts
        between = bisect_left(starts, end) - bisect_left(starts, span.end)
        is_itself = span.start == span.end
        first, last = self._bounds_in_part(span.lane, span.row)
        sorted_starts = self._layout.part.start[first:last]
        low, high = np.searchsorted(sorted_starts, [span.end, end])
        return between == is_itself and bool(low == high)

    def _has_room_in_part(self, lane: int, row: int, start: int, end: int) -> bool:
        part = self._layout.part
        first, last = self._bounds_in_part(lane, row)
        place = first + int(np.searchsorted(part.end[first:last], start, side="right"))
        return place >= last or int(part.start[place]) >= end

    def _bounds_in_part(self, lane: int, row: int) -> tuple[int, int]:
        """Give where a line begins and ends in the sorted part; twice the same if it has none."""
        part = self._layout.part
        low, high = np.searchsorted(part.line_lane, [lane, lane + 1])
        found = low + int(np.searchsorted(part.line_row[low:high], row))
        if found >= high or part.line_row[found] != row:
            return 0, 0
        return int(part.bounds[found]), int(part.bounds[found + 1])

    def slot(self, unit: int, start: int, end: int) -> int | None:
        """Give the lane of the unit's lowest slot that is free; None if all are taken."""
        for lane, free_ns in self._slots_of(unit):
            if free_ns <= start:
                self.occupy(unit, lane, end)
                return lane
        return None

    def slot_count(self, unit: int) -> int:
        """Say how many slots a unit has."""
        return len(self._slots_of(unit))

    def occupy(self, unit: int, lane: int, until_ns: int) -> None:
        """Say until when a slot is taken: for good, while its session is open."""
        slots = self._slots_of(unit)
        for place, (one, _) in enumerate(slots):
            if one == lane:
                slots[place] = lane, until_ns
                return
        slots.append((lane, until_ns))

    def _slots_of(self, unit: int) -> list[tuple[int, int]]:
        slots = self._free.get(unit)
        if slots is None:
            sessions = self._layout.sessions
            own = np.flatnonzero(sessions.unit == unit)
            lanes, inverse = np.unique(sessions.lane[own], return_inverse=True)
            ends = np.zeros(len(lanes), np.int64)
            np.maximum.at(ends, inverse, sessions.end[own])
            slots = list(zip(lanes.tolist(), ends.tolist(), strict=True))
            self._free[unit] = slots
        return slots
