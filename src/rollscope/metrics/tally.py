"""Tallies: what one series of a metric has done since it was last written.

A series is a type, a name and a set of labels. Its tally takes the values of many calls at a time
and gives one record of them; who decides when that is due stands above.
"""

from collections.abc import Sequence
from typing import Final

from rollscope.metrics.buckets import bucket_of
from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType

__all__ = ["Tally"]

_APART_NS: Final = 10
"""Two records of a series are at least this far apart: stores tell them apart by their times."""


class Tally:
    """The values of one series that no record holds yet."""

    __slots__ = (
        *("_buckets", "_count", "_labels", "_max", "_min", "_name", "_stamped_ns", "_type"),
        *("_value", "touched_ns", "written_ns"),
    )

    def __init__(self, type_: MetricType, name: str, labels: dict[str, str]) -> None:
        self._type = type_
        self._name = name
        self._labels = labels
        self._stamped_ns: int | None = None
        self.touched_ns = 0
        """When it was last added to, by the monotonic clock."""
        self.written_ns: int | None = None
        """When a record of it was last due, by the same clock."""
        self._begin()

    def _begin(self) -> None:
        self._value = 0.0
        self._count = 0
        self._min: float | None = None
        self._max: float | None = None
        self._buckets: dict[int, int] = {}

    def add(self, values: Sequence[float], at_ns: int) -> None:
        """Take the values of calls in their order, one at least; for a sum, only finite ones."""
        self.touched_ns = at_ns
        self._count += len(values)
        if self._type is MetricType.COUNTER:
            self._value += sum(values)
            return
        self._widen(values)
        if self._type is MetricType.GAUGE:
            self._value = float(values[-1])
            return
        self._value += sum(values)
        buckets = self._buckets
        for bucket in map(bucket_of, values):
            buckets[bucket] = buckets.get(bucket, 0) + 1

    def _widen(self, values: Sequence[float]) -> None:
        if values[0] != values[0]:  # NaN at the front would count as both least and greatest
            values = [value for value in values if value == value]
            if not values:
                return
        low, high = min(values), max(values)
        self._min = low if self._min is None or low < self._min else self._min
        self._max = high if self._max is None or high > self._max else self._max

    def take(self, step: int | None, at_ns: int) -> Metric:
        """Give a record of what was added, and begin anew.

        Args:
            step: The step during which that was.
            at_ns: When the last of it was added, by the monotonic clock.
        """
        if self._stamped_ns is not None:
            at_ns = max(at_ns, self._stamped_ns + _APART_NS)
        self._stamped_ns = at_ns
        record = Metric(
            self._type,
            self._name,
            self._labels,
            self._value,
            self._count,
            self._min,
            self._max,
            self._buckets,
            at_ns,
            step,
        )
        self._begin()
        return record
