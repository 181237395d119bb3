"""How far the clock of one process is from the receiver's, followed over its life.

Readings come from round trips, each with an error that it cannot exceed. A straight line through
them, good ones counting most, is followed until two in a row prove that it is off by more than half
a millisecond. There it ends, and another one takes over. Where lines began and ended stays as it
is, so that what has been drawn stays in its place, and few readings need to be remembered.
"""

import itertools
from bisect import insort
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from rollscope.model.batch import ClockReading
from rollscope.store.corrections import STEEPEST

__all__ = ["TOLERANCE_NS", "Line", "Track", "TrackPoint"]

TOLERANCE_NS: Final = 500_000
"""How far off a line may be before another one is begun."""
_MOST_RECENT: Final = 64
_LATEST: Final = 8
"""Readings that are never thinned out, and that tell how good the line is now."""
_MOST_KNOTS: Final = 64
_LEAST_ERROR_NS: Final = 50_000
"""How far good readings scatter: clock lines are no better."""
_LONG_NS: Final = 60_000_000_000
"""How long a line has to hold for its drift to be believed."""
_USUAL_DRIFT: Final = 5e-5
"""How fast clocks may drift apart before anything is known; a few readings close together tell
little of it, and a line through them would lead far astray."""
_GENTLE: Final = 5e-4
"""A line that is steeper is not drawn on beyond its readings."""
_LARGEST: Final = 2**61
"""Of a time that can be one; moved times still fit into 64 bits."""
_UNSEEN_DRIFT: Final = 2e-5
"""How fast the error grows from the last reading on."""


class TrackPoint(NamedTuple):
    """A reading, or a knot."""

    mono_ns: int
    offset_ns: int
    error_ns: int


class Line(NamedTuple):
    """A straight line through readings."""

    mono_ns: int
    offset_ns: float
    rate: float

    def at(self, mono_ns: int) -> float:
        """Give the offset at a time."""
        return self.offset_ns + (mono_ns - self.mono_ns) * self.rate

    def fits(self, point: TrackPoint) -> bool:
        """Say whether the line may be right within the tolerance, as far as a reading knows."""
        return abs(point.offset_ns - self.at(point.mono_ns)) <= point.error_ns + TOLERANCE_NS


