"""Requests in OTLP's JSON: ids in hex, 64-bit numbers as text. One on a line makes a file."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from rollscope._version import __version__
from rollscope.metrics.buckets import ZERO_BUCKET
from rollscope.model.kinds import MetricType
from rollscope.otlp.export.spans import SCOPE_NAME
from rollscope.otlp.export.wire import CUMULATIVE, HISTOGRAM_SCALE, bucket_run
from rollscope.otlp.forms import PointForm, SpanForm

__all__ = ["encode_metrics", "encode_traces"]

_SCOPE: Final = {"name": SCOPE_NAME, "version": __version__}
Json = dict[str, Any]


def encode_traces(forms: Sequence[SpanForm]) -> bytes:
    """Write an ExportTraceServiceRequest."""
    parts = []
    for _, same_sender in groupby(sorted(forms, key=_sender_of), key=_sender_of):
        each = list(same_sender)
        spans = [_span(form) for form in each]
        held = {"scope": _SCOPE, "spans": spans}
        parts.append({"resource": _resource(each[0]), "scopeSpans": [held]})
    return msgspec.json.encode({"resourceSpans": parts})


def _sender_of(form: SpanForm | PointForm) -> str:
    return form.sender.key or ""


def _resource(form: SpanForm | PointForm) -> Json:
    return {"attributes": _attrs(form.sender.attrs)}


def _span(form: SpanForm) -> Json:
    span: Json = {"traceId": form.trace_id.hex(), "spanId": f"{form.span_id:016x}"}
    if form.parent_id:
        span["parentSpanId"] = f"{form.parent_id:016x}"
    if form.tracestate:
        span["traceState"] = form.tracestate
    span |= {
        "name": form.name,
        "kind": form.kind,
        "startTimeUnixNano": str(form.start_ns),
        "endTimeUnixNano": str(form.end_ns),
        "attributes": _attrs(form.attrs),
    }
    if form.events:
        span["events"] = [
            {
                "name": event.name,
                "timeUnixNano": str(event.time_ns),
                "attributes": _attrs(event.attrs),
            }
            for event in form.events
        ]
    if form.links:
        pairs = [link.split("-")[1:3] for link in form.links]
        span["links"] = [{"traceId": trace, "spanId": own} for trace, own in pairs]
    span["status"] = {"code": form.status, "message": form.message} if form.status else {}
    return span


def _attrs(attrs: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in attrs.items()]


def _value(value: Any) -> Json:  # noqa: ANN401
    kind = type(value)
    if kind is str:
        return {"stringValue": value}
    if kind is bool:
        return {"boolValue": value}
    if kind is int:
        return {"intValue": str(value)}
    if kind is float:
        return {"doubleValue": _double(value)}
    if kind is list:
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    if kind is dict:
        return {"kvlistValue": {"values": _attrs(value)}}
    return {} if value is None else {"stringValue": str(value)}


def _double(value: float) -> float | str:
    """Give a number that JSON can hold; others are written as text, as protobuf's JSON does."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def encode_metrics(points: Sequence[PointForm]) -> bytes:
    """Write an ExportMetricsServiceRequest; sums and histograms are of all time so far."""
    parts = []
    for _, same_sender in groupby(sorted(points, key=_sender_of), key=_sender_of):
        each = sorted(same_sender, key=_metric_of)
        metrics = [
            {"name": name, **_metric(kind, same)}
            for (name, kind), same in groupby(each, key=_metric_of)
        ]
        held = {"scope": _SCOPE, "metrics": metrics}
        parts.append({"resource": _resource(each[0]), "scopeMetrics": [held]})
    return msgspec.json.encode({"resourceMetrics": parts})


def _metric_of(point: PointForm) -> tuple[str, str]:
    return point.name, str(point.type)


def _metric(kind: str, points: Iterable[PointForm]) -> Json:
    if kind == MetricType.GAUGE:
        return {"gauge": {"dataPoints": [_number(point) for point in points]}}
    if kind == MetricType.COUNTER:
        held = [{**_number(point), "startTimeUnixNano": str(point.start_ns)} for point in points]
        told = {"aggregationTemporality": CUMULATIVE, "isMonotonic": True}
        return {"sum": {"dataPoints": held, **told}}
    held = [_histogram(point) for point in points]
    told = {"aggregationTemporality": CUMULATIVE}
    return {"exponentialHistogram": {"dataPoints": held, **told}}


def _number(point: PointForm) -> Json:
    return {
        "attributes": _attrs(point.labels),
        "timeUnixNano": str(point.time_ns),
        "asDouble": _double(point.value),
    }


def _histogram(point: PointForm) -> Json:
    offset, counts = bucket_run(point.buckets)
    told: Json = {
        "attributes": _attrs(point.labels),
        "startTimeUnixNano": str(point.start_ns),
        "timeUnixNano": str(point.time_ns),
        "count": str(point.count),
        "sum": _double(point.value),
        "scale": HISTOGRAM_SCALE,
        "zeroCount": str(point.buckets.get(ZERO_BUCKET, 0)),
        "positive": {"offset": offset, "bucketCounts": [str(count) for count in counts]},
    }
    if point.min is not None and point.max is not None:
        told |= {"min": _double(point.min), "max": _double(point.max)}
    return told
