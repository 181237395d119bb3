"""Aggregation of metric calls between two drains: one record per metric and label set."""

from collections.abc import Iterable

from rollscope.metrics.buckets import bucket_of
from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType

__all__ = ["Sample", "aggregate"]

Sample = tuple[MetricType, str, dict[str, str], float]
"""type, name, labels, value: one call of count, gauge or observe."""


def aggregate(samples: Iterable[Sample]) -> list[Metric]:
    """Fold calls into one metric per (type, name, labels), in order of first appearance.

    Raises:
        TypeError, ValueError: A value is no number; the caller drops that sample and says so.
    """
    folded: dict[tuple[MetricType, str, tuple[tuple[str, str], ...]], Metric] = {}
    for type_, name, labels, value in samples:
        key = (type_, name, tuple(sorted(labels.items())))
        metric = folded.get(key)
        if metric is None:
            folded[key] = metric = Metric(type_, name, labels, 0.0, buckets={})
        _add(metric, value)
    return list(folded.values())


def _add(metric: Metric, value: float) -> None:
    metric.count += 1
    if metric.type == MetricType.GAUGE:
        metric.value = value
        return
    metric.value += value
    if metric.type == MetricType.HISTOGRAM:
        metric.min = value if metric.min is None else min(metric.min, value)
        metric.max = value if metric.max is None else max(metric.max, value)
        bucket = bucket_of(value)
        metric.buckets[bucket] = metric.buckets.get(bucket, 0) + 1
