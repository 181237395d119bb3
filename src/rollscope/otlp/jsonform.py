"""Requests in JSON: traces and logs. Metrics have a module of their own.

Ids are hexadecimal, 64-bit numbers may be text, unknown fields are ignored. Liberties that are seen
in the wild are taken too, and told once per sender: ids in base64, and enumerations by name.
"""

from typing import Final
from zlib import crc32

import msgspec

from rollscope.otlp.forms import (
    MOST_EVENTS,
    MOST_LINKS,
    EventForm,
    LogForm,
    Request,
    Sender,
    SpanForm,
)
from rollscope.otlp.jsonshapes import (
    JsonObject,
    Number,
    PairJson,
    ScopeJson,
    attrs_of,
    decode_base64,
    decode_item,
    decode_outer,
    number_of,
    sender_of,
)

__all__ = ["read_logs", "read_traces"]

_TRACE_BYTES, _SPAN_BYTES = 16, 8
_BASE64_CHARACTERS: Final = {_TRACE_BYTES: 24, _SPAN_BYTES: 12}
_KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_CODES: Final = ("UNSET", "OK", "ERROR")


class _ScopeSpans(JsonObject):
    scope: ScopeJson | None = None
    spans: list[msgspec.Raw] | None = None


class _ResourceSpans(JsonObject):
    resource: ScopeJson | None = None
    scope_spans: list[_ScopeSpans] | None = None


class _Traces(JsonObject):
    resource_spans: list[_ResourceSpans] | None = None


class _ScopeLogs(JsonObject):
    log_records: list[msgspec.Raw] | None = None


class _ResourceLogs(JsonObject):
    resource: ScopeJson | None = None
    scope_logs: list[_ScopeLogs] | None = None


class _Logs(JsonObject):
    resource_logs: list[_ResourceLogs] | None = None


class _Event(JsonObject):
    name: str = ""
    time_unix_nano: Number = None
    attributes: list[PairJson] | None = None


class _Link(JsonObject):
    trace_id: str = ""
    span_id: str = ""


class _Status(JsonObject):
    code: Number = None
    message: str = ""


class _Span(JsonObject):
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None
    trace_state: str | None = None
    name: str = ""
    kind: Number = None
    start_time_unix_nano: Number = None
    end_time_unix_nano: Number = None
    attributes: list[PairJson] | None = None
    events: list[_Event] | None = None
    links: list[_Link] | None = None
    status: _Status | None = None


class _Log(JsonObject):
    trace_id: str | None = None
    span_id: str | None = None
    event_name: str | None = None
    time_unix_nano: Number = None
    observed_time_unix_nano: Number = None
    attributes: list[PairJson] | None = None


_traces: Final = msgspec.json.Decoder(_Traces)
_logs: Final = msgspec.json.Decoder(_Logs)
_span: Final = msgspec.json.Decoder(_Span)
_log: Final = msgspec.json.Decoder(_Log)


def read_traces(body: bytes) -> Request:
    """Read an ExportTraceServiceRequest.

    Raises:
        OtlpError: The body is none.
    """
    request = Request()
    for owned in decode_outer(body, _traces).resource_spans or ():
        sender = sender_of(owned.resource)
        for part in owned.scope_spans or ():
            scope = part.scope.name[:512] if part.scope else ""
            for raw in part.spans or ():
                request.count_item()
                span = decode_item(raw, _span, request)
                if span is not None and _take_span(span, sender, scope, request):
                    request.digests.append(crc32(raw) << 32 | len(memoryview(raw)))
    return request


def read_logs(body: bytes) -> Request:
    """Read an ExportLogsServiceRequest.

    Raises:
        OtlpError: The body is none.
    """
    request = Request()
    for owned in decode_outer(body, _logs).resource_logs or ():
        sender = sender_of(owned.resource)
        for part in owned.scope_logs or ():
            for raw in part.log_records or ():
                request.count_item()
                record = decode_item(raw, _log, request)
                if record is not None:
                    request.logs.append(_log_form(record, sender, request))
    return request


def _log_form(record: _Log, sender: Sender, request: Request) -> LogForm:
    attrs = attrs_of(record.attributes)
    return LogForm(
        sender=sender,
        trace_id=_id_of(record.trace_id, _TRACE_BYTES, request) or b"",
        span_id=int.from_bytes(_id_of(record.span_id, _SPAN_BYTES, request) or b""),
        name=record.event_name or str(attrs.get("event.name", "")),
        time_ns=number_of(record.time_unix_nano) or number_of(record.observed_time_unix_nano),
        attrs=attrs,
    )


def _id_of(text: str | None, size: int, request: Request) -> bytes | None:
    """Read an id; empty if there is none, None if it is no id."""
    if not text:
        return b""
    if len(text) == 2 * size:
        try:
            return bytes.fromhex(text)
        except ValueError:
            return None
    if len(text) == _BASE64_CHARACTERS[size]:
        found = decode_base64(text)
        request.lenient.add("ids in base64 instead of hexadecimal")
        return found if len(found) == size else None
    return None


def _enum(value: Number, prefix: str, names: tuple[str, ...], request: Request) -> int:
    if value is None or type(value) is int:
        return value or 0
    if isinstance(value, str) and value.startswith(prefix):
        request.lenient.add("enumerations by name instead of number")
        name = value.removeprefix(prefix)
        return names.index(name) if name in names else 0
    return number_of(value)


def _event_forms(events: list[_Event]) -> list[EventForm]:
    return [
        EventForm(event.name, number_of(event.time_unix_nano), attrs_of(event.attributes))
        for event in events[:MOST_EVENTS]
    ]


def _traceparents(links: list[_Link]) -> list[str]:
    return [
        f"00-{link.trace_id.lower()}-{link.span_id.lower()}-01"
        for link in links[:MOST_LINKS]
        if len(link.trace_id) == 2 * _TRACE_BYTES and len(link.span_id) == 2 * _SPAN_BYTES
    ]


def _take_span(span: _Span, sender: Sender, scope: str, request: Request) -> bool:
    trace_id = _id_of(span.trace_id, _TRACE_BYTES, request)
    span_id = int.from_bytes(_id_of(span.span_id, _SPAN_BYTES, request) or b"")
    parent = _id_of(span.parent_span_id, _SPAN_BYTES, request)
    if not trace_id or not any(trace_id) or not span_id:
        request.reject("has no valid trace and span id")
        return False
    if parent is None:
        request.reject("has a parent id of a wrong length")
        return False
    status = span.status or _Status()
    request.spans.append(
        SpanForm(
            sender=sender,
            scope=scope,
            trace_id=trace_id,
            span_id=span_id,
            parent_id=int.from_bytes(parent),
            name=span.name,
            kind=_enum(span.kind, "SPAN_KIND_", _KINDS, request),
            start_ns=number_of(span.start_time_unix_nano),
            end_ns=number_of(span.end_time_unix_nano),
            attrs=attrs_of(span.attributes),
            status=_enum(status.code, "STATUS_CODE_", _CODES, request),
            message=status.message,
            tracestate=span.trace_state or "",
            events=_event_forms(span.events) if span.events else [],
            links=_traceparents(span.links) if span.links else [],
        )
    )
    return True
