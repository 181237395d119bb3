"""Putting what overlaps side by side: sessions into slots, spans of one depth into rows."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import Times

__all__ = ["Slots", "find_crowds", "pack_slots", "stack_rows"]


class Slots:
    """The slots of one pool: each interval gets the lowest one that is free at its start.

    Args:
        until: When the slots that there are already will be free.
    """

    def __init__(self, until: Sequence[int] = ()) -> None:
        self._free: list[int] = []
        self._busy = [(time_ns, slot) for slot, time_ns in enumerate(until)]
        heapify(self._busy)
        self.count = len(until)

    def place(self, start: int, end: int) -> int:
        """Give the slot of the next interval; intervals come in order of their start."""
        busy, free = self._busy, self._free
        while busy and busy[0][0] <= start:
            heappush(free, heappop(busy)[1])
        if free:
            slot = heappop(free)
        else:
            slot = self.count
            self.count += 1
        heappush(busy, (end, slot))
        return slot


def pack_slots(starts: Times, ends: Times) -> npt.NDArray[np.int64]:
    """Give each interval of one pool the lowest slot that is free at its start."""
    order = np.lexsort((ends, starts))
    place = Slots().place
    placed = [
        place(start, end)
        for start, end in zip(starts[order].tolist(), ends[order].tolist(), strict=True)
    ]
    result = np.empty(len(starts), np.int64)
    result[order] = placed
    return result


def find_crowds(keys_low: npt.NDArray[Any], keys_high: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Find where intervals that are sorted by their low end do not all stand apart.

    Returns:
        The number of its crowd for each interval that overlaps another one, directly or by way
        of others between them; -1 for one that stands alone.
    """
    if not len(keys_low):
        return np.zeros(0, np.int64)
    reached = np.maximum.accumulate(keys_high)
    joins = np.zeros(len(keys_low) + 1, bool)
    joins[1:-1] = keys_low[1:] < reached[:-1]
    crowd = np.cumsum(~joins[:-1]) - 1
    crowd[~(joins[:-1] | joins[1:])] = -1
    return crowd


def stack_rows(crowds: npt.NDArray[np.int64], starts: Times, ends: Times) -> npt.NDArray[np.int64]:
    """Give each member of a crowd its level, the lowest that is free; 0 for those who stand alone.

    Args:
        crowds: As `find_crowds` gives them.
        starts: The intervals, in the same order.
        ends: Their ends.
    """
    levels = np.zeros(len(crowds), np.int64)
    members = np.flatnonzero(crowds >= 0)
    if not len(members):
        return levels
    levels[members] = _levels(
        crowds[members].tolist(), starts[members].tolist(), ends[members].tolist()
    )
    return levels


def _levels(crowds: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> list[int]:
    levels = []
    current, slots = -1, Slots()
    for crowd, start, end in zip(crowds, starts, ends, strict=True):
        if crowd != current:
            current, slots = crowd, Slots()
        levels.append(slots.place(start, end))
    return levels
