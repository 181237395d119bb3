"""What all requests in JSON are made of: attributes, numbers, and the outer layers.

64-bit numbers may be text, unknown fields are ignored.
"""

import base64
import binascii
from typing import Any, Final, TypeVar

import msgspec

from rollscope.otlp.forms import (
    MOST_ATTRS,
    MOST_DEPTH,
    MOST_ITEM_BYTES,
    Attrs,
    OtlpError,
    Request,
    Sender,
    TooMuch,
)

__all__ = [
    "AnyJson",
    "JsonObject",
    "ListJson",
    "MapJson",
    "Number",
    "PairJson",
    "ScopeJson",
    "attrs_of",
    "decode_base64",
    "decode_item",
    "decode_outer",
    "double_of",
    "number_of",
    "sender_of",
]

T = TypeVar("T")

Number = int | str | float | None
"""A number in any of its spellings."""
_MOST_COMMAS: Final = 2_000_000
"""Each may stand for an object of ours of up to 130 bytes."""
_MOST_VALUES: Final = 64


class JsonObject(msgspec.Struct, rename="camel"):
    """An object of which unknown fields are ignored, and missing ones have their default."""


class ListJson(JsonObject):
    """An ArrayValue."""

    values: list["AnyJson"] | None = None


class MapJson(JsonObject):
    """A KeyValueList."""

    values: list["PairJson"] | None = None


class AnyJson(JsonObject):
    """An AnyValue."""

    string_value: str | None = None
    bool_value: bool | None = None
    int_value: Number = None
    double_value: Number = None
    array_value: ListJson | None = None
    kvlist_value: MapJson | None = None
    bytes_value: str | None = None


class PairJson(JsonObject):
    """A KeyValue."""

    key: str = ""
    value: AnyJson | None = None


class ScopeJson(JsonObject):
    """A Resource, or an InstrumentationScope."""

    name: str = ""
    attributes: list[PairJson] | None = None


def decode_outer(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode the outer layers of a request.

    Raises:
        OtlpError: The body is no such request.
    """
    if body.count(b",") > _MOST_COMMAS:
        raise TooMuch("the request holds too many values; send fewer spans at once")
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise OtlpError(f"the body is no OTLP request in JSON: {error}"[:500]) from None
    except RecursionError:
        raise OtlpError("the body is nested too deeply") from None


def decode_item(raw: msgspec.Raw, decoder: msgspec.json.Decoder[T], request: Request) -> T | None:
    """Decode one item; None, and counted, if that cannot be done."""
    data = memoryview(raw)
    if len(data) > MOST_ITEM_BYTES:
        request.reject(f"has more than {MOST_ITEM_BYTES} bytes")
        return None
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        request.reject("cannot be decoded")
        return None


def sender_of(resource: ScopeJson | None) -> Sender:
    """Give who a resource describes."""
    return Sender(attrs_of(resource.attributes if resource else None))


def number_of(value: Number) -> int:
    """Read a whole number that may be text; 0 if it is none."""
    if type(value) is int:
        return value
    try:
        return int(value[:24] if isinstance(value, str) else value or 0)
    except (ValueError, OverflowError):
        return 0


def attrs_of(pairs: list[PairJson] | None) -> Attrs:
    """Read a list of attributes."""
    attrs: Attrs = {}
    for pair in (pairs or ())[:MOST_ATTRS]:
        value = pair.value
        if value is None:
            continue
        # Most are text or whole numbers.
        if (text := value.string_value) is not None:
            attrs[pair.key] = text
        elif (number := value.int_value) is not None:
            attrs[pair.key] = number_of(number)
        else:
            attrs[pair.key] = _value(value, 0)
    return attrs


def _value(value: AnyJson | None, depth: int) -> Any:  # noqa: ANN401
    if value is None:
        return None
    if value.string_value is not None:
        return value.string_value
    if value.int_value is not None:
        return number_of(value.int_value)
    if value.bool_value is not None:
        return value.bool_value
    if value.double_value is not None:
        return double_of(value.double_value)
    if value.bytes_value is not None:
        return decode_base64(value.bytes_value).hex()
    return _nested(value, depth + 1)


def _nested(value: AnyJson, depth: int) -> Any:  # noqa: ANN401
    if depth > MOST_DEPTH:
        return "…"
    if value.array_value is not None:
        return [_value(item, depth) for item in (value.array_value.values or ())[:_MOST_VALUES]]
    if value.kvlist_value is not None:
        pairs = (value.kvlist_value.values or ())[:_MOST_VALUES]
        return {pair.key: _value(pair.value, depth) for pair in pairs}
    return None


def double_of(value: Number) -> float:
    """Read a number that may be text; 0 if it is none."""
    try:
        return float(value) if value is not None else 0.0
    except (ValueError, OverflowError):
        return 0.0


def decode_base64(text: str) -> bytes:
    """Read base64; empty if it is none."""
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
