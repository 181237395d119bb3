"""Bins for pictures of lengths: logarithmic for how long, even ones for when."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["count_grid", "count_lengths", "even_edges", "length_edges"]

_PER_DECADE: Final = 8
_LEAST_NS: Final = 1_000
"""Shorter lengths, and those of nothing, are in the first bin."""
_DECADES: Final = 12
_ALL_EDGES: Final = [
    round(_LEAST_NS * 10 ** (place / _PER_DECADE)) for place in range(_DECADES * _PER_DECADE + 1)
]

_Numbers = npt.NDArray[np.int64]


def length_edges(lengths: Sequence[int] | _Numbers) -> list[int]:
    """Give the edges of logarithmic bins that hold all lengths, eight to a decade.

    The edges are the same for every set of lengths, so that bins of two pictures can be compared;
    only how many there are differs. A bin holds what is at least its lower edge and less than its
    upper one; the first and the last hold what lies outside too.
    """
    if not len(lengths):
        return []
    low, high = int(min(lengths)), int(max(lengths))
    first = max(bisect_right(_ALL_EDGES, low) - 1, 0)
    last = max(min(bisect_right(_ALL_EDGES, high), len(_ALL_EDGES) - 1), 1)
    return _ALL_EDGES[min(first, last - 1) : last + 1]


def even_edges(low_ns: int, high_ns: int, bins: int) -> list[int]:
    """Give the edges of bins of the same width, up to a nanosecond; at least one bin."""
    count = max(min(bins, high_ns - low_ns), 1)
    return [low_ns + (high_ns - low_ns) * place // count for place in range(count + 1)]


def count_lengths(lengths: _Numbers, edges: Sequence[int]) -> list[int]:
    """Count how many values are in each bin."""
    counts: list[int] = np.bincount(_places(lengths, edges), minlength=len(edges) - 1).tolist()
    return counts


def count_grid(
    starts: _Numbers, lengths: _Numbers, columns: Sequence[int], rows: Sequence[int]
) -> list[list[int]]:
    """Count values in two directions: a list for each row of lengths, of counts by start."""
    width, height = len(columns) - 1, len(rows) - 1
    cells = _places(lengths, rows) * width + _places(starts, columns)
    counts = np.bincount(cells, minlength=width * height).reshape(height, width)
    grid: list[list[int]] = counts.tolist()
    return grid


def _places(values: _Numbers, edges: Sequence[int]) -> _Numbers:
    found = np.searchsorted(np.asarray(edges), values, side="right") - 1
    return np.clip(found, 0, len(edges) - 2)
