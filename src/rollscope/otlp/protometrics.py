"""Requests in protobuf: metrics, point by point."""

from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

from rollscope.model.kinds import MetricType
from rollscope.otlp.forms import MOST_BUCKETS, PointForm, Request, Sender
from rollscope.otlp.histograms import explicit_buckets, exponential_buckets
from rollscope.otlp.labels import labels_of
from rollscope.otlp.protobuf import attrs_of, items_of, parse_item
from rollscope.otlp.wire import fields_of

__all__ = ["read_metrics"]

_NAME: Final = 1
_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL, _SUMMARY = 5, 7, 9, 10, 11
_POINTS, _TEMPORALITY, _IS_MONOTONIC = 1, 2, 3
_DELTA: Final = 1
_KINDS: Final = (_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL, _SUMMARY)


class _Types(NamedTuple):
    number: Any
    histogram: Any
    exponential: Any


@cache
def _types() -> _Types:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import (
        ExponentialHistogramDataPoint,
        HistogramDataPoint,
        NumberDataPoint,
    )

    return _Types(NumberDataPoint, HistogramDataPoint, ExponentialHistogramDataPoint)


def read_metrics(body: bytes) -> Request:
    """Read an ExportMetricsServiceRequest.

    Raises:
        OtlpError: The body is none.
    """
    request = Request()
    for sender, _, data in items_of(body, request):
        name, holders = "", []
        for number, value in fields_of(data, request):
            if isinstance(value, memoryview):
                if number == _NAME:
                    name = bytes(value[:512]).decode("utf-8", "replace")
                elif number in _KINDS:
                    holders.append((number, value))
        for kind, holder in holders:
            _read_points(sender, name, kind, holder, request)
    return request


class _Metric(NamedTuple):
    sender: Sender
    name: str
    kind: int
    is_difference: bool


def _read_points(
    sender: Sender, name: str, kind: int, holder: memoryview, request: Request
) -> None:
    points = []
    numbers: dict[int, int] = {}
    for number, value in fields_of(holder, request):
        if isinstance(value, int):
            numbers[number] = value
        elif number == _POINTS:
            request.count_item()
            points.append(value)
    if kind == _SUMMARY:
        request.reject("is a summary, which cannot be added up", len(points))
        return
    is_difference = numbers.get(_TEMPORALITY) == _DELTA and kind != _GAUGE
    metric = _Metric(sender, name, kind, is_difference)
    is_level = kind == _SUM and not numbers.get(_IS_MONOTONIC)
    for data in points:
        point = _read_point(metric, data, request)
        if point is not None:
            if is_level:  # it goes up and down
                point.type = MetricType.GAUGE
            request.points.append(point)


def _read_point(metric: _Metric, data: memoryview, request: Request) -> PointForm | None:
    types = _types()
    kind = {_HISTOGRAM: types.histogram, _EXPONENTIAL: types.exponential}
    point = parse_item(data, kind.get(metric.kind, types.number), request)
    if point is None or point.flags & 1:  # no value was recorded
        return None
    form = PointForm(
        sender=metric.sender,
        type=MetricType.GAUGE if metric.kind == _GAUGE else MetricType.COUNTER,
        name=metric.name,
        labels=labels_of(attrs_of(point.attributes)),
        time_ns=point.time_unix_nano,
        start_ns=point.start_time_unix_nano,
        value=0.0,
        is_difference=metric.is_difference,
    )
    if metric.kind in (_GAUGE, _SUM):
        field = point.WhichOneof("value")
        form.value = float(getattr(point, field)) if field else 0.0
        form.count = 1
        return form
    return _fill_histogram(form, metric.kind, point, request)


def _fill_histogram(
    form: PointForm,
    kind: int,
    point: Any,  # noqa: ANN401
    request: Request,
) -> PointForm | None:
    form.type = MetricType.HISTOGRAM
    form.value, form.count = point.sum, point.count
    form.min = point.min if point.HasField("min") else None
    form.max = point.max if point.HasField("max") else None
    if kind == _HISTOGRAM:
        bounds, counts = point.explicit_bounds, point.bucket_counts
        if len(counts) > MOST_BUCKETS or len(bounds) > MOST_BUCKETS:
            request.reject(f"has more than {MOST_BUCKETS} buckets")
            return None
        form.buckets = explicit_buckets(bounds, counts, *form.extremes)
        return form
    positive, negative = point.positive, point.negative.bucket_counts
    if len(positive.bucket_counts) > MOST_BUCKETS or len(negative) > MOST_BUCKETS:
        request.reject(f"has more than {MOST_BUCKETS} buckets")
        return None
    form.buckets = exponential_buckets(
        point.scale,
        point.zero_count,
        positive.offset,
        positive.bucket_counts,
        sum(islice(negative, MOST_BUCKETS)),
    )
    return form
