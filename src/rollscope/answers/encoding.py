"""Answers as JSON: what `--json` prints, and what programs are sent."""

from typing import Any, Final

import msgspec

from rollscope.model.refs import span_hex

__all__ = ["encode_answer"]

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
_LISTS_OF_IDS: Final = frozenset({"holders", "outliers", "sessions"})


def encode_answer(answer: Any) -> bytes:  # noqa: ANN401  (whatever msgspec encodes)
    """Encode an answer, ids as the 16 digits that commands show and take.

    As numbers they would lose their last digits in every program that keeps numbers as floats.
    """
    return msgspec.json.encode(_with_hex_ids(msgspec.to_builtins(answer)))


def _with_hex_ids(value: Any) -> Any:  # noqa: ANN401  (plain data of any shape)
    if isinstance(value, dict):
        return {key: _shown(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    return value


def _shown(key: object, item: Any) -> Any:  # noqa: ANN401
    if key in _IDS and isinstance(item, int):
        return span_hex(item)
    if key in _LISTS_OF_IDS and isinstance(item, list):
        return [span_hex(one) if isinstance(one, int) else _with_hex_ids(one) for one in item]
    return _with_hex_ids(item)
