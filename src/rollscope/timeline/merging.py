"""Putting two sorted parts of a timeline together, in one pass over the columns."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import Lines, Part, bisect

__all__ = ["line_codes", "merge_parts"]

_COLUMNS: Final = ("start", "end", "session", "name", "flags")


def line_codes(part: Part) -> Lines:
    """Give a number for each line that rises with lane and row."""
    codes: Lines = part.line_lane.astype(np.int64) << 16 | part.line_row
    return codes


def merge_parts(old: Part, new: Part) -> Part:
    """Give one part with all spans of two, of which no line has spans that overlap."""
    if not len(old) or not len(new):
        return old if len(old) else new
    places = _places(old, new) + np.arange(len(new))
    is_old = np.ones(len(old) + len(new), bool)
    is_old[places] = False
    columns = {name: _woven(getattr(old, name), getattr(new, name), is_old) for name in _COLUMNS}
    old_codes, new_codes = line_codes(old), line_codes(new)
    codes = np.union1d(old_codes, new_codes)
    counts = np.zeros(len(codes), np.int64)
    counts[np.searchsorted(codes, old_codes)] = np.diff(old.bounds)
    counts[np.searchsorted(codes, new_codes)] += np.diff(new.bounds)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    lane, row = (codes >> 16).astype(np.uint32), (codes & 0xFFFF).astype(np.uint16)
    return Part.assembled(columns, lane, row, bounds)


def _places(old: Part, new: Part) -> Lines:
    """Say before which span of the old part each of the new one belongs."""
    old_codes, new_codes = line_codes(old), line_codes(new)
    line = np.searchsorted(old_codes, new_codes)
    is_there = old_codes[np.minimum(line, old.lines - 1)] == new_codes
    counts = np.diff(new.bounds)
    first = np.repeat(old.bounds[line], counts)
    places = np.repeat(old.bounds[line + is_there], counts)
    reached = old.end[np.maximum(places - 1, 0)]
    # Nearly all that is new comes behind what its line has.
    among = np.flatnonzero((places > first) & (new.start < reached))
    low, high = first[among], places[among]
    # One without length may stand at either edge of another.
    by_start = bisect(old.start, low, high, new.start[among] + 1)
    places[among] = np.minimum(by_start, bisect(old.end, low, high, new.end[among] + 1))
    return places


def _woven(
    old: npt.NDArray[Any], new: npt.NDArray[Any], is_old: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    woven = np.empty(len(is_old), old.dtype)
    woven[is_old] = old
    woven[~is_old] = new
    return woven
