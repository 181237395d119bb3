"""Tallies: what a series did since its last record."""

from __future__ import annotations

import math

from rollscope.metrics.buckets import bucket_of
from rollscope.metrics.tally import Tally
from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType


def test_a_counter_adds_up_and_begins_anew() -> None:
    tally = Tally(MetricType.COUNTER, "n", {"a": "b"})
    tally.add([1.0, 2.5], 10)
    tally.add([1.0], 20)
    assert tally.touched_ns == 20
    assert tally.take(4, 20) == Metric(
        MetricType.COUNTER, "n", {"a": "b"}, 4.5, 3, None, None, {}, 20, 4
    )
    tally.add([1.0], 5_000)
    assert tally.take(None, 5_000).value == 1.0


def test_a_gauge_keeps_the_last_value_and_its_extremes() -> None:
    tally = Tally(MetricType.GAUGE, "g", {})
    tally.add([3.0, -1.0], 10)
    tally.add([math.nan], 10)
    tally.add([math.nan, 2.0], 10)
    record = tally.take(None, 10)
    assert (record.value, record.count, record.min, record.max) == (2.0, 5, -1.0, 3.0)


def test_a_histogram_keeps_sum_extremes_and_buckets() -> None:
    tally = Tally(MetricType.HISTOGRAM, "h", {})
    tally.add([4.0, 1.0], 10)
    tally.add([4.0, 0.0], 10)
    record = tally.take(None, 10)
    assert (record.value, record.count, record.min, record.max) == (9.0, 4, 0.0, 4.0)
    assert record.buckets == {bucket_of(4.0): 2, bucket_of(1.0): 1, bucket_of(0.0): 1}
    tally.add([1.0], 10)
    assert tally.take(None, 10).buckets == {bucket_of(1.0): 1}


def test_records_are_never_of_one_time() -> None:
    tally = Tally(MetricType.COUNTER, "n", {})
    assert [tally.take(None, at).mono_ns for at in (10, 10, 9, 5_000)] == [10, 20, 30, 5_000]
