"""From rows to columns: the writer's half of the cost of a span.

The fast way works on whole columns with built-ins and looks at each attribute value once, for its
size. Whatever does not fit goes the slow way, row by row, through `sanitise`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from rollscope.instrument.buffers import (
    ATTRS,
    END,
    FIELDS,
    NAME,
    PARENT,
    ROW,
    SCOPE,
    SPAN,
    START,
    STATUS,
    WHAT,
)
from rollscope.instrument.bulk import (
    are_plain,
    are_plain_fields,
    number_distinct,
    plain_scope_rows,
)
from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_attrs, clean_text, plain_number
from rollscope.model.batch import SpanColumns, index_column, number_column
from rollscope.model.scope import Scope, ScopeRow

__all__ = ["SHORT", "encode_fields", "encode_rows"]

_NULL: Final = msgspec.Raw(b"\xc0")
_NAME_BYTES: Final = 512
_FEW_ATTRS: Final = 64
_NUMBERS: Final = ("version_start", "version_end")
SHORT: Final = _NAME_BYTES // 4
"""Characters of a name, a key or a field that surely fit."""
_encode = msgspec.msgpack.Encoder().encode


def encode_rows(rows: list[Any], attr_max_bytes: int) -> SpanColumns:
    """Turn flat rows into columns.

    Args:
        rows: Entries of whole rows, one row after the other.
        attr_max_bytes: Longer attribute values are cut.
    """
    try:
        return _columns(rows, _fast_attrs(rows[ATTRS::ROW], attr_max_bytes))
    except Exception:
        # Something is odd in at least one row: text that is no text, a value out of range, a name
        # that is an object and cannot even be compared.
        cleaned = _clean_rows(rows, attr_max_bytes)
        return _columns(cleaned, msgspec.Raw(_encode(cleaned[ATTRS::ROW])))


def _fast_attrs(attrs: list[dict[str, Any]], limit: int) -> msgspec.Raw:
    """Encode attributes at once if each value is a plain scalar of allowed size."""
    if not any(attrs):
        return _NULL
    if not are_plain(attrs, _FEW_ATTRS, limit // 4):  # characters that surely fit in bytes
        raise ValueError
    return msgspec.Raw(_encode(attrs))


def _columns(rows: list[Any], attrs: msgspec.Raw) -> SpanColumns:
    name_column, names = number_distinct(rows[NAME::ROW])
    scope_column, scopes = number_distinct(rows[SCOPE::ROW])
    return SpanColumns(
        what=bytes(rows[WHAT::ROW]),
        status=bytes(rows[STATUS::ROW]),
        name=index_column(name_column, len(names)),
        scope=index_column(scope_column, len(scopes)),
        span_id=number_column(rows[SPAN::ROW]),
        parent_id=number_column(rows[PARENT::ROW]),
        start_ns=number_column(rows[START::ROW]),
        end_ns=number_column(rows[END::ROW]),
        names=[_fit_name(name) for name in names],
        scopes=_scope_rows(scopes),
        attrs=attrs,
        fields=_field_maps(rows[FIELDS::ROW]),
    )


def _scope_rows(scopes: list[Scope]) -> list[ScopeRow]:
    if not scopes:
        return []
    plain: Any = plain_scope_rows(scopes, SHORT)
    return plain or [scope.encoded or _fit_scope(scope) for scope in scopes]


def _field_maps(fields: list[dict[str, Any] | None]) -> dict[int, dict[str, Any]]:
    if not any(fields):
        return {}
    given = {row: one for row, one in enumerate(fields) if one}
    if are_plain_fields(list(given.values()), _NUMBERS, SHORT):
        return given
    return {row: _fit_fields(one) for row, one in given.items()}


def _fit_name(name: str) -> str:
    return clean_text(name, _NAME_BYTES)


def _fit_scope(scope: Scope) -> ScopeRow:
    trace_id, step, task_key, group, session_id, sample = scope.as_row()
    scope.encoded = row = (
        trace_id,
        _fit_number(step, "step"),
        None if task_key is None else clean_text(task_key, _NAME_BYTES),
        None if group is None else clean_text(group, _NAME_BYTES),
        session_id,
        _fit_number(sample, "sample"),
    )
    return row


def _fit_number(value: object, where: str) -> int | None:
    if value is None or (type(value) is int and -(2**63) <= value < 2**63):
        return value
    number = plain_number(value)
    if type(number) is int and -(2**63) <= number < 2**63:
        return number
    tell_once(
        f"number:{where}",
        "Rollscope cannot record the %s %r; it takes a whole number of 64 bits",
        where,
        clean_text(value, 100),
    )
    return None


def encode_fields(fields: dict[str, Any]) -> msgspec.Raw:
    """Encode the fields of a row, for rows that share them."""
    return msgspec.Raw(_encode(_fit_fields(fields)))


def _fit_fields(fields: dict[str, Any]) -> dict[str, Any]:
    fitted: dict[str, Any] = {}
    for key, value in fields.items():
        if key in _NUMBERS:
            fitted[key] = _fit_number(value, key)
        else:
            fitted[key] = clean_text(value, _NAME_BYTES)
    return fitted


def _clean_rows(rows: list[Any], limit: int) -> list[Any]:
    cleaned = rows[:]
    cleaned[ATTRS::ROW] = [clean_attrs(attrs, limit) for attrs in rows[ATTRS::ROW]]
    cleaned[NAME::ROW] = [clean_text(name, _NAME_BYTES) for name in rows[NAME::ROW]]
    return cleaned
