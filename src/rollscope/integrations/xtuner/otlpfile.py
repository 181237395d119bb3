"""The file of OTLP JSON lines: one request with the spans that ended since the last."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["EndedSpan", "OtlpFile", "trace_request"]

_INTERNAL: Final = 1
_ERROR: Final = 2


class EndedSpan(NamedTuple):
    """A span as it goes into the file; callers hand over plain tuples, which cost less."""

    trace_id: bytes
    span_id: int
    parent_id: int
    """0 for a root."""
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    error: str | None = None
    events: list[tuple[str, int, dict[str, Any]]] | None = None


class OtlpFile:
    """One file that all processes of a run append to, a line at a time."""

    def __init__(self, path: Path, service_name: str, run_id: str) -> None:
        self._path = path
        self._names = {"service.name": service_name, "run.id": run_id}
        self._file: int | None = None
        self._is_torn = False

    def write(self, records: list[Any]) -> None:
        """Append one request."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o644)
        resource = self._names | {"service.instance.id": str(os.getpid())}
        line = json.dumps(trace_request(records, resource), separators=(",", ":")).encode() + b"\n"
        if self._is_torn:
            line = b"\n" + line  # what a full disk cut off stays a bad line of its own
        # In one call: other processes append to the same file.
        self._is_torn = os.write(self._file, line) < len(line)
        if self._is_torn:
            raise OSError(errno.ENOSPC, "only a part of a line could be written")

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def trace_request(spans: Iterable[tuple[Any, ...]], resource: dict[str, Any]) -> dict[str, Any]:
    """Give a request with spans of one sender; an end of 0 is that of a span that is open."""
    made = [_span(EndedSpan._make(span)) for span in spans]
    scope = {"scope": {"name": "xtuner"}, "spans": made}
    sender = {"attributes": _attributes(resource)}
    return {"resourceSpans": [{"resource": sender, "scopeSpans": [scope]}]}


def _span(span: EndedSpan) -> dict[str, Any]:
    made: dict[str, Any] = {"traceId": span.trace_id.hex(), "spanId": f"{span.span_id:016x}"}
    if span.parent_id:
        made["parentSpanId"] = f"{span.parent_id:016x}"
    made |= {
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
        "status": {} if span.error is None else {"code": _ERROR, "message": span.error},
    }
    if span.events:
        made["events"] = [
            {"name": name, "timeUnixNano": str(at), "attributes": _attributes(attrs)}
            for name, at, attrs in span.events
        ]
    return made


def _attributes(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(item)} for key, item in attributes.items()]


def _value(item: Any) -> dict[str, Any]:  # noqa: ANN401  (a cleaned value)
    if isinstance(item, bool):
        return {"boolValue": item}
    if isinstance(item, int):
        return {"intValue": str(item)}
    if isinstance(item, float):
        return {"doubleValue": item if math.isfinite(item) else str(item)}
    if isinstance(item, (list, tuple)):
        return {"arrayValue": {"values": [_value(each) for each in item]}}
    return {"stringValue": str(item)}
