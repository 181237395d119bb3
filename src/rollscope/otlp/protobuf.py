"""Requests in protobuf: traces and logs. Metrics have a module of their own."""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

from rollscope.errors import MissingExtra
from rollscope.otlp.forms import (
    MOST_ATTRS,
    MOST_DEPTH,
    MOST_EVENTS,
    MOST_ITEM_BYTES,
    MOST_LINKS,
    Attrs,
    EventForm,
    LogForm,
    OtlpError,
    Request,
    Sender,
    SpanForm,
)
from rollscope.otlp.wire import fields_of, messages_of

__all__ = ["attrs_of", "items_of", "parse_item", "read_logs", "read_traces"]

_OWNER, _PARTS = 1, 2
"""The fields of a resource's or scope's list: whose it is, and what it holds."""
_MOST_VALUES: Final = 64
_TRACE_BYTES, _SPAN_BYTES = 16, 8
_NO_TRACE: Final = bytes(16)


class _Types(NamedTuple):
    """Classes of opentelemetry-proto; typed loosely, since it makes them as it is loaded."""

    resource: Any
    span: Any
    log: Any
    error: type[Exception]


@cache
def _types() -> _Types:
    try:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
        from opentelemetry.proto.resource.v1.resource_pb2 import Resource
        from opentelemetry.proto.trace.v1.trace_pb2 import Span
    except ImportError as error:
        raise MissingExtra(
            "OTLP needs opentelemetry-proto; install it with: pip install 'rollscope[server]'"
        ) from error
    return _Types(Resource, Span, LogRecord, DecodeError)


def read_traces(body: bytes) -> Request:
    """Read an ExportTraceServiceRequest.

    Raises:
        OtlpError: The body is none.
    """
    request = Request()
    types = _types()
    for sender, scope, data in items_of(body, request):
        span = parse_item(data, types.span, request)
        if span is not None:
            _take_span(span, sender, scope, request)
    return request


def read_logs(body: bytes) -> Request:
    """Read an ExportLogsServiceRequest; records that name no event are left out.

    Raises:
        OtlpError: The body is none.
    """
    request = Request()
    types = _types()
    for sender, _, data in items_of(body, request):
        record = parse_item(data, types.log, request)
        if record is None:
            continue
        attrs = attrs_of(record.attributes)
        request.logs.append(
            LogForm(
                sender=sender,
                trace_id=record.trace_id,
                span_id=int.from_bytes(record.span_id),
                name=record.event_name or str(attrs.get("event.name", "")),
                time_ns=record.time_unix_nano or record.observed_time_unix_nano,
                attrs=attrs,
            )
        )
    return request


def items_of(body: bytes, request: Request) -> Iterator[tuple[Sender, str, memoryview]]:
    """Give each span, metric or log record of a request as bytes, with whose it is."""
    for owned in messages_of(memoryview(body), 1, request):
        owner, parts = _split(owned, request)
        if len(owner) > MOST_ITEM_BYTES:
            raise OtlpError(f"a resource has more than {MOST_ITEM_BYTES} bytes")
        sender = Sender(attrs_of(_whole(owner, _types().resource).attributes))
        for part in parts:
            scope, items = _split(part, request)
            name = _scope_name(scope, request)
            for item in items:
                request.count_item()
                yield sender, name, item


def parse_item(data: memoryview, kind: Any, request: Request) -> Any:  # noqa: ANN401
    """Parse one item; None, and counted, if that cannot be done."""
    if len(data) > MOST_ITEM_BYTES:
        request.reject(f"has more than {MOST_ITEM_BYTES} bytes")
        return None
    try:
        return kind.FromString(data)
    except _types().error:
        request.reject("cannot be decoded")
        return None


def _whole(data: memoryview, kind: Any) -> Any:  # noqa: ANN401
    try:
        return kind.FromString(data)
    except _types().error:
        raise OtlpError("the body is no OTLP message: a resource cannot be decoded") from None


def _split(data: memoryview, request: Request) -> tuple[memoryview, list[memoryview]]:
    owner = memoryview(b"")
    parts: list[memoryview] = []
    for number, value in fields_of(data, request):
        if isinstance(value, memoryview):
            if number == _PARTS:
                parts.append(value)
            elif number == _OWNER:
                owner = value
    return owner, parts


def _scope_name(data: memoryview, request: Request) -> str:
    name = next(messages_of(data, 1, request), memoryview(b""))
    return bytes(name[:512]).decode("utf-8", "replace")


def attrs_of(pairs: Any) -> Attrs:  # noqa: ANN401
    """Read a list of attributes."""
    attrs: Attrs = {}
    for pair in pairs if len(pairs) <= MOST_ATTRS else islice(pairs, MOST_ATTRS):
        value = pair.value
        field = value.WhichOneof("value")
        if field in _PLAIN:
            attrs[pair.key] = getattr(value, field)
        elif field is not None:
            attrs[pair.key] = _nested(value, field, 1)
    return attrs


_PLAIN: Final = frozenset({"string_value", "int_value", "double_value", "bool_value"})


def _nested(value: Any, field: str, depth: int) -> Any:  # noqa: ANN401
    if depth > MOST_DEPTH:
        return "…"
    if field == "array_value":
        return [_value(item, depth) for item in islice(value.array_value.values, _MOST_VALUES)]
    if field == "kvlist_value":
        pairs = islice(value.kvlist_value.values, _MOST_VALUES)
        return {pair.key: _value(pair.value, depth) for pair in pairs}
    return value.bytes_value.hex() if field == "bytes_value" else None


def _value(value: Any, depth: int) -> Any:  # noqa: ANN401
    field = value.WhichOneof("value")
    if field is None:
        return None
    return getattr(value, field) if field in _PLAIN else _nested(value, field, depth + 1)


def _take_span(span: Any, sender: Sender, scope: str, request: Request) -> None:  # noqa: ANN401
    trace_id, span_id, parent_id = span.trace_id, span.span_id, span.parent_span_id
    if len(trace_id) != _TRACE_BYTES or len(span_id) != _SPAN_BYTES or trace_id == _NO_TRACE:
        request.reject("has no valid trace and span id")
        return
    if len(parent_id) not in (0, _SPAN_BYTES):
        request.reject("has a parent id of a wrong length")
        return
    form = SpanForm(
        sender=sender,
        scope=scope,
        trace_id=trace_id,
        span_id=int.from_bytes(span_id),
        parent_id=int.from_bytes(parent_id),
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attrs=attrs_of(span.attributes),
        tracestate=span.trace_state,
    )
    if span.HasField("status"):
        form.status, form.message = span.status.code, span.status.message
    if span.events:
        form.events = [
            EventForm(event.name, event.time_unix_nano, attrs_of(event.attributes))
            for event in islice(span.events, MOST_EVENTS)
        ]
    if span.links:
        form.links = [
            f"00-{link.trace_id.hex()}-{link.span_id.hex()}-01"
            for link in islice(span.links, MOST_LINKS)
            if len(link.trace_id) == _TRACE_BYTES and len(link.span_id) == _SPAN_BYTES
        ]
    if form.span_id:
        request.spans.append(form)
    else:
        request.reject("has no valid trace and span id")
