"""What a sender is answered, in the form in which it asked."""

from enum import StrEnum
from typing import Final

import msgspec

from rollscope.otlp.forms import Request

__all__ = ["Form", "Signal", "answer", "failure"]

_INVALID_ARGUMENT: Final = 3
_MOST_REASONS: Final = 5


class Form(StrEnum):
    """How a request is written; the value is its media type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class Signal(StrEnum):
    """What a request is about; the value is the last part of its address."""

    TRACES = "traces"
    METRICS = "metrics"
    LOGS = "logs"


_REJECTED: Final = {
    Signal.TRACES: ("rejectedSpans", "spans"),
    Signal.METRICS: ("rejectedDataPoints", "data points"),
    Signal.LOGS: ("rejectedLogRecords", "log records"),
}


def answer(signal: Signal, form: Form, request: Request) -> bytes:
    """Say that a request was taken, and what of it was left out."""
    count = sum(request.rejected.values())
    key, what = _REJECTED[signal]
    if not count:
        return b"{}" if form is Form.JSON else b""
    reasons = sorted(request.rejected.items(), key=lambda item: -item[1])
    told = ", ".join(f"{why} ({number})" for why, number in reasons[:_MOST_REASONS])
    message = f"Left out {count} {what}: {told}."
    if form is Form.JSON:
        said = {"partialSuccess": {key: str(count), "errorMessage": message}}
        return msgspec.json.encode(said)
    text = message.encode()
    inner = b"\x08" + _varint(count) + b"\x12" + _varint(len(text)) + text
    return b"\x0a" + _varint(len(inner)) + inner


def failure(form: Form, message: str, code: int = _INVALID_ARGUMENT) -> bytes:
    """Give a `google.rpc.Status`."""
    if form is Form.JSON:
        return msgspec.json.encode({"code": code, "message": message})
    text = message.encode("utf-8", "replace")
    return b"\x08" + _varint(code) + b"\x12" + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
