"""What a window of the timeline holds of a part: spans of at least a pixel, and all others.

Spans stand in order, so what a window holds is a range of each line. Ranges that touch are taken as
one, and copied as they stand; only many short ones are gathered span by span.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import NO_SESSION, Lines, Part, Rows, expand
from rollscope.timeline.lod import Small

__all__ = ["ROWS", "Held", "Window", "turns"]

ROWS: Final = 1 << 16
"""More than a lane has: the cells of a lane are numbered as if it had as many."""
_LEAST_RANGE: Final = 64
"""Spans that ranges have on average if copying them one by one is quicker than gathering."""

_MOST_AT_ONCE: Final = 32_768
"""Spans of a turn: columns that stay in the processor's cache, in memory that is used again."""

Places = npt.NDArray[np.int64]


class Window(msgspec.Struct, frozen=True):
    """Which time of which lanes, and how wide it is drawn."""

    t0_ns: int
    t1_ns: int
    width: int
    lanes: npt.NDArray[np.int64]
    """Numbers of the lanes whose spans are given, from top to bottom."""
    position: npt.NDArray[np.int64]
    """Where each lane of the timeline stands in the tile."""
    kept: npt.NDArray[np.bool_] | None
    """Which sessions to show, if not all."""


class _Ranges:
    """The places from each low to below its high, as one column of places."""

    def __init__(self, low: Places, high: Places) -> None:
        self.ends: Places = np.cumsum(high - low)
        """How many places there are up to the end of each range."""
        self._low, self._high = low, high
        filled = high > low
        low, high = low[filled], high[filled]
        begins = np.append(True, low[1:] != high[:-1])[: len(low)]
        self._runs = list(
            zip(low[begins].tolist(), high[np.roll(begins, -1)].tolist(), strict=True)
        )
        self._places: Places | None = None

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def of(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Give what stands there in a column; not to be written to."""
        if len(self._runs) == 1:
            return column[slice(*self._runs[0])]
        if self._runs and len(self) >= _LEAST_RANGE * len(self._runs):
            return np.concatenate([column[low:high] for low, high in self._runs])
        if self._places is None:
            self._places = expand(self._low, self._high)
        return column[self._places]


class Held:
    """What a window holds of a part, lane by lane from top to bottom."""

    def __init__(self, part: Part, window: Window) -> None:
        lines = part.lines_of(window.lanes)
        self._part, self._window, self._lines = part, window, lines
        self._low, self._high = part.window(lines, window.t0_ns, window.t1_ns)
        self._position = window.position[part.line_lane[lines]]

    def spans_by_lane(self, lanes: int) -> npt.NDArray[np.int64]:
        """Count the spans of each lane of the tile."""
        counts = np.bincount(self._position, self._high - self._low, lanes)
        return counts.astype(np.int64)

    def cut(self, first: int, last: int) -> tuple[Rows, Small]:
        """Give what is at least a pixel wide, and the rest, of some lanes, the last left out."""
        part, window = self._part, self._window
        chosen = slice(*np.searchsorted(self._position, (first, last)).tolist())
        lines, ranges = self._lines[chosen], _Ranges(self._low[chosen], self._high[chosen])
        start = ranges.of(part.start)
        length = ranges.of(part.end) - start
        window_ns = window.t1_ns - window.t0_ns
        is_wide = length >= -(-window_ns // window.width)  # whole: a pixel may be a fraction
        is_narrow = ~is_wide
        if window.kept is not None:
            shown = _is_shown(ranges.of(part.session), window.kept)
            is_wide, is_narrow = is_wide & shown, is_narrow & shown
        wide = _exact_rows(part, lines, ranges, np.flatnonzero(is_wide), window.position)
        pixel = _pixels(np.maximum(start - window.t0_ns, 0), window_ns, window.width)
        top = (self._position[chosen] * ROWS + part.line_row[lines]) * window.width
        small = Small(
            cell=(np.repeat(top, np.diff(ranges.ends, prepend=0)) + pixel)[is_narrow],
            name=ranges.of(part.name)[is_narrow],
            length=length[is_narrow],
            flags=ranges.of(part.flags)[is_narrow],
        )
        return wide, small


def turns(helds: Sequence[Held], lanes: int) -> Iterator[tuple[int, int]]:
    """Divide the lanes of a tile into stretches with not too many spans, at least one."""
    counts = sum((held.spans_by_lane(lanes) for held in helds), np.zeros(lanes, np.int64))
    turn = np.cumsum(counts) // _MOST_AT_ONCE
    borders = [0, *(np.flatnonzero(turn[1:] != turn[:-1]) + 1).tolist(), lanes]
    return itertools.pairwise(borders)


def _is_shown(
    session: npt.NDArray[np.uint32], kept: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    has_one = session != NO_SESSION
    shown: npt.NDArray[np.bool_] = has_one & kept[np.where(has_one, session, 0)]
    return shown


def _pixels(since: npt.NDArray[np.int64], window_ns: int, width: int) -> npt.NDArray[np.int64]:
    """Give the pixel of each time: its share of the window, in whole numbers."""
    if window_ns < 2**62 // width:
        return since * width // window_ns
    return np.minimum(since // -(-window_ns // width), width - 1)


def _exact_rows(
    part: Part, lines: Lines, ranges: _Ranges, chosen: Places, position: npt.NDArray[np.int64]
) -> Rows:
    line = lines[np.searchsorted(ranges.ends, chosen, side="right")]
    return Rows(
        start=ranges.of(part.start)[chosen],
        end=ranges.of(part.end)[chosen],
        session=ranges.of(part.session)[chosen],
        name=ranges.of(part.name)[chosen],
        flags=ranges.of(part.flags)[chosen],
        lane=position[part.line_lane[line]].astype(np.uint32),
        row=part.line_row[line],
    )
