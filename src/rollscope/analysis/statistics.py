"""The few tests and robust estimates that comparisons rest on.

Nothing here assumes a normal distribution: durations are skewed, and their outliers are the point.

How sure a difference of medians is comes from resampling tasks, not sessions, since samples of one
task resemble each other. A task is drawn as often as a Poisson number with mean 1 says, which for
many tasks is the same as drawing them with replacement; unlike that, it takes one random byte a
task, and a median no sorting.
"""

import math
from bisect import bisect_left
from collections.abc import Hashable, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from random import Random
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np

from rollscope.analysis.ranks import nearest_rank, rank_of

__all__ = [
    "MAD_SCALE",
    "Line",
    "MedianDifference",
    "TaskValue",
    "average_ranks",
    "benjamini_hochberg",
    "cliffs_delta",
    "fisher_exact",
    "mad",
    "mann_whitney",
    "median_difference",
    "theil_sen",
]

MAD_SCALE = 1.4826
"""What makes a median absolute deviation comparable to a standard deviation."""

TaskValue = tuple[Hashable | None, int]
"""A task and one measurement of it; without a task the measurement stands alone."""

_RESAMPLES = 500
_SEED = 20_240_229
_NEEDED_TASKS = 5
_WINDOW_DEVIATIONS = 4
# Poisson probabilities in 256ths: 94 of 256 bytes mean "not drawn", as many "once", and so on. The
# mean comes to 1.004.
_TIMES_DRAWN = bytes(
    times for times, of_256 in enumerate((94, 94, 47, 16, 4, 1)) for _ in range(of_256)
)
_AS_PROBABLE = 1e-7
"""Relative difference up to which two tables count as equally probable, against rounding."""


class Line(NamedTuple):
    """A straight line."""

    slope: float
    intercept: float

    def at(self, x: float) -> float:
        """Give its height at `x`."""
        return self.slope * x + self.intercept


def cliffs_delta(first: Sequence[float], second: Sequence[float]) -> float:
    """Say how often a value of the first is above one of the second, less how often below.

    Returns:
        From -1 (all below) to 1 (all above); 0 if either is empty.
    """
    if not first or not second:
        return 0.0
    values, ordered = np.asarray(first), np.sort(np.asarray(second))
    below = np.searchsorted(ordered, values, "left").sum()
    not_above = np.searchsorted(ordered, values, "right").sum()
    count = len(first) * len(second)
    return (int(below) + int(not_above) - count) / count


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Test whether values of one tend to be larger than those of the other.

    Returns:
        The two-sided p-value by normal approximation, corrected for ties and continuity; 1 if there
        is nothing to compare.
    """
    n, m = len(first), len(second)
    if not n or not m:
        return 1.0
    total = n + m
    _, ties = np.unique(np.concatenate([np.asarray(first), np.asarray(second)]), return_counts=True)
    tied = sum(count**3 - count for count in ties[ties > 1].tolist())
    variance = n * m / 12 * ((total + 1) - tied / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    away = abs(cliffs_delta(first, second)) * n * m / 2  # of U from its mean
    z = max(away - 0.5, 0.0) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2))


def fisher_exact(with_a: int, without_a: int, with_b: int, without_b: int) -> float:
    """Test whether a share differs between A and B.

    Returns:
        The two-sided p-value: how probable the tables are that are at most as probable as this.
    """
    size_a, size_b = with_a + without_a, with_b + without_b
    having, total = with_a + with_b, size_a + size_b
    constant = (
        _log_factorial(size_a)
        + _log_factorial(size_b)
        + _log_factorial(having)
        + _log_factorial(total - having)
        - _log_factorial(total)
    )

    def log_probability(count: int) -> float:
        return constant - (
            _log_factorial(count)
            + _log_factorial(size_a - count)
            + _log_factorial(having - count)
            + _log_factorial(size_b - having + count)
        )

    limit = log_probability(with_a) + _AS_PROBABLE
    possible = range(max(0, having - size_b), min(size_a, having) + 1)
    terms = (log_probability(count) for count in possible)
    return min(math.fsum(math.exp(term) for term in terms if term <= limit), 1.0)


def _log_factorial(count: int) -> float:
    return math.lgamma(count + 1)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Give the q-value of each test: the share of false finds among all at most as surprising."""
    count = len(p_values)
    by_rank = sorted(range(count), key=p_values.__getitem__, reverse=True)
    q_values = [1.0] * count
    smallest = 1.0
    for behind, position in enumerate(by_rank):
        smallest = min(smallest, p_values[position] * count / (count - behind))
        q_values[position] = smallest
    return q_values


