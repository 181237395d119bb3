from __future__ import annotations

import pytest

from rollscope.metrics.aggregate import Sample, aggregate
from rollscope.metrics.buckets import bucket_of
from rollscope.model.kinds import MetricType

COUNTER, GAUGE, HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM


def test_nothing_gives_nothing() -> None:
    assert aggregate([]) == []


def test_a_counter_adds_up() -> None:
    (metric,) = aggregate([(COUNTER, "n", {}, 1), (COUNTER, "n", {}, 2.5)])
    assert (metric.type, metric.name, metric.value, metric.count) == (COUNTER, "n", 3.5, 2)
    assert (metric.min, metric.max, metric.buckets) == (None, None, {})


def test_a_gauge_keeps_the_last_value() -> None:
    (metric,) = aggregate([(GAUGE, "g", {}, 5), (GAUGE, "g", {}, -1)])
    assert (metric.value, metric.count) == (-1, 2)


def test_a_histogram_keeps_sum_count_extremes_and_buckets() -> None:
    (metric,) = aggregate([(HISTOGRAM, "h", {}, value) for value in (4.0, 1.0, 4.0, 0.0)])
    assert (metric.value, metric.count, metric.min, metric.max) == (9.0, 4, 0.0, 4.0)
    assert metric.buckets == {bucket_of(4.0): 2, bucket_of(1.0): 1, bucket_of(0.0): 1}


def test_types_names_and_labels_are_kept_apart_in_order_of_appearance() -> None:
    samples: list[Sample] = [
        (COUNTER, "n", {"worker": "b"}, 1),
        (COUNTER, "n", {"worker": "a"}, 1),
        (GAUGE, "n", {"worker": "b"}, 1),
        (COUNTER, "m", {"worker": "b"}, 1),
        (COUNTER, "n", {}, 1),
        (COUNTER, "n", {"worker": "b"}, 1),
    ]
    metrics = aggregate(samples)
    assert [(m.type, m.name, m.labels, m.count) for m in metrics] == [
        (COUNTER, "n", {"worker": "b"}, 2),
        (COUNTER, "n", {"worker": "a"}, 1),
        (GAUGE, "n", {"worker": "b"}, 1),
        (COUNTER, "m", {"worker": "b"}, 1),
        (COUNTER, "n", {}, 1),
    ]


def test_the_order_of_labels_does_not_matter() -> None:
    (metric,) = aggregate(
        [(COUNTER, "n", {"a": "1", "b": "2"}, 1), (COUNTER, "n", {"b": "2", "a": "1"}, 1)]
    )
    assert metric.count == 2


def test_histograms_do_not_share_buckets() -> None:
    first, second = aggregate([(HISTOGRAM, "a", {}, 1.0), (HISTOGRAM, "b", {}, 2.0)])
    assert len(first.buckets) == len(second.buckets) == 1


def test_a_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(TypeError):
        aggregate([(COUNTER, "n", {}, "one")])  # type: ignore[list-item]  # that is the point
