"""Rows of a frame, from values that came from anywhere."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.instrument.bulk import number_distinct
from rollscope.instrument.sanitise import clean_attrs, clean_text, clean_value
from rollscope.model.batch import SpanColumns, index_column, number_column
from rollscope.model.scope import ScopeRow
from rollscope.otlp.forms import Attrs

__all__ = ["ATTR_BYTES", "NO_ATTRS", "Row", "columns_of", "fit_attrs"]

ATTR_BYTES: Final = 4096
NO_ATTRS: Final = b"\x80"
"""An empty map, as a frame holds it."""
_SHORT: Final = ATTR_BYTES // 4
"""Characters that surely fit."""
_KEY_CHARACTERS: Final = 128
_MOST_ROWS: Final = 8192
_MOST_BYTES: Final = 4 * 1024 * 1024
"""Of the attributes in one frame."""
_INT64: Final = range(-(2**63), 2**63)
_encode = msgspec.msgpack.Encoder().encode
_as_json = msgspec.json.Encoder().encode


class Row(NamedTuple):
    """A span or an event."""

    what: int
    status: int
    name: str
    scope: ScopeRow
    span_id: int
    parent_id: int
    start_ns: int
    end_ns: int
    attrs: bytes
    """As a frame holds them."""
    fields: dict[str, Any]


def fit_attrs(attrs: Attrs) -> bytes:
    """Encode attributes, each cut to what is allowed."""
    fitted: Attrs = {}
    for key, value in attrs.items():
        if len(key) > _KEY_CHARACTERS:
            key = clean_text(key, _KEY_CHARACTERS)
        kind = type(value)
        if kind is str:
            fitted[key] = value if len(value) <= _SHORT else clean_text(value, ATTR_BYTES)
        elif kind is int:
            fitted[key] = value if value in _INT64 else str(value)
        elif kind is list or kind is dict:
            fitted[key] = _fit_nested(value)
        else:
            fitted[key] = value
    try:
        return _encode(fitted)
    except (UnicodeEncodeError, OverflowError):  # half a character, or a number beyond 64 bits
        return _encode(clean_attrs(fitted, ATTR_BYTES))


def _fit_nested(value: Any) -> Any:  # noqa: ANN401
    try:
        text = _as_json(value)
    except UnicodeEncodeError:  # half a character
        return clean_value(value, ATTR_BYTES, "an attribute")
    return value if len(text) <= ATTR_BYTES else clean_text(text.decode(), ATTR_BYTES)


def columns_of(rows: list[Row]) -> Iterator[SpanColumns]:
    """Put rows into columns, as many at a time as a frame should hold."""
    start = size = 0
    for place, row in enumerate(rows):
        size += len(row.attrs)
        if place - start == _MOST_ROWS or (size > _MOST_BYTES and place > start):
            yield _columns(rows[start:place])
            start, size = place, len(row.attrs)
    if start < len(rows):
        yield _columns(rows[start:])


def _columns(rows: list[Row]) -> SpanColumns:
    what, status, names, scopes, ids, parents, starts, ends, attrs, fields = zip(*rows, strict=True)
    name_column, name_table = number_distinct(list(names))
    scope_column, scope_table = number_distinct(list(scopes))
    return SpanColumns(
        what=bytes(what),
        status=bytes(status),
        name=index_column(name_column, len(name_table)),
        scope=index_column(scope_column, len(scope_table)),
        span_id=number_column(ids),
        parent_id=number_column(parents),
        start_ns=number_column(starts),
        end_ns=number_column(ends),
        names=name_table,
        scopes=scope_table,
        attrs=msgspec.Raw(b"\xdd" + len(rows).to_bytes(4) + b"".join(attrs)),
        fields={place: one for place, one in enumerate(fields) if one},
    )
