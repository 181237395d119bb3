"""Lines of OTLP in JSON, in the forms that files have, brought to the one that the endpoint reads.

Files are written by more hands than requests: with the names of protobuf, with those of older
versions, with numbers that JSON does not have.
"""

from typing import Any, Final

import msgspec

from rollscope.importing.values import decode_object
from rollscope.otlp.answering import Signal
from rollscope.otlp.forms import OtlpError, Request, TooMuch
from rollscope.otlp.jsonform import read_logs, read_traces
from rollscope.otlp.jsonmetrics import read_metrics

__all__ = ["BAD", "read_requests"]

BAD: Final = "bad: no OTLP request"
_READERS: Final = {
    Signal.TRACES: (b'"resourceSpans"', read_traces),
    Signal.METRICS: (b'"resourceMetrics"', read_metrics),
    Signal.LOGS: (b'"resourceLogs"', read_logs),
}
_OLD_NAMES: Final = {
    "instrumentationLibrary": "scope",
    "instrumentationLibrarySpans": "scopeSpans",
    "instrumentationLibraryMetrics": "scopeMetrics",
    "instrumentationLibraryLogs": "scopeLogs",
}
_MOST_DEPTH: Final = 64


def read_requests(raw: bytes) -> tuple[dict[Signal, Request], str]:
    """Read the requests of a line.

    Returns:
        What it holds of each signal, and why that is not all; empty if it is.
    """
    found, trouble = _read(raw)
    if trouble == BAD or not any(request.seen for request in found.values()):
        # Other names, numbers without a size, or half a character.
        again, trouble_again = _read(_renamed(raw))
        if again or not found:
            found, trouble = again, trouble_again
    if not found and not trouble:
        trouble = BAD
    return found, trouble


def _read(raw: bytes) -> tuple[dict[Signal, Request], str]:
    found: dict[Signal, Request] = {}
    for signal, (mark, read) in _READERS.items():
        if mark in raw:
            try:
                found[signal] = read(raw)
            except TooMuch as error:
                return {}, f"bad: {error}"
            except OtlpError:
                return {}, BAD
    return found, ""


def _renamed(raw: bytes) -> bytes:
    """Write a line anew, with the names of today; one that is no object stays as it is."""
    read = decode_object(raw)
    if read is None:
        return raw
    try:
        return msgspec.json.encode(_rename(read[0], 0))
    except (TypeError, ValueError, RecursionError):
        return raw


def _rename(value: Any, depth: int) -> Any:  # noqa: ANN401
    if depth > _MOST_DEPTH:
        return None
    if isinstance(value, dict):
        return {_camel(key): _rename(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_rename(one, depth + 1) for one in value]
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()  # half of a pair is no character
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    camel = first + "".join(part[:1].upper() + part[1:] for part in rest)
    return _OLD_NAMES.get(camel, camel)
