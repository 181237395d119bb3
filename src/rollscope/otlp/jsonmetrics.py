"""Requests in JSON: metrics, point by point."""

from typing import Final

import msgspec

from rollscope.model.kinds import MetricType
from rollscope.otlp.forms import MOST_BUCKETS, PointForm, Request, Sender
from rollscope.otlp.histograms import explicit_buckets, exponential_buckets
from rollscope.otlp.jsonshapes import (
    JsonObject,
    Number,
    PairJson,
    ScopeJson,
    attrs_of,
    decode_item,
    decode_outer,
    double_of,
    number_of,
    sender_of,
)
from rollscope.otlp.labels import labels_of

__all__ = ["read_metrics"]

_DELTAS: Final = (1, "1", "AGGREGATION_TEMPORALITY_DELTA")


class _Points(JsonObject):
    data_points: list[msgspec.Raw] | None = None
    aggregation_temporality: Number = None
    is_monotonic: bool = False


class _Metric(JsonObject):
    name: str = ""
    gauge: _Points | None = None
    sum: _Points | None = None
    histogram: _Points | None = None
    exponential_histogram: _Points | None = None
    summary: _Points | None = None


class _ScopeMetrics(JsonObject):
    metrics: list[_Metric] | None = None


class _ResourceMetrics(JsonObject):
    resource: ScopeJson | None = None
    scope_metrics: list[_ScopeMetrics] | None = None


class _Metrics(JsonObject):
    resource_metrics: list[_ResourceMetrics] | None = None


class _Buckets(JsonObject):
    offset: Number = None
    bucket_counts: list[Number] | None = None


class _Point(JsonObject):
    attributes: list[PairJson] | None = None
    start_time_unix_nano: Number = None
    time_unix_nano: Number = None
    flags: Number = None
    as_double: Number = None
    as_int: Number = None
    count: Number = None
    sum: Number = None
    min: Number = None
    max: Number = None
    explicit_bounds: list[Number] | None = None
    bucket_counts: list[Number] | None = None
    scale: Number = None
    zero_count: Number = None
    positive: _Buckets | None = None
    negative: _Buckets | None = None


_metrics: Final = msgspec.json.Decoder(_Metrics)
_point: Final = msgspec.json.Decoder(_Point)


def read_metrics(body: bytes) -> Request:
    """Read an ExportMetricsServiceRequest.

    Raises:
        OtlpError: The body is none.
    """
    request = Request()
    for owned in decode_outer(body, _metrics).resource_metrics or ():
        sender = sender_of(owned.resource)
        for part in owned.scope_metrics or ():
            for metric in part.metrics or ():
                _read_metric(metric, sender, request)
    return request


def _read_metric(metric: _Metric, sender: Sender, request: Request) -> None:
    holders = (
        (metric.gauge, MetricType.GAUGE),
        (metric.sum, MetricType.COUNTER),
        (metric.histogram, MetricType.HISTOGRAM),
        (metric.exponential_histogram, MetricType.HISTOGRAM),
        (metric.summary, None),
    )
    for holder, type_ in holders:
        for raw in (holder.data_points or ()) if holder else ():
            request.count_item()
            if holder is None or type_ is None:
                request.reject("is a summary, which cannot be added up")
                continue
            point = decode_item(raw, _point, request)
            if point is None or number_of(point.flags) & 1:  # no value was recorded
                continue
            form = _empty_form(metric.name, type_, point, sender)
            is_told_so = holder.aggregation_temporality in _DELTAS
            form.is_difference = is_told_so and holder is not metric.gauge
            if holder is metric.sum and not holder.is_monotonic:
                form.type = MetricType.GAUGE
            if _fill(form, point, request):
                request.points.append(form)


def _empty_form(name: str, type_: MetricType, point: _Point, sender: Sender) -> PointForm:
    return PointForm(
        sender=sender,
        type=type_,
        name=name[:512],
        labels=labels_of(attrs_of(point.attributes)),
        time_ns=number_of(point.time_unix_nano),
        start_ns=number_of(point.start_time_unix_nano),
        value=0.0,
    )


def _fill(form: PointForm, point: _Point, request: Request) -> bool:
    """Take over the values of a point; false if that cannot be done."""
    if form.type is not MetricType.HISTOGRAM:
        form.value = float(number_of(point.as_int)) if point.as_int else double_of(point.as_double)
        form.count = 1
        return True
    form.value, form.count = double_of(point.sum), max(number_of(point.count), 0)
    form.min = None if point.min is None else double_of(point.min)
    form.max = None if point.max is None else double_of(point.max)
    sides = [side.bucket_counts or [] for side in (point.positive, point.negative) if side]
    lists = (point.bucket_counts or [], point.explicit_bounds or [], *sides)
    if any(len(each) > MOST_BUCKETS for each in lists):
        request.reject(f"has more than {MOST_BUCKETS} buckets")
        return False
    form.buckets = _buckets(point, form)
    return True


def _buckets(point: _Point, form: PointForm) -> dict[int, int]:
    if point.positive is None and point.negative is None and point.scale is None:
        bounds = [double_of(bound) for bound in point.explicit_bounds or ()]
        return explicit_buckets(bounds, _counts(point.bucket_counts), *form.extremes)
    positive, negative = point.positive or _Buckets(), point.negative or _Buckets()
    return exponential_buckets(
        _within(number_of(point.scale), 64),
        max(number_of(point.zero_count), 0),
        _within(number_of(positive.offset), 2**31),
        _counts(positive.bucket_counts),
        sum(_counts(negative.bucket_counts)),
    )


def _within(number: int, most: int) -> int:
    return min(max(number, -most), most)


def _counts(counts: list[Number] | None) -> list[int]:
    return [min(max(number_of(count), 0), 2**63 - 1) for count in counts or ()]
