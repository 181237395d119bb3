"""Spans as columns in memory: sorted by row and start, with the places where rows begin.

A *line* is one (lane, row) of the timeline. Spans of one line never overlap, so both their starts
and their ends are in order, and every question about a window is two binary searches per line.
Lane and row are said once for each line, not for each span: a span takes 23 bytes.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt

__all__ = [
    "ERROR",
    "IS_SESSION",
    "LOST",
    "MARKS",
    "NEVER",
    "NO_SESSION",
    "OPEN_FLAG",
    "RETRIED",
    "STUCK",
    "Lines",
    "Part",
    "Rows",
    "Times",
    "bisect",
    "expand",
]

ERROR: Final = 1
OPEN_FLAG: Final = 2
STUCK: Final = 4
LOST: Final = 8
RETRIED: Final = 16
IS_SESSION: Final = 32
MARKS: Final = ERROR | OPEN_FLAG | STUCK | LOST | RETRIED
"""Flags that are never hidden, however small a span is drawn."""

NEVER: Final = 2**62
"""The end of a span that is open."""
NO_SESSION: Final = 0xFFFFFFFF

Times = npt.NDArray[np.int64]
Lines = npt.NDArray[np.int64]


class Rows(msgspec.Struct):
    """Spans that have a place, in any order."""

    start: Times
    """Nanoseconds since the epoch, moved onto one clock."""
    end: Times
    session: npt.NDArray[np.uint32]
    """Number of the session; `NO_SESSION` for none."""
    name: npt.NDArray[np.uint16]
    flags: npt.NDArray[np.uint8]
    lane: npt.NDArray[np.uint32]
    row: npt.NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.start)

    def take(self, places: npt.NDArray[Any]) -> Self:
        """Give some of them, in the order asked for."""
        return type(self)(*(getattr(self, field)[places] for field in self.__struct_fields__))

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Give all of several."""
        return cls(
            *(
                np.concatenate([getattr(part, field) for part in parts])
                for field in cls.__struct_fields__
            )
        )

    @classmethod
    def none(cls) -> Self:
        """Give no rows."""
        return cls(
            start=np.zeros(0, np.int64),
            end=np.zeros(0, np.int64),
            session=np.zeros(0, np.uint32),
            name=np.zeros(0, np.uint16),
            flags=np.zeros(0, np.uint8),
            lane=np.zeros(0, np.uint32),
            row=np.zeros(0, np.uint16),
        )


