"""Protobuf's outer layers, taken apart piece by piece.

The library reads a message with all that is in it, at up to thirty times its size in memory: fine
for one span, not for 64 MiB of empty ones. So the lists are walked here, and the library is given
one span, point or record at a time.
"""

from collections.abc import Iterator
from typing import Final

from rollscope.otlp.forms import OtlpError, Request, TooMuch

__all__ = ["fields_of", "messages_of"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10
_LAST_FIELD: Final = 2**29


def fields_of(data: memoryview, request: Request) -> Iterator[tuple[int, int | memoryview]]:
    """Give the number and value of each field of a message.

    Args:
        data: The message.
        request: Bounds how many fields may be walked over in all.

    Raises:
        OtlpError: The bytes are no message.
        TooMuch: They are too many.
    """
    position, size = 0, len(data)
    while position < size:
        request.fields_left -= 1
        if request.fields_left < 0:
            raise TooMuch("a request may hold a million fields around its spans; send fewer")
        key = data[position]
        position += 1
        if key >= 0x80:
            key, position = _varint(data, position - 1)
        number, wire_type = key >> 3, key & 7
        if not 0 < number < _LAST_FIELD:
            raise OtlpError(f"the body is no OTLP message: it has a field {number}")
        if wire_type == _BYTES:
            length, position = _varint(data, position)
            end = position + length
            if end > size:
                raise OtlpError("the body is cut short")
            yield number, data[position:end]
            position = end
        elif wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
        elif wire_type in (_FIXED64, _FIXED32):
            position += 8 if wire_type == _FIXED64 else 4
            if position > size:
                raise OtlpError("the body is cut short")
        else:
            raise OtlpError(f"the body is no OTLP message: it has a field of type {wire_type}")


def messages_of(data: memoryview, wanted: int, request: Request) -> Iterator[memoryview]:
    """Give the messages in one field, in their order."""
    for number, value in fields_of(data, request):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    for at in range(position, min(position + _LONGEST_VARINT, len(data))):
        byte = data[at]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at + 1
        shift += 7
    raise OtlpError("the body is cut short, or no OTLP message")
