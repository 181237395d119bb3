"""Payloads: from whatever the host handed over to JSON text of bounded length."""

from typing import Any

import msgspec

from rollscope.instrument.sanitise import clean_value

__all__ = ["snapshot_payload"]


def snapshot_payload(value: Any, limit: int) -> tuple[str, bool]:  # noqa: ANN401
    """Give a payload as JSON text of at most `limit` bytes, and whether it had to be cut."""
    if isinstance(value, str) and len(value) > limit:
        value, was_cut = value[:limit], True
    else:
        was_cut = False
    try:
        encoded = msgspec.json.encode(
            value, enc_hook=lambda odd: clean_value(odd, limit, "payload")
        )
    except (TypeError, ValueError, OverflowError, RecursionError):
        encoded = msgspec.json.encode(clean_value(value, limit, "payload"))
    if len(encoded) <= limit:
        return encoded.decode(), was_cut
    return encoded[:limit].decode("utf-8", "ignore"), True
