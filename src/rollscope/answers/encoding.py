"""Answers as JSON: what `--json` prints, and what programs are sent."""

from typing import Any, Final

import msgspec

from rollscope.model.refs import span_hex

__all__ = ["encode_answer", "is_id", "is_list_of_ids"]

_IDS: Final = frozenset(
    {
        "example_id",
        "example_session",
        "link",
        "next_session",
        "parent_id",
        "process",
        "session_id",
        "span_id",
    }
)
_LISTS_OF_IDS: Final = frozenset({"holders", "outliers", "sessions", "span_ids"})
_ATOMS: Final = frozenset({bool, float, int, str, type(None)})


def is_id(field: str) -> bool:
    """Say whether a field of that name holds an id."""
    return field in _IDS


def is_list_of_ids(field: str) -> bool:
    """Say whether numbers in a list of that name are ids."""
    return field in _LISTS_OF_IDS


def encode_answer(answer: Any) -> bytes:  # noqa: ANN401  (whatever msgspec encodes)
    """Encode an answer, ids as the 16 digits that commands show and take.

    As numbers they would lose their last digits in every program that keeps numbers as floats.
    Only fields, and columns of a list of rows, are looked at: an attribute or a phase that is
    called `process` is the user's own.
    """
    rows = isinstance(answer, list)
    return msgspec.json.encode([_row(one) for one in answer] if rows else _plain(answer))


def _row(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {column: _shown(column, item) for column, item in value.items()}
    return _plain(value)


def _plain(value: Any) -> Any:  # noqa: ANN401  (an answer or a part of one)
    if isinstance(value, msgspec.Struct):
        return {field: _shown(field, getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if _ATOMS.issuperset(map(type, value)):  # long lists of numbers are common
            return value
        return [_plain(item) for item in value]
    return value


def _shown(field: str, item: Any) -> Any:  # noqa: ANN401
    if isinstance(item, int):
        return span_hex(item) if is_id(field) else item
    if is_list_of_ids(field) and isinstance(item, list):
        return [span_hex(one) if isinstance(one, int) else _plain(one) for one in item]
    return _plain(item)