class Track(msgspec.Struct, kw_only=True, dict=True):
    """What readings say of one process's clock, on its monotonic time."""

    count: int = 0
    """How many readings there were in all."""
    knots: list[TrackPoint] = []
    """Where lines met that are settled."""
    recent: list[TrackPoint] = []
    """Readings since the last knot, thinned out."""
    drift: float = 0.0
    """How fast the clock drifted along the last line that lasted."""
    odd: TrackPoint | None = None
    """The latest reading, if it does not fit: a fault, or the end of the line."""
    bound: TrackPoint | None = None
    """The least offset of those of which it is only known that they are not exceeded."""

    def add(self, reading: ClockReading) -> None:
        """Take a reading; what is older than the last knot changes nothing any more."""
        point = TrackPoint(reading.mono_ns, reading.offset_ns, reading.error_ns)
        if max(map(abs, point)) > _LARGEST:
            return
        self.count += 1
        if point.error_ns < 0:
            if self.bound is None or point.offset_ns < self.bound.offset_ns:
                self.bound = point
        elif not self.knots or point.mono_ns > self.knots[-1].mono_ns:
            self._follow(point)
            self.__dict__.pop("line", None)  # it was of the readings before

    def _follow(self, point: TrackPoint) -> None:
        if not self.recent or self.line.fits(point) or self._bends_to(point):
            insort(self.recent, point)
            self.odd = None
            self._thin_readings()
        elif self.odd is None or point.mono_ns <= self.recent[-1].mono_ns:
            self.odd = point
        else:
            self._begin_line(sorted((self.odd, point)))

    def _bends_to(self, point: TrackPoint) -> bool:
        """Say whether another line fits all: a young one still learns how fast the clock drifts."""
        points = sorted((*self.recent, point))
        line = self._line_through(points)
        return all(line.fits(one) for one in points)

    def _begin_line(self, points: list[TrackPoint]) -> None:
        """Settle the line that held so far, and let another one start from new readings."""
        first, last = self.recent[0], self.recent[-1]
        for end in dict.fromkeys((first.mono_ns, last.mono_ns)):
            self.knots.append(TrackPoint(end, round(self.line.at(end)), self._error()))
        if last.mono_ns - first.mono_ns >= _LONG_NS:
            self.drift = self.line.rate
        self.recent = [point for point in points if point.mono_ns > last.mono_ns]
        self.odd = None
        while len(self.knots) > _MOST_KNOTS:
            del self.knots[_least_bend(self.knots)]

    def _thin_readings(self) -> None:
        """Keep the better one of the two that are closest; the rest spread over the line."""
        if len(self.recent) > _MOST_RECENT:
            times = [point.mono_ns for point in self.recent[:-_LATEST]]
            gaps = [after - before for before, after in itertools.pairwise(times)]
            place = gaps.index(min(gaps))
            is_worse = self.recent[place].error_ns > self.recent[place + 1].error_ns
            del self.recent[place if is_worse else place + 1]

    @property
    def is_read(self) -> bool:
        """Whether there is a reading that says how wrong it may be."""
        return bool(self.recent)

    @cached_property
    def line(self) -> Line:
        """The line that holds now."""
        return self._line_through(self.recent)

    def _line_through(self, points: list[TrackPoint]) -> Line:
        """Fit a line; good readings count most."""
        # What one way always takes longer than the other is the same in all readings. They scatter
        # by what they took longer than the best, which few of them do not know well yet.
        best_ns = min(point.error_ns for point in points)
        least_ns = _LEAST_ERROR_NS + best_ns // len(points)
        weights = [(point.error_ns - best_ns + least_ns) ** -2.0 for point in points]
        mono_ns, offset_ns = _middle(points, weights)
        known, seen = _USUAL_DRIFT**-2.0, 0.0
        for point, weight in zip(points, weights, strict=True):
            passed = point.mono_ns - mono_ns
            known += weight * passed * passed
            seen += weight * passed * (point.offset_ns - offset_ns - self.drift * passed)
        rate = max(-STEEPEST, min(STEEPEST, self.drift + seen / known))
        return Line(mono_ns, offset_ns, rate)

    def _error(self) -> int:
        return round(
            min(
                point.error_ns + abs(point.offset_ns - self.line.at(point.mono_ns))
                for point in self.recent[-_LATEST:]
            )
        )

    @property
    def last_ns(self) -> int:
        """When the clock was last read."""
        return self.recent[-1].mono_ns

    def error_after(self, unseen_ns: int) -> int:
        """Give how wrong the line may be so long after the last reading."""
        return self._error() + round(max(unseen_ns, 0) * _UNSEEN_DRIFT)

    def points(self, most: int = _MOST_KNOTS) -> list[tuple[int, int]]:
        """Give monotonic times and their offsets, between which it is straight.

        Args:
            most: About how many to give; those that the shape needs least are left out.
        """
        settled = [(knot.mono_ns, knot.offset_ns) for knot in self.knots]
        while len(settled) > max(most, 2):
            del settled[_least_bend(settled)]
        last_ns = self.recent[-1].mono_ns
        ends = [self.recent[0].mono_ns, *([last_ns] if abs(self.line.rate) > _GENTLE else [])]
        return settled + [(end, round(self.line.at(end))) for end in dict.fromkeys(ends)]


def _least_bend(points: Sequence[tuple[int, ...]]) -> int:
    """Give the point that the shape needs least."""

    def bend(place: int) -> float:
        before, here, after = points[place - 1 : place + 2]
        share = (here[0] - before[0]) / (after[0] - before[0])
        return abs(here[1] - before[1] - share * (after[1] - before[1]))

    return min(range(1, len(points) - 1), key=bend)


def _middle(points: list[TrackPoint], weights: list[float]) -> tuple[int, float]:
    total = sum(weights)
    first = points[0]
    mono = sum(w * (p.mono_ns - first.mono_ns) for p, w in zip(points, weights, strict=True))
    offset = sum(w * (p.offset_ns - first.offset_ns) for p, w in zip(points, weights, strict=True))
    # Weighted sums of what is left after the first one: whole times do not fit into a float.
    return first.mono_ns + round(mono / total), first.offset_ns + offset / total
