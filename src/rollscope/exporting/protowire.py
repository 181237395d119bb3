"""Protobuf's wire format, as much as is needed to write messages field by field."""

import struct
from functools import lru_cache

__all__ = ["bytes_field", "double_field", "fixed64_field", "text_field", "uint_field", "varint"]

_WRAPS = 2**64


@lru_cache(maxsize=65_536)
def varint(number: int) -> bytes:
    """Write a whole number; a negative one as if it were of 64 bits without a sign."""
    number %= _WRAPS
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def uint_field(number: int, value: int) -> bytes:
    """Write a field that holds a whole number, a truth value or a choice."""
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Write a field that holds bytes or a message."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def text_field(number: int, value: str) -> bytes:
    """Write a field that holds text."""
    return bytes_field(number, value.encode())


def fixed64_field(number: int, value: int) -> bytes:
    """Write a field that holds eight bytes."""
    return varint(number << 3 | 1) + value.to_bytes(8, "little")


def double_field(number: int, value: float) -> bytes:
    """Write a field that holds a floating-point number."""
    return varint(number << 3 | 1) + struct.pack("<d", value)