class Part:
    """Spans in order of lane, row and start."""

    def __init__(self, rows: Rows, lines: npt.NDArray[Any] | None = None) -> None:
        """Sort rows, unless they are sorted already.

        Args:
            rows: The spans.
            lines: A number for each row that rises with (lane, row), if rows are in order.
        """
        if lines is None:
            codes = (rows.lane.astype(np.int64) << 16) | rows.row
            order = np.lexsort((rows.end, rows.start, codes))
            rows, lines = rows.take(order), codes[order]
        self.start, self.end = rows.start, rows.end
        self.session, self.name, self.flags = rows.session, rows.name, rows.flags
        changes = np.flatnonzero(lines[1:] != lines[:-1]) + 1
        first = np.concatenate([[0], changes]) if len(lines) else np.zeros(0, np.int64)
        self.line_lane = rows.lane[first]
        self.line_row = rows.row[first]
        self.bounds: Lines = np.append(first, len(lines)).astype(np.int64)
        """Where each line begins, and where the last one ends."""
        self.line_flags = _or_by_line(self.flags, first)
        """The flags that occur on each line."""

    @classmethod
    def assembled(
        cls,
        columns: Mapping[str, npt.NDArray[Any]],
        line_lane: npt.NDArray[np.uint32],
        line_row: npt.NDArray[np.uint16],
        bounds: Lines,
    ) -> Self:
        """Make a part of columns that are sorted, and the lines they consist of."""
        part = cls.__new__(cls)
        part.start, part.end = columns["start"], columns["end"]
        part.session, part.name, part.flags = (columns[n] for n in ("session", "name", "flags"))
        part.line_lane, part.line_row, part.bounds = line_lane, line_row, bounds.astype(np.int64)
        part.line_flags = _or_by_line(part.flags, bounds[:-1])
        return part

    def without(self, places: npt.NDArray[Any]) -> tuple[Self, npt.NDArray[np.bool_]]:
        """Leave some spans out; give the rest, and which lines still have any."""
        lines = np.searchsorted(self.bounds, places, side="right") - 1
        counts = np.diff(self.bounds) - np.bincount(lines, minlength=self.lines)
        used = counts > 0
        names = ("start", "end", "session", "name", "flags")
        columns = {name: np.delete(getattr(self, name), places) for name in names}
        bounds = np.concatenate([[0], np.cumsum(counts[used])])
        return self.assembled(columns, self.line_lane[used], self.line_row[used], bounds), used

    def __len__(self) -> int:
        return len(self.start)

    @property
    def lines(self) -> int:
        """How many lines there are."""
        return len(self.line_lane)

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    @cached_property
    def marked(self) -> npt.NDArray[np.int64]:
        """The places of spans with a flag that is never hidden."""
        return np.flatnonzero(self.flags & np.uint8(MARKS))

    def lines_of(self, lanes: npt.NDArray[Any]) -> Lines:
        """Give the lines of some lanes, which are numbered."""
        low = np.searchsorted(self.line_lane, lanes, side="left")
        high = np.searchsorted(self.line_lane, lanes, side="right")
        return expand(low, high)

    def window(self, lines: Lines, low_ns: int, high_ns: int) -> tuple[Lines, Lines]:
        """Find what of each line touches [low, high): the first place, and the one behind the last.

        A span without length touches the instant at which it stands.
        """
        first, last = self.bounds[lines], self.bounds[lines + 1]
        ended = bisect(self.end, first, last, low_ns + 1)
        begin = np.minimum(ended, bisect(self.start, first, last, low_ns))
        stop = bisect(self.start, first, last, high_ns)
        return begin, np.maximum(stop, begin)

    def rows_at(self, places: npt.NDArray[Any]) -> Rows:
        """Give spans with the lane and row that they stand in."""
        lines = np.searchsorted(self.bounds, places, side="right") - 1
        return self._rows(places, lines)

    def all_rows(self) -> Rows:
        """Give every span with its lane and row."""
        lines = np.repeat(np.arange(self.lines), np.diff(self.bounds))
        return self._rows(slice(None), lines)

    def _rows(self, places: npt.NDArray[Any] | slice, lines: npt.NDArray[Any]) -> Rows:
        return Rows(
            start=self.start[places],
            end=self.end[places],
            session=self.session[places],
            name=self.name[places],
            flags=self.flags[places],
            lane=self.line_lane[lines],
            row=self.line_row[lines],
        )


def expand(low: npt.NDArray[Any], high: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Write ranges out: every number from each low to below its high."""
    counts = high - low
    total = int(counts.sum())
    if not total:
        return np.zeros(0, np.int64)
    shifts = low - (np.cumsum(counts) - counts)
    written: npt.NDArray[np.int64] = np.arange(total) + np.repeat(shifts, counts)
    return written


def _or_by_line(flags: npt.NDArray[np.uint8], first: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.bitwise_or.reduceat(flags, first) if len(first) else np.zeros(0, np.uint8)


def bisect(values: Times, low: Lines, high: Lines, wanted: int | Times) -> Lines:
    """Find in each range the first place whose value is not below the one wanted there."""
    low, high = low.copy(), high.copy()
    while True:
        is_open = low < high
        if not is_open.any():
            return low
        middle = (low + high) >> 1
        is_below = values[np.minimum(middle, len(values) - 1)] < wanted
        low = np.where(is_open & is_below, middle + 1, low)
        high = np.where(is_open & ~is_below, middle, high)
