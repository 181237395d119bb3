"""Requests in protobuf, for HTTP and gRPC."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple

from rollscope._version import __version__
from rollscope.errors import MissingExtra
from rollscope.metrics.buckets import ZERO_BUCKET
from rollscope.model.kinds import MetricType
from rollscope.otlp.export.spans import SCOPE_NAME
from rollscope.otlp.forms import PointForm, SpanForm

__all__ = [
    "CUMULATIVE",
    "HISTOGRAM_SCALE",
    "bucket_run",
    "encode_metrics",
    "encode_traces",
    "metrics_request",
    "put_attrs",
]

CUMULATIVE: Final = 2
HISTOGRAM_SCALE: Final = 3
"""Eight buckets for each doubling, as ours: two to the third."""


class _Types(NamedTuple):
    """Classes of opentelemetry-proto; typed loosely, since it makes them as it is loaded."""

    traces: Any
    metrics: Any


@cache
def _types() -> _Types:
    try:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )
    except ImportError as error:
        raise MissingExtra(
            "OTLP needs opentelemetry-proto; install it with: pip install 'rollscope[server]'"
        ) from error
    return _Types(ExportTraceServiceRequest, ExportMetricsServiceRequest)


def metrics_request() -> Any:  # noqa: ANN401
    """Make an ExportMetricsServiceRequest that holds nothing yet."""
    return _types().metrics()


def encode_traces(forms: Sequence[SpanForm]) -> bytes:
    """Write an ExportTraceServiceRequest."""
    request = _types().traces()
    for _, same_sender in groupby(sorted(forms, key=_sender_of), key=_sender_of):
        each = list(same_sender)
        part = request.resource_spans.add()
        put_attrs(part.resource.attributes, each[0].sender.attrs)
        held = part.scope_spans.add()
        held.scope.name, held.scope.version = SCOPE_NAME, __version__
        for form in each:
            _put_span(held.spans.add(), form)
    data: bytes = request.SerializeToString()
    return data


def _sender_of(form: SpanForm | PointForm) -> str:
    return form.sender.key or ""


def _put_span(span: Any, form: SpanForm) -> None:  # noqa: ANN401
    span.trace_id = form.trace_id
    span.span_id = form.span_id.to_bytes(8)
    if form.parent_id:
        span.parent_span_id = form.parent_id.to_bytes(8)
    span.trace_state = form.tracestate
    span.name = form.name
    span.kind = form.kind
    span.start_time_unix_nano = form.start_ns
    span.end_time_unix_nano = form.end_ns
    put_attrs(span.attributes, form.attrs)
    for event in form.events:
        put = span.events.add()
        put.name, put.time_unix_nano = event.name, event.time_ns
        put_attrs(put.attributes, event.attrs)
    for link in form.links:
        _, trace_id, span_id, _ = link.split("-")
        linked = span.links.add()
        linked.trace_id, linked.span_id = bytes.fromhex(trace_id), bytes.fromhex(span_id)
    if form.status:
        span.status.code = form.status
        span.status.message = form.message


def put_attrs(pairs: Any, attrs: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Add attributes to a message that has a field for them."""
    for key, value in attrs.items():
        pair = pairs.add()
        pair.key = key
        _put_value(pair.value, value)


def _put_value(put: Any, value: Any) -> None:  # noqa: ANN401
    kind = type(value)
    if kind is str:
        put.string_value = value
    elif kind is bool:
        put.bool_value = value
    elif kind is int:
        put.int_value = value
    elif kind is float:
        put.double_value = value
    elif kind is list:
        put.array_value.SetInParent()
        for one in value:
            _put_value(put.array_value.values.add(), one)
    elif kind is dict:
        put.kvlist_value.SetInParent()
        put_attrs(put.kvlist_value.values, value)
    elif value is not None:
        put.string_value = str(value)


def encode_metrics(points: Sequence[PointForm]) -> bytes:
    """Write an ExportMetricsServiceRequest; sums and histograms are of all time so far."""
    request = _types().metrics()
    for _, same_sender in groupby(sorted(points, key=_sender_of), key=_sender_of):
        each = sorted(same_sender, key=_metric_of)
        part = request.resource_metrics.add()
        put_attrs(part.resource.attributes, each[0].sender.attrs)
        held = part.scope_metrics.add()
        held.scope.name, held.scope.version = SCOPE_NAME, __version__
        for (name, kind), same in groupby(each, key=_metric_of):
            metric = held.metrics.add()
            metric.name = name
            _put_points(metric, kind, same)
    data: bytes = request.SerializeToString()
    return data


def _metric_of(point: PointForm) -> tuple[str, str]:
    return point.name, str(point.type)


def _put_points(metric: Any, kind: str, points: Iterable[PointForm]) -> None:  # noqa: ANN401
    if kind == MetricType.GAUGE:
        holder = metric.gauge
    elif kind == MetricType.COUNTER:
        holder = metric.sum
        holder.aggregation_temporality, holder.is_monotonic = CUMULATIVE, True
    else:
        holder = metric.exponential_histogram
        holder.aggregation_temporality = CUMULATIVE
    for point in points:
        put = holder.data_points.add()
        put.time_unix_nano = point.time_ns
        put_attrs(put.attributes, point.labels)
        if kind != MetricType.GAUGE:
            put.start_time_unix_nano = point.start_ns
        if kind == MetricType.HISTOGRAM:
            _put_histogram(put, point)
        else:
            put.as_double = point.value


def _put_histogram(put: Any, point: PointForm) -> None:  # noqa: ANN401
    put.count, put.sum, put.scale = point.count, point.value, HISTOGRAM_SCALE
    if point.min is not None and point.max is not None:
        put.min, put.max = point.min, point.max
    put.zero_count = point.buckets.get(ZERO_BUCKET, 0)
    offset, counts = bucket_run(point.buckets)
    put.positive.offset = offset
    put.positive.bucket_counts.extend(counts)


def bucket_run(buckets: Mapping[int, int]) -> tuple[int, list[int]]:
    """Give buckets as OTLP has them: the number of the first, and the counts from there on.

    Our bucket n ends at two to the n eighths, which is where number n - 1 of theirs ends.
    """
    held = {number: count for number, count in buckets.items() if number != ZERO_BUCKET}
    if not held:
        return 0, []
    first, last = min(held), max(held)
    return first - 1, [held.get(number, 0) for number in range(first, last + 1)]
