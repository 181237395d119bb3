"""What endpoints answer, in words and numbers."""

from typing import Any, Final

import msgspec

from rollscope.otlp.answering import Form
from rollscope.otlp.export.sending import Delivered
from rollscope.otlp.forms import OtlpError, Request
from rollscope.otlp.wire import fields_of

__all__ = ["read_delivered", "read_retry_info", "read_words"]

_SHOWN_CHARACTERS: Final = 300
_REJECTED: Final = ("rejectedSpans", "rejectedDataPoints")
_COUNT, _MESSAGE = 1, 2
"""Fields of a partial success; the second is also where a status has its message."""
_DETAILS: Final = 3
_RETRY_INFO: Final = b"/google.rpc.RetryInfo"


def read_delivered(form: Form, data: bytes) -> Delivered:
    """Read what was left out of a request that was taken; an answer of no known form says none."""
    try:
        if form is Form.JSON:
            said = msgspec.json.decode(data or b"{}", type=dict[str, Any]).get("partialSuccess")
            held = said if isinstance(said, dict) else {}
            count = next((int(held[name]) for name in _REJECTED if name in held), 0)
            return Delivered(count, _shown(str(held.get("errorMessage", ""))))
        partial = _fields(_part(_fields(memoryview(data)), 1))
    except (OtlpError, ValueError, msgspec.DecodeError):
        return Delivered()
    rejected = partial.get(_COUNT, 0)
    message = bytes(_part(partial, _MESSAGE)).decode("utf-8", "replace")
    return Delivered(rejected if isinstance(rejected, int) else 0, _shown(message))


def read_words(data: bytes) -> str:
    """Give what a refusal says, in brackets; nothing if it does not say anything."""
    try:
        if data[:1] == b"{":
            text = str(msgspec.json.decode(data, type=dict[str, Any]).get("message", ""))
        else:
            text = bytes(_part(_fields(memoryview(data)), _MESSAGE)).decode()
    except (OtlpError, ValueError, msgspec.DecodeError):
        text = data.decode("utf-8", "replace")
    return f" ({_shown(text)})" if text.strip() else ""


def read_retry_info(status: bytes) -> float | None:
    """Find a `google.rpc.RetryInfo` in a `google.rpc.Status`: for how many seconds to stay away."""
    try:
        for number, value in fields_of(memoryview(status), Request()):
            if number != _DETAILS or not isinstance(value, memoryview):
                continue
            detail = _fields(value)
            if bytes(_part(detail, 1)).endswith(_RETRY_INFO):
                delay = _fields(_part(_fields(_part(detail, 2)), 1))
                seconds, nanos = delay.get(1, 0), delay.get(2, 0)
                if isinstance(seconds, int) and isinstance(nanos, int):
                    return seconds + nanos / 1e9
    except OtlpError:
        return None
    return None


def _fields(data: memoryview) -> dict[int, int | memoryview]:
    return dict(fields_of(data, Request()))


def _part(fields: dict[int, int | memoryview], number: int) -> memoryview:
    """Give a field that holds bytes; none at all if it does not."""
    value = fields.get(number)
    return value if isinstance(value, memoryview) else memoryview(b"")


def _shown(text: str) -> str:
    return " ".join(text.split())[:_SHOWN_CHARACTERS]
