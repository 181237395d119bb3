"""Payloads: from whatever the host handed over to JSON text of bounded length."""

from typing import Any

import msgspec

from rollscope.instrument.sanitise import clean_value

__all__ = ["snapshot_payload"]


def snapshot_payload(value: Any, limit: int) -> tuple[str, bool]:  # noqa: ANN401
    """Give a payload as JSON text of at most `limit` bytes, and whether it had to be cut."""
    was_cut = False
    if issubclass(type(value), str):
        value, was_cut = str.__getitem__(value, slice(limit)), str.__len__(value) > limit

    def replace(odd: object) -> Any:  # noqa: ANN401
        return clean_value(odd, limit, "payload")

    try:
        encoded = msgspec.json.encode(value, enc_hook=replace)
    except Exception:
        # One number beyond 64 bits or half a character is enough; it must not cost the rest.
        import json  # takes both, for ten times the time

        try:
            plain = msgspec.to_builtins(value, str_keys=True, enc_hook=replace)
            encoded = json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()
        except Exception:  # it holds itself, or has keys that no JSON can have
            encoded, was_cut = msgspec.json.encode(replace(value)), True
    if len(encoded) <= limit:
        return encoded.decode(), was_cut
    return encoded[:limit].decode("utf-8", "ignore"), True
