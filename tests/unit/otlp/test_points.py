from __future__ import annotations

from typing import Any

import msgspec
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric

from rollscope.metrics.buckets import ZERO_BUCKET, bucket_of
from rollscope.model.kinds import MetricType
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.histograms import explicit_buckets, exponential_buckets
from rollscope.otlp.points import MOST_SERIES
from tests.unit.otlp.desk import NOW_NS, Desk, metric_request, pairs

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def take(desk: Desk, *metrics: Metric) -> bytes:
    request, holder = metric_request()
    holder.extend(metrics)
    body = request.SerializeToString()
    return desk.receiver.take(Signal.METRICS, Form.PROTOBUF, body)


def counter(value: int, *, start: int = NOW_NS, temporality: Any = CUMULATIVE) -> Metric:
    metric = Metric(name="tokens")
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality
    metric.sum.data_points.add(as_int=value, time_unix_nano=NOW_NS, start_time_unix_nano=start)
    return metric


def values(desk: Desk) -> list[float]:
    return [metric.value for metric in desk.metrics()]


def test_a_gauge_is_kept_with_its_time_and_labels() -> None:
    desk = Desk()
    metric = Metric(name="vllm:num_requests_running")
    metric.gauge.data_points.add(
        as_double=3.5,
        time_unix_nano=NOW_NS - 2_000_000_000,
        attributes=pairs({"engine": "0", "is_on": True}),
    )
    take(desk, metric)
    (one,) = desk.metrics()
    assert (one.type, one.value) == (MetricType.GAUGE, 3.5)
    assert one.labels == {"engine": "0", "is_on": "true"}
    assert one.time_ns == NOW_NS - 2_000_000_000


def test_a_counter_that_tells_its_total_is_kept_as_what_it_grew_by() -> None:
    desk = Desk()
    for total in (5, 12, 12, 30):
        take(desk, counter(total))
    assert values(desk) == [5, 7, 18]
    assert {metric.type for metric in desk.metrics()} == {MetricType.COUNTER}


def test_a_counter_that_falls_or_starts_anew_counts_from_zero() -> None:
    desk = Desk()
    take(desk, counter(10))
    take(desk, counter(4))
    take(desk, counter(9, start=NOW_NS + 1))
    assert values(desk) == [10, 4, 9]


def test_the_first_total_of_a_sender_older_than_us_is_only_where_to_count_from() -> None:
    desk = Desk()
    take(desk, counter(1_000, start=NOW_NS - 1))
    take(desk, counter(1_003, start=NOW_NS - 1))
    assert values(desk) == [3]


def test_a_counter_that_tells_its_growth_is_kept_as_it_is() -> None:
    desk = Desk()
    for growth in (5, 2):
        take(desk, counter(growth, temporality=DELTA))
    assert values(desk) == [5, 2]


@pytest.mark.parametrize(("temporality", "expected"), [(CUMULATIVE, [5, 2]), (DELTA, [5, 7])])
def test_what_goes_up_and_down_is_a_gauge(temporality: Any, expected: list[float]) -> None:
    desk = Desk()
    for value in (5, 2):
        metric = counter(value, temporality=temporality)
        metric.sum.is_monotonic = False
        take(desk, metric)
    assert values(desk) == expected
    assert {metric.type for metric in desk.metrics()} == {MetricType.GAUGE}


def test_histograms_are_kept_in_our_buckets() -> None:
    desk = Desk()
    for counts in ([1, 2, 0], [1, 5, 2]):
        metric = Metric(name="latency")
        metric.histogram.aggregation_temporality = CUMULATIVE
        metric.histogram.data_points.add(
            count=sum(counts),
            sum=float(sum(counts)),
            explicit_bounds=[1.0, 4.0],
            bucket_counts=counts,
            time_unix_nano=NOW_NS,
            start_time_unix_nano=NOW_NS,
        )
        take(desk, metric)
    first, second = desk.metrics()
    assert (first.count, first.value) == (3, 3.0)
    assert first.buckets == {bucket_of(0.5): 1, bucket_of(2.0): 2}
    assert (second.count, second.value) == (5, 5.0)
    assert second.buckets == {bucket_of(2.0): 3, bucket_of(4.0): 2}


def test_a_histogram_never_has_more_in_its_buckets_than_it_counts() -> None:
    desk = Desk()
    for scale, counts, most in ((3, [1, 1], 2.2), (0, [3], 3.9)):
        metric = Metric(name="e")
        metric.exponential_histogram.aggregation_temporality = CUMULATIVE
        point = metric.exponential_histogram.data_points.add(
            count=sum(counts), sum=4, max=most, scale=scale, time_unix_nano=NOW_NS
        )
        point.start_time_unix_nano = NOW_NS
        point.positive.bucket_counts.extend(counts)
        take(desk, metric)
    assert [(one.count, sum(one.buckets.values())) for one in desk.metrics()] == [(2, 2), (1, 1)]


