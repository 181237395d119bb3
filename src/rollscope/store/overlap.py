"""How much of a span's time its siblings have already taken from their parent.

The self time of a span is its length less the union of its children. Summed over many spans that
union would have to be found anew by every query; instead each child keeps how much of it *adds* to
the union, counting siblings in the order in which they came in. The sum is the same in any order.
"""

from bisect import bisect_left, bisect_right
from typing import Final

import numpy as np
import numpy.typing as npt

from rollscope.analysis.intervals import Interval

__all__ = ["Carried", "add_to", "union_additions"]

_MOST_STRETCHES: Final = 4096

Times = npt.NDArray[np.int64]
Carried = dict[int, list[Interval]]
"""Parent id to the time its earlier children covered, as far as later ones may overlap it."""


def union_additions(parents: npt.NDArray[np.uint64], starts: Times, ends: Times) -> Times:
    """Say how much each interval adds to the union of those of the same parent."""
    size = len(parents)
    if size == 0:
        return np.zeros(0, np.int64)
    order = np.lexsort((starts, parents))
    group = parents[order]
    low, high = starts[order], ends[order]
    is_first = np.empty(size, bool)
    is_first[0] = True
    np.not_equal(group[1:], group[:-1], out=is_first[1:])
    before = np.empty(size, np.int64)
    before[0] = low[0]
    before[1:] = np.where(is_first[1:], low[1:], high[:-1])
    # Most children come one after the other; only where some do not is there more to find.
    is_tangled = (before > low) | (high < low)
    if is_tangled.any():
        number = np.cumsum(is_first) - 1
        tangled = np.zeros(int(number[-1]) + 1, bool)
        tangled[number[is_tangled]] = True
        rows = np.flatnonzero(tangled[number])
        before[rows] = _reached_before(low[rows], high[rows], is_first[rows])
    additions = np.empty(size, np.int64)
    additions[order] = np.maximum(high - np.maximum(low, before), 0)
    return additions


def _reached_before(low: Times, high: Times, is_first: npt.NDArray[np.bool_]) -> Times:
    """Give how far the earlier intervals of the same group reach; of the first, its own start."""
    size = len(low)
    # The running maximum of the ends within each group: ranks, lifted by the group's number, so
    # that a group starts above everything before it.
    by_end = np.argsort(high, kind="stable")
    rank = np.empty(size, np.int64)
    rank[by_end] = np.arange(size)
    lifted = np.maximum.accumulate(rank + np.cumsum(is_first) * size)
    reached = high[by_end[lifted % size]]
    before: Times = np.where(is_first, low, np.roll(reached, 1))
    return before


def add_to(covered: list[Interval], interval: Interval) -> int:
    """Add an interval to time already covered and say how much it added.

    What is covered stays sorted and apart. Beyond a few thousand stretches the earliest ones are
    joined, gaps included, so that a parent with one hanging child among millions stays cheap.
    """
    low, high = interval
    if high <= low:
        return 0
    first = bisect_left(covered, low, key=_end)
    last = bisect_right(covered, high, lo=first, key=_start)
    touched = covered[first:last]
    taken = sum(min(end, high) - max(start, low) for start, end in touched)
    if touched:
        low, high = min(low, touched[0][0]), max(high, touched[-1][1])
    covered[first:last] = [(low, high)]
    if len(covered) > _MOST_STRETCHES:
        covered[:2] = [(covered[0][0], covered[1][1])]
    return interval[1] - interval[0] - taken


def _start(interval: Interval) -> int:
    return interval[0]


def _end(interval: Interval) -> int:
    return interval[1]