def theil_sen(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """Fit the line whose slope is the median of the slopes between any two points.

    Without two different `xs` it is flat, and without points it is zero.
    """
    if not xs:
        return Line(0.0, 0.0)
    points = list(zip(xs, ys, strict=True))
    slopes = [
        (y2 - y1) / (x2 - x1)
        for position, (x1, y1) in enumerate(points)
        for x2, y2 in points[position + 1 :]
        if x1 != x2
    ]
    slope = median(slopes) if slopes else 0.0
    return Line(slope, median(y - slope * x for x, y in points))


def mad(values: Sequence[float]) -> float:
    """Give the median absolute deviation from the median, unscaled; 0 without values."""
    if not values:
        return 0.0
    middle = median(values)
    return float(median(abs(value - middle) for value in values))


def average_ranks(values: Sequence[float]) -> list[float]:
    """Give the rank of each value from 1; equal ones share the mean of their ranks."""
    given = np.asarray(values)
    ordered = np.sort(given)
    before = np.searchsorted(ordered, given, "left")
    found: list[float] = ((before + 1 + np.searchsorted(ordered, given, "right")) / 2).tolist()
    return found


class MedianDifference(msgspec.Struct, frozen=True):
    """The difference of two medians, second less first, and the range it lies in at 95 %."""

    difference: int
    low: int | None
    """None if either side has fewer than five tasks: too few to tell."""
    high: int | None

    @property
    def is_clear(self) -> bool:
        """Whether the range is known and does not reach across zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def median_difference(
    first: Sequence[TaskValue],
    second: Sequence[TaskValue],
    resamples: int = _RESAMPLES,
    seed: int = _SEED,
) -> MedianDifference | None:
    """Give the difference of the medians with its interval; None if either side is empty."""
    if not first or not second:
        return None
    sides = _Side(first), _Side(second)
    difference = sides[1].median - sides[0].median
    if min(side.tasks for side in sides) < _NEEDED_TASKS:
        return MedianDifference(difference, None, None)
    # S311: this draws resamples, not secrets; the seed makes the answer repeatable.
    random = Random(seed)  # noqa: S311
    drawn = sorted(-sides[0].draw(random) + sides[1].draw(random) for _ in range(resamples))
    low, high = max(resamples * 25 // 1000, 1), -(-resamples * 975 // 1000)
    return MedianDifference(difference, drawn[low - 1], drawn[high - 1])


class _Side:
    """Measurements arranged such that the median of a resample needs no sorting.

    The median of a resample lies close to that of all. Only values within a window around it are
    counted one by one; those below are counted by task, and tasks that are alike in that together.
    """

    def __init__(self, values: Sequence[TaskValue]) -> None:
        ordered = sorted(
            ((value, object() if task is None else task) for task, value in values),
            key=itemgetter(0),
        )
        self._values = [value for value, _ in ordered]
        self.median = nearest_rank(self._values, 50)
        numbers: dict[Hashable, int] = {}
        tasks = [numbers.setdefault(task, len(numbers)) for _, task in ordered]
        self.tasks = len(numbers)
        self._low, self._high = self._window(tasks)
        sizes, below = self._counts(tasks, len(tasks)), self._counts(tasks, self._low)
        alike = sorted(range(self.tasks), key=lambda task: (sizes[task], below[task]))
        place = {task: position for position, task in enumerate(alike)}
        self._places = [place[task] for task in tasks]
        self._groups: list[tuple[slice, int, int]] = []
        start = 0
        for (size, under), members in groupby(alike, key=lambda task: (sizes[task], below[task])):
            stop = start + sum(1 for _ in members)
            self._groups.append((slice(start, stop), size, under))
            start = stop
        self._pick_near = itemgetter(*self._places[self._low : self._high])
        self._pick_all = itemgetter(*self._places)

    def draw(self, random: Random) -> int:
        """Give the median of one resample."""
        total = 0
        while not total:  # with few tasks it happens that none is drawn
            times = random.randbytes(self.tasks).translate(_TIMES_DRAWN)
            total = below = 0
            for members, size, under in self._groups:
                drawn = sum(times[members])
                total += drawn * size
                below += drawn * under
        wanted = rank_of(50, total)
        near = list(accumulate(self._pick_near(times)))
        if 0 < wanted - below <= near[-1]:
            return self._values[self._low + bisect_left(near, wanted - below)]
        return self._values[bisect_left(list(accumulate(self._pick_all(times))), wanted)]

    def _window(self, tasks: Sequence[int]) -> tuple[int, int]:
        """Give the positions between which the median of nearly every resample lies."""
        count = len(tasks)
        middle = rank_of(50, count) - 1
        sizes, below = self._counts(tasks, count), self._counts(tasks, middle)
        spread = math.sqrt(sum((u - s / 2) ** 2 for u, s in zip(below, sizes, strict=True)))
        reach = math.ceil(_WINDOW_DEVIATIONS * spread) + 2
        low, high = max(middle - reach, 0), min(middle + reach, count)
        # An itemgetter of one position gives no tuple; there are at least five values here.
        return (low, high) if high - low > 1 else (0, count)

    def _counts(self, tasks: Sequence[int], upto: int) -> list[int]:
        counts = [0] * self.tasks
        for task in tasks[:upto]:
            counts[task] += 1
        return counts
