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
from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_attrs, clean_text, plain_number
from rollscope.model.batch import SpanColumns, index_column, number_column
from rollscope.model.scope import Scope, ScopeRow

__all__ = ["encode_rows"]

_NULL: Final = msgspec.Raw(b"\xc0")
_NAME_BYTES: Final = 512
_FEW_ATTRS: Final = 64
_NUMBERS: Final = ("version_start", "version_end")
_SMALL: Final = range(-(2**63), 2**63)
_encode = msgspec.msgpack.Encoder().encode


class _Numbering(dict[Any, int]):
    """Numbers keys in the order in which they are first asked for."""

    def __missing__(self, key: object) -> int:
        self[key] = number = len(self)
        return number


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
    limit //= 4  # characters that surely fit, whatever they are
    for values in attrs:
        if len(values) > _FEW_ATTRS:
            raise ValueError
        for value in values.values():
            kind = type(value)
            if kind is int or kind is float:
                continue
            if kind is str:
                if len(value) > limit:
                    raise ValueError
            elif value is not None and kind is not bool:
                raise TypeError
    return msgspec.Raw(_encode(attrs)) if any(attrs) else _NULL


def _columns(rows: list[Any], attrs: msgspec.Raw) -> SpanColumns:
    names, scopes = _Numbering(), _Numbering()
    name_column = list(map(names.__getitem__, rows[NAME::ROW]))
    scope_column = list(map(scopes.__getitem__, rows[SCOPE::ROW]))
    fields = rows[FIELDS::ROW]
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
        scopes=[scope.encoded or _fit_scope(scope) for scope in scopes],
        attrs=attrs,
        fields={row: _fit_fields(f) for row, f in enumerate(fields) if f} if any(fields) else {},
    )


def _fit_name(name: str) -> str:
    return clean_text(name, _NAME_BYTES)


def _is_short(value: object) -> bool:
    """Whether it is plain text that surely fits."""
    return type(value) is str and len(value) <= _NAME_BYTES // 4 and value.isascii()


def _fit_scope(scope: Scope) -> ScopeRow:
    trace_id, step, task_key, group, session_id, sample = row = scope.as_row()
    if (
        (task_key is None or _is_short(task_key))
        and (group is None or _is_short(group))
        and (step is None or (type(step) is int and step in _SMALL))
        and (sample is None or (type(sample) is int and sample in _SMALL))
    ):
        scope.encoded = row
        return row
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


def _fit_fields(fields: dict[str, Any]) -> dict[str, Any]:
    for key, value in fields.items():
        is_fit = type(value) is int and value in _SMALL if key in _NUMBERS else _is_short(value)
        if not is_fit:
            break
    else:
        return fields
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
