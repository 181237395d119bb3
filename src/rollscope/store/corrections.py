"""Corrections: by how much the times of one process are moved, over its life.

A correction is a chain of straight stretches that meet. It is exact to the nanosecond and the same
in Python, in numpy and in both engines, since all of them multiply and round alike; and moved times
keep the order of the recorded ones.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

__all__ = ["Correction", "Corrections", "Knot", "move_times"]

STEEPEST: Final = 0.5
"""No stretch is steeper: below -1 the order of a process's records would be turned round."""
_USUAL: Final = 5e-4
"""The fastest that clocks drift or are slewed. What is steeper bridges a jump and is not continued
beyond where it was seen."""

_FEW: Final = 16
"""Processes that are looked for one by one."""

Times = npt.NDArray[np.int64]


class Knot(NamedTuple):
    """Where a stretch begins."""

    at_ns: int
    """On the clock of the process."""
    offset_ns: int
    """By how much a time is moved here."""
    rate: float = 0.0
    """By how much more, for every nanosecond from here on."""


class Correction(msgspec.Struct, frozen=True):
    """By how much the times of a process are moved."""

    knots: tuple[Knot, ...]
    """In the order of their times. The first stretch reaches back for ever, the last one on."""

    @classmethod
    def constant(cls, offset_ns: int) -> "Correction":
        """Move all times alike."""
        return cls((Knot(0, offset_ns),))

    @classmethod
    def through(cls, points: Sequence[tuple[int, int]], rate: float = 0.0) -> "Correction":
        """Lead through points in a straight line each.

        Args:
            points: Times, all different and in order, and what is to be added to each.
            rate: How it goes on from the last one.
        """
        knots = []
        start, reached = points[0]
        for end, offset in points[1:]:
            steep = (offset - reached) / (end - start)
            knots.append(Knot(start, reached, max(-STEEPEST, min(STEEPEST, steep))))
            if abs(steep) > STEEPEST:
                offset = reached + math.floor((end - start) * knots[-1].rate)
            start, reached = end, offset
        knots.append(Knot(start, reached, rate if abs(rate) <= _USUAL else 0.0))
        if abs(knots[0].rate) > _USUAL:
            knots.insert(0, Knot(*points[0], 0.0))
        return cls(tuple(knots))

    @classmethod
    def read(cls, text: str, offset_ns: int) -> "Correction":
        """Read what `text` gave.

        Args:
            text: The stretches, empty if there is only one offset.
            offset_ns: That one.
        """
        if not text:
            return cls.constant(offset_ns)
        return cls(tuple(msgspec.json.decode(text, type=list[Knot])))

    @property
    def is_constant(self) -> bool:
        """Whether all times are moved alike."""
        return len(self.knots) == 1 and not self.knots[0].rate

    @property
    def text(self) -> str:
        """The stretches as text; empty if one offset says it all."""
        return "" if self.is_constant else msgspec.json.encode(self.knots).decode()

    def at(self, time_ns: int) -> int:
        """Give by how much a time is moved."""
        knots = self.knots
        place = bisect_right(knots, time_ns, key=_time_of) - 1 if len(knots) > 1 else 0
        at_ns, offset_ns, rate = knots[max(place, 0)]
        return offset_ns + math.floor((time_ns - at_ns) * rate)

    def offsets(self, times: Times) -> Times:
        """Give by how much each of many times is moved."""
        starts, bases, rates = (np.array(column) for column in zip(*self.knots, strict=True))
        if self.is_constant:
            return np.full(len(times), bases[0])
        place = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
        grown: Times = np.floor((times - starts[place]) * rates[place]).astype(np.int64)
        return bases[place] + grown

    def undo(self, time_ns: int) -> int:
        """Give the earliest time by the process's clock that is moved to this one, or later."""
        found = time_ns - self.at(time_ns)
        for _ in range(64):  # a few for a clock that drifts, more where a jump is bridged
            missed = time_ns - (found + self.at(found))
            if abs(missed) <= 1:
                break
            found += missed
        while found + self.at(found) < time_ns:
            found += 1
        while found - 1 + self.at(found - 1) >= time_ns:
            found -= 1
        return found

    def shifted(self, by_ns: int) -> "Correction":
        """Move all times by so much more."""
        return Correction(tuple(Knot(k.at_ns, k.offset_ns + by_ns, k.rate) for k in self.knots))

    def most(self, first_ns: int, last_ns: int) -> int:
        """Give the most by which a time between two is moved, either way."""
        inside = [k.at_ns for k in self.knots if first_ns < k.at_ns < last_ns]
        # One nanosecond before a stretch begins, rounding may be one more.
        return max(abs(self.at(time)) for time in (first_ns, last_ns, *inside)) + 1

    def differs(self, other: "Correction", first_ns: int, last_ns: int) -> int:
        """Give by how much two corrections differ at most between two times."""
        times = {knot.at_ns for knot in (*self.knots, *other.knots)}
        inside = [time for time in times if first_ns < time < last_ns]
        return max(abs(self.at(time) - other.at(time)) for time in (first_ns, last_ns, *inside))


Corrections = Mapping[int, Correction]
"""By process, for those whose times are moved."""


def move_times(times: Times, process: npt.NDArray[np.uint64], corrections: Corrections) -> Times:
    """Give by how much each of many times of several processes is moved."""
    moved = np.zeros(len(times), np.int64)
    if not corrections or not len(times):
        return moved
    for one in np.unique(process).tolist() if len(corrections) > _FEW else corrections:
        correction = corrections.get(one)
        if correction is not None:
            chosen = process == np.uint64(one)
            moved[chosen] = correction.offsets(times[chosen])
    return moved


def _time_of(knot: Knot) -> int:
    return knot.at_ns