@pytest.mark.parametrize("extremes", [(12.5, 12.5), (11.0, 24.0)])
def test_buckets_of_a_total_stay_where_they_are(extremes: tuple[float, float]) -> None:
    desk = Desk()
    for count, (least, most) in ((1, (12.5, 12.5)), (3, extremes)):
        metric = Metric(name="h")
        metric.histogram.aggregation_temporality = CUMULATIVE
        metric.histogram.data_points.add(
            count=count, sum=20.0, min=least, max=most, explicit_bounds=[10.0, 25.0],
            bucket_counts=[0, count, 0], time_unix_nano=NOW_NS, start_time_unix_nano=NOW_NS,
        )  # fmt: skip
        take(desk, metric)
    middle = bucket_of((10 * 25) ** 0.5)
    assert [one.buckets for one in desk.metrics()] == [{middle: 1}, {middle: 2}]


def test_bounds_of_explicit_buckets_are_narrowed_to_what_there_is() -> None:
    assert explicit_buckets([10.0], [3, 2], 8.0, 40.0) == {
        bucket_of((8 * 10) ** 0.5): 3,
        bucket_of((10 * 40) ** 0.5): 2,
    }
    assert explicit_buckets([], [4], None, None) == {ZERO_BUCKET: 4}
    assert explicit_buckets([-1.0, float("inf")], [1, 1, 1], None, None)[ZERO_BUCKET] == 2


def test_exponential_buckets_keep_their_place() -> None:
    # At scale 3 they are ours: bucket n of theirs ends where n + 1 of ours does.
    assert exponential_buckets(3, 2, 7, [1, 0, 5], 3) == {ZERO_BUCKET: 5, 8: 1, 10: 5}
    assert exponential_buckets(0, 0, 0, [1], 0) == {4: 1}
    assert sum(exponential_buckets(-10, 0, -(2**31), [1, 1], 0).values()) == 2
    assert sum(exponential_buckets(-(2**31), 0, 2**31 - 1, [1], 0).values()) == 1


def test_too_many_series_become_one_and_are_counted() -> None:
    desk = Desk()
    metric = Metric(name="per_request")
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = DELTA
    for number in range(MOST_SERIES + 50):
        metric.sum.data_points.add(
            as_int=1, time_unix_nano=NOW_NS, attributes=pairs({"request": str(number)})
        )
    take(desk, metric)
    kept = desk.metrics()
    assert len(kept) == MOST_SERIES + 1
    assert sum(one.value for one in kept) == MOST_SERIES + 50
    assert kept[-1].labels == {"series": "other"}
    (log,) = desk.logs.values()
    assert log.drops == {"metric series beyond the limit": 50}


def test_points_that_cannot_be_used_are_left_out_and_counted() -> None:
    desk = Desk()
    summary = Metric(name="s")
    summary.summary.data_points.add(count=1)
    late = counter(1)
    late.sum.data_points[0].time_unix_nano = 2**63
    wide = Metric(name="wide")
    wide.exponential_histogram.data_points.add(time_unix_nano=NOW_NS).positive.bucket_counts.extend(
        [1] * 5_000
    )
    nameless = counter(1)
    nameless.name = ""
    answer = take(desk, summary, late, wide, nameless)
    assert desk.metrics() == []
    assert b"Left out 4 data points: " in answer


def test_json_says_the_same_as_protobuf() -> None:
    desk, other = Desk(), Desk()
    point = {"timeUnixNano": str(NOW_NS), "startTimeUnixNano": NOW_NS}
    body = {
        "resourceMetrics": [
            {
                "scopeMetrics": [
                    {
                        "metrics": [
                            {"name": "g", "gauge": {"dataPoints": [{**point, "asDouble": 1.5}]}},
                            {
                                "name": "c",
                                "sum": {
                                    "isMonotonic": True,
                                    "aggregationTemporality": 2,
                                    "dataPoints": [{**point, "asInt": "7"}],
                                },
                            },
                            {
                                "name": "e",
                                "exponentialHistogram": {
                                    "aggregationTemporality": 1,
                                    "dataPoints": [
                                        {
                                            **point,
                                            "count": "3",
                                            "sum": 6,
                                            "scale": 3,
                                            "zeroCount": 1,
                                            "positive": {"offset": 7, "bucketCounts": ["1", 1]},
                                        }
                                    ],
                                },
                            },
                        ]
                    }
                ]
            }
        ]
    }
    desk.receiver.take(Signal.METRICS, Form.JSON, msgspec.json.encode(body))
    gauge, sum_, histogram = Metric(name="g"), counter(7), Metric(name="e")
    gauge.gauge.data_points.add(as_double=1.5, time_unix_nano=NOW_NS)
    sum_.name = "c"
    histogram.exponential_histogram.aggregation_temporality = DELTA
    made = histogram.exponential_histogram.data_points.add(
        count=3, sum=6, scale=3, zero_count=1, time_unix_nano=NOW_NS
    )
    made.positive.offset = 7
    made.positive.bucket_counts.extend([1, 1])
    take(other, gauge, sum_, histogram)
    assert len(desk.metrics()) == 3
    assert desk.metrics() == other.metrics()
