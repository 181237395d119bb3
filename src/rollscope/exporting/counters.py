"""Metrics as counters that a viewer draws as curves.

A run keeps what counters and histograms grew by; a curve shows what they have come to.
"""

from typing import Final, NamedTuple

from rollscope.exporting.naming import series_title
from rollscope.exporting.rows import Sample
from rollscope.model.kinds import MetricType

__all__ = ["CounterMaker", "CounterPoint"]

_VALUE: Final = "value"


class CounterPoint(NamedTuple):
    """What a series stands at."""

    time_ns: int
    process: int
    title: str
    values: dict[str, float]
    """`value`, or `count` and `sum` of a histogram."""


class CounterMaker:
    """Makes points of samples, which must come in the order of their times."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, str, str, str | None], tuple[int, float]] = {}

    def make(self, sample: Sample) -> CounterPoint:
        """Say what a series stands at after a sample."""
        return CounterPoint(
            sample.time_ns,
            sample.process,
            series_title(sample.name, sample.labels),
            self._values(sample),
        )

    def _values(self, sample: Sample) -> dict[str, float]:
        value = sample.value or 0.0
        if sample.type == MetricType.GAUGE:
            return {_VALUE: value}
        series = (sample.process, sample.type, sample.name, sample.labels)
        count, total = self._sums.get(series, (0, 0.0))
        count, total = count + (sample.entries or 0), total + value
        self._sums[series] = count, total
        if sample.type == MetricType.HISTOGRAM:
            return {"count": float(count), "sum": total}
        return {_VALUE: total}
