"""At which step something changed for good: a level that moved, not a single bad step."""

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from rollscope.analysis.statistics import MAD_SCALE, mad

__all__ = ["Change", "Changes", "changes"]

_BEFORE = 10
_AFTER = 5
_LEAST_DEVIATIONS = 4
_LEAST_SHARE = 0.1
_APART = 10
_LISTED = 3


class Change(msgspec.Struct, frozen=True):
    """A shift of one series."""

    series: str
    step: int
    """The first step beyond half of the shift."""
    before: float
    """The median of the ten steps before."""
    after: float
    """The median of the five steps in which it was noticed."""
    size: float
    """The shift as a share of the larger of the two levels, so that series can be compared."""


class Changes(msgspec.Struct):
    """All shifts, by step, and the few that matter most."""

    marks: list[Change]
    largest: list[Change]


def changes(series: Mapping[str, Sequence[tuple[int, float | None]]]) -> Changes:
    """Mark where series over steps moved to another level.

    Args:
        series: Step and value, in any order, by the name of the series. A step without a value is
            passed over.
    """
    marks = [mark for name, points in series.items() for mark in _marks(name, points)]
    marks.sort(key=lambda mark: (mark.step, mark.series))
    largest = sorted(marks, key=lambda mark: -mark.size)[:_LISTED]
    return Changes(marks, largest)


def _marks(name: str, points: Sequence[tuple[int, float | None]]) -> list[Change]:
    known = sorted((step, value) for step, value in points if value is not None)
    values = [value for _, value in known]
    marks: list[Change] = []
    last = -_APART
    going = 0  # the direction in which the window before found a shift
    for end in range(_BEFORE + _AFTER, len(values) + 1):
        start = end - _AFTER
        earlier, recent = values[start - _BEFORE : start], values[start:end]
        before, after = median(earlier), median(recent)
        was_going = going
        going = _direction(earlier, before, after)
        if not going or going == was_going:  # the next windows find the same shift again
            continue
        position = next(at for at in range(start, end) if _is_beyond(values[at], before, after))
        if position - last < _APART:
            continue
        last = position
        size = abs(after - before) / max(abs(after), abs(before))
        marks.append(Change(name, known[position][0], before, after, size))
    return marks


def _direction(earlier: Sequence[float], before: float, after: float) -> int:
    """Give 1 for a shift up, -1 for one down, and 0 for none."""
    shift = abs(after - before)
    deviations = _LEAST_DEVIATIONS * MAD_SCALE * mad(earlier)
    if shift <= deviations or shift <= _LEAST_SHARE * abs(before):
        return 0
    return 1 if after > before else -1


def _is_beyond(value: float, before: float, after: float) -> bool:
    half = (before + after) / 2
    return value > half if after > before else value < half
