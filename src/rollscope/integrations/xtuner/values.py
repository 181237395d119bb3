"""Names and values that a traced program hands over, made safe to keep.

They are copied when they are handed over: what the program does to a list or map afterwards does
not change what was recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rollscope.instrument.guard import tell_once

__all__ = ["clean_attributes", "clean_name"]

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_SCALARS: Final = frozenset((str, bool, float))


def clean_name(name: object, *, strict: bool) -> str:
    """Give a name that can be recorded.

    Raises:
        TypeError: It is no text, and `strict` is set.
        ValueError: It is empty, and `strict` is set.
    """
    if type(name) is str and (stripped := name.strip()):
        return stripped
    if isinstance(name, str) and name.strip():
        return str.__str__(name).strip()
    if strict:
        if not isinstance(name, str):
            raise TypeError(f"a name of a trace must be text, not {type(name).__name__}")
        raise ValueError("a name of a trace cannot be empty")
    tell_once("xtuner:name", "Rollscope was given %.100r to name a span", type(name).__name__)
    return "unnamed" if isinstance(name, str) else f"<{type(name).__name__}>"


def clean_attributes(attributes: object, *, strict: bool) -> dict[str, Any]:
    """Give a copy of attributes with values that every format can hold.

    Raises:
        TypeError: They are no mapping or a key is no text, and `strict` is set.
        ValueError: A key is empty, and `strict` is set.
    """
    if not attributes:
        return {}
    if type(attributes) is dict and _is_clean(attributes):
        return attributes.copy()
    if not isinstance(attributes, Mapping):
        if strict:
            raise TypeError(f"attributes must be a mapping, not {type(attributes).__name__}")
        tell_once("xtuner:attributes", "Rollscope was given attributes that are no mapping")
        return {}
    return {
        clean_name(key, strict=strict): _clean(value)
        for key, value in attributes.items()
        if value is not None
    }


def _is_clean(attributes: dict[Any, Any]) -> bool:
    """Say whether a copy is all that is needed, as it nearly always is."""
    for key, value in attributes.items():
        if type(key) is not str or not key or key.strip() is not key:
            return False
        kind = type(value)
        if kind not in _SCALARS and not (kind is int and _LEAST <= value <= _MOST):
            return False
    return True


def _clean(value: Any) -> Any:  # noqa: ANN401  (anything at all)
    if isinstance(value, (list, tuple)):
        items = [_clean_scalar(item) for item in value]
        kinds = {type(item) for item in items}
        return items if len(kinds) <= 1 else [str(item) for item in items]
    return _clean_scalar(value)


def _clean_scalar(value: Any) -> str | bool | int | float:  # noqa: ANN401
    kind = type(value)
    if kind in _SCALARS:
        return value  # type: ignore[no-any-return]  # it is one of three
    if isinstance(value, int):
        number = int(value)
        return number if _LEAST <= number <= _MOST else _digits(number)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str.__str__(value)
    return f"<{kind.__name__}>"


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to write out thousands of digits
        return "<int>"
