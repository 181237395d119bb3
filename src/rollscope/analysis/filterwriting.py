"""Writing filters: the text that `parse_filter` reads as the same filter."""

from decimal import Decimal
from typing import Final

from rollscope.analysis.filters import (
    FIELDS,
    MISSING,
    Comparison,
    Filter,
    Not,
    Text,
    Value,
    ValueType,
)

__all__ = ["write_filter", "write_term"]

_NEEDS_QUOTES: Final = frozenset(' \t\r\n\u00a0",\\:<>=!-')


def write_filter(expression: Filter) -> str:
    """Write a filter."""
    return " ".join(write_term(term) for term in expression.terms)


def write_term(term: Comparison | Text | Not) -> str:
    """Write one condition of a filter."""
    if isinstance(term, Not):
        return f"-{write_term(term.term)}"
    if isinstance(term, Text):
        return ",".join(_quoted(value) for value in term.values)
    field = FIELDS.get(term.field)
    is_duration = field is not None and field.type is ValueType.DURATION
    values = ",".join(_write(value, is_duration=is_duration) for value in term.values)
    return f"{term.field}{term.operator}{values}"


def _write(value: Value, *, is_duration: bool) -> str:
    if value is None:
        return MISSING
    if isinstance(value, str):
        is_plain = value and value != MISSING and not _NEEDS_QUOTES & set(value)
        return value if is_plain else _quoted(value)
    if is_duration:
        return f"{Decimal(value).scaleb(-9).normalize():f}s"
    return f"{Decimal(repr(value)).normalize():f}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
