"""Names of spans that travel: references, ids as text, and the W3C trace context header."""

import re
from typing import NamedTuple

__all__ = ["SpanRef", "format_traceparent", "parse_traceparent", "span_hex", "trace_hex"]

_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<rest>-.*)?"
)


class SpanRef(NamedTuple):
    """Names one span anywhere: small, picklable, and text through `str`."""

    trace_id: bytes
    span_id: int

    def __str__(self) -> str:
        """Give the W3C form, which `parse_traceparent` reads back."""
        return format_traceparent(self)


def span_hex(span_id: int) -> str:
    """Write a span id as 16 hexadecimal digits."""
    return f"{span_id:016x}"


def trace_hex(trace_id: bytes) -> str:
    """Write a trace id as 32 hexadecimal digits."""
    return trace_id.hex()


def format_traceparent(ref: SpanRef) -> str:
    """Write a reference as a W3C `traceparent` value, marked as sampled."""
    return f"00-{ref.trace_id.hex()}-{ref.span_id:016x}-01"


def parse_traceparent(text: str) -> SpanRef | None:
    """Read a W3C `traceparent` value; None if it is not a valid one.

    A higher version than ours may carry more fields behind a dash; version ff is invalid, and so
    are ids of zeros only.
    """
    match = _TRACEPARENT.fullmatch(text.strip().lower())
    if match is None or match["version"] == "ff":
        return None
    if match["version"] == "00" and match["rest"]:
        return None
    trace_id, span_id = bytes.fromhex(match["trace"]), int(match["span"], 16)
    if not any(trace_id) or not span_id:
        return None
    return SpanRef(trace_id, span_id)
