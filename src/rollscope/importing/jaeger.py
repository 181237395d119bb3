"""Jaeger's JSON: traces as its page saves them and its API gives them, as requests of OTLP.

Times are microseconds, attributes `tags`, resources `processes`; what OpenTelemetry's exporters for
Jaeger put into tags of their own goes back to where it came from.
"""

from typing import Any, Final

from rollscope.importing.accounts import Report
from rollscope.importing.otlp import OtlpFiles
from rollscope.importing.values import decode_object, micros_to_ns
from rollscope.importing.writing import RunWriter
from rollscope.otlp.answering import Signal
from rollscope.otlp.forms import (
    MOST_ATTRS,
    MOST_EVENTS,
    MOST_ITEMS,
    MOST_LINKS,
    Attrs,
    EventForm,
    Request,
    Sender,
    SpanForm,
)

__all__ = ["JaegerFiles", "read_jaeger"]

_BAD: Final = "bad: no trace of Jaeger"
_KINDS: Final = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_STATUSES: Final = {"OK": 1, "ERROR": 2}
_SCOPES: Final = ("otel.scope.name", "otel.library.name")
_ERROR: Final = 2


class JaegerFiles(OtlpFiles):
    """Makes a run of them."""

    format = "jaeger"

    def __init__(self, writer: RunWriter, report: Report) -> None:
        super().__init__(writer, report, read_jaeger)

    def claims(self, raw: bytes) -> bool:
        """Look for the spans that every trace has."""
        return b'"traceID"' in raw and b'"spans"' in raw


def read_jaeger(raw: bytes) -> tuple[dict[Signal, Request], str]:
    """Read a trace, or an answer that holds several.

    Returns:
        Its spans, and why they cannot be read; empty if they can.
    """
    read = decode_object(raw)
    if read is None:
        return {}, _BAD
    data = read[0].get("data", ...)
    traces = data if isinstance(data, list) else [read[0]]
    request = Request()
    for trace in traces:
        if not isinstance(trace, dict) or not isinstance(trace.get("spans"), list):
            return {}, _BAD
        _read_trace(trace, request)
    return {Signal.TRACES: request}, ""


def _read_trace(trace: dict[str, Any], request: Request) -> None:
    processes = trace.get("processes")
    senders: dict[str, Sender] = {}
    for name, process in processes.items() if isinstance(processes, dict) else ():
        senders[name] = _sender(process)
    nobody = _sender(None)
    for span in trace["spans"][:MOST_ITEMS]:
        request.seen += 1
        if not isinstance(span, dict):
            request.reject("cannot be decoded")
            continue
        given = span.get("process")
        known = senders.get(str(span.get("processID")), nobody)
        _take(span, known if given is None else _sender(given), trace.get("traceID"), request)


def _sender(process: Any) -> Sender:  # noqa: ANN401
    about = process if isinstance(process, dict) else {}
    name = about.get("serviceName")
    return Sender({**_tags(about.get("tags")), **({"service.name": name} if name else {})})


def _take(span: dict[str, Any], sender: Sender, trace: Any, request: Request) -> None:  # noqa: ANN401
    trace_id = _hex(span.get("traceID", trace), 32)
    span_id = _hex(span.get("spanID"), 16)
    if not trace_id or not span_id:
        request.reject("has no valid trace and span id")
        return
    start_ns, length_ns = micros_to_ns(span.get("startTime")), micros_to_ns(span.get("duration"))
    attrs = _tags(span.get("tags"))
    parent_id, links = _references(span, trace_id)
    form = SpanForm(
        sender=sender,
        scope=str(_pop(attrs, *_SCOPES) or "")[:512],
        trace_id=trace_id.to_bytes(16),
        span_id=span_id,
        parent_id=parent_id,
        name=str(span.get("operationName") or ""),
        kind=_KINDS.get(str(_pop(attrs, "span.kind")).lower(), 0),
        start_ns=max(start_ns or 0, 0),
        end_ns=0 if length_ns is None or start_ns is None else max(start_ns + length_ns, 0),
        attrs=attrs,
        tracestate=str(_pop(attrs, "w3c.tracestate") or ""),
        events=[_event(log) for log in _list(span.get("logs"))[:MOST_EVENTS]],
        links=links,
    )
    form.status = _STATUSES.get(str(_pop(attrs, "otel.status_code")).upper(), 0)
    form.message = str(_pop(attrs, "otel.status_description") or "")
    if attrs.get("error") in (True, "true"):
        form.status = _ERROR
        del attrs["error"]
    request.spans.append(form)


def _references(span: dict[str, Any], trace_id: int) -> tuple[int, list[str]]:
    """Give the parent, and all other spans that are named."""
    links: list[str] = []
    parent_id = _hex(span.get("parentSpanID"), 16)
    for one in _list(span.get("references")):
        if not isinstance(one, dict):
            continue
        other_trace, other = _hex(one.get("traceID"), 32) or trace_id, _hex(one.get("spanID"), 16)
        is_parent = one.get("refType") == "CHILD_OF" and other_trace == trace_id
        if is_parent and not parent_id:
            parent_id = other
        elif other and other != parent_id and len(links) < MOST_LINKS:
            links.append(f"00-{other_trace:032x}-{other:016x}-01")
    return parent_id, links


def _event(log: Any) -> EventForm:  # noqa: ANN401
    about = log if isinstance(log, dict) else {}
    attrs = _tags(about.get("fields"))
    name = _pop(attrs, "event", "name", "message")
    return EventForm(str(name or "log"), max(micros_to_ns(about.get("timestamp")) or 0, 0), attrs)


def _tags(tags: Any) -> Attrs:  # noqa: ANN401
    attrs: Attrs = {}
    for tag in _list(tags)[:MOST_ATTRS]:
        if isinstance(tag, dict) and isinstance(tag.get("key"), str):
            attrs[tag["key"]] = _typed(tag.get("value"), tag.get("type"))
    return attrs


def _typed(value: Any, kind: Any) -> Any:  # noqa: ANN401
    """Read a value as what it is said to be, where it came as text."""
    if not isinstance(value, str) or kind in (None, "string"):
        return value
    try:
        if kind == "int64":
            return int(value[:24])
        if kind == "float64":
            return float(value)
    except ValueError:
        return value
    return value.lower() == "true" if kind == "bool" else value


def _pop(attrs: Attrs, *names: str) -> Any:  # noqa: ANN401
    found = [attrs.pop(name) for name in names if name in attrs]
    return next((value for value in found if value not in (None, "")), None)


def _hex(value: Any, most: int) -> int:  # noqa: ANN401
    """Read an id, which may lack the zeros in front; 0 if it is none."""
    if not isinstance(value, str) or not 0 < len(value) <= most:
        return 0
    try:
        return max(int(value, 16), 0)
    except ValueError:
        return 0


def _list(value: Any) -> list[Any]:  # noqa: ANN401
    return value if isinstance(value, list) else []
