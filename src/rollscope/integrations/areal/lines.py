"""Lines of JSON from whatever a program hands over: nothing in them can spoil a line or a file.

Values that JSON has no form for become `<TypeName>`, numbers that are none become null; all else of
the record stays as it is.
"""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Any, Final

from rollscope.instrument.sanitise import plain_number

__all__ = ["copy_args", "encode_line"]

_MAX_DEPTH: Final = 16
_MOST_BITS: Final = 4096
"""Python refuses to write out numbers of several thousand digits."""
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))
_LISTS: Final = (list, tuple, set, frozenset)


def encode_line(record: dict[str, Any]) -> bytes:
    """Give one line of JSON, the line's end included."""
    try:
        return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except Exception:  # what the host's objects do when they are asked is theirs
        return (json.dumps(_clean(record, 0), ensure_ascii=False) + "\n").encode()


def copy_args(args: object) -> dict[str, Any]:
    """Copy what was given with a call, so that what is changed later does not show.

    Lists and maps are copied all the way down, other objects are not: the copy of a tensor might
    wait for its device.
    """
    if not args:
        return {}
    if type(args) is dict:
        for value in args.values():
            if type(value) not in _PLAIN:
                break
        else:
            return args.copy()
    try:
        return {key: _copy(value, 0) for key, value in dict(args).items()}  # type: ignore[call-overload]  # may be anything
    except Exception:  # it is no mapping, or a mapping of the host's that fails
        return {"args": args}


def _copy(value: Any, depth: int) -> Any:  # noqa: ANN401
    if depth < _MAX_DEPTH:
        if isinstance(value, dict):
            return {key: _copy(item, depth + 1) for key, item in value.items()}
        if isinstance(value, _LISTS):
            return [_copy(item, depth + 1) for item in value]
    return value


def _clean(value: Any, depth: int) -> Any:  # noqa: ANN401
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if value.bit_length() <= _MOST_BITS else "<int>"
    if kind is float:
        return value if math.isfinite(value) else None
    if issubclass(kind, str):
        return str.__str__(value).encode("utf-8", "backslashreplace").decode()
    if depth >= _MAX_DEPTH:
        return "…"
    if issubclass(kind, dict):
        return {_key(key): _clean(item, depth + 1) for key, item in dict.items(value)}
    if issubclass(kind, _LISTS):
        return [_clean(item, depth + 1) for item in value]
    if issubclass(kind, Enum):
        return _clean(value._value_, depth + 1)
    try:
        number = plain_number(value)
    except Exception:  # the host's code
        number = None
    return f"<{kind.__name__}>" if number is None else _clean(number, depth + 1)


def _key(key: Any) -> str:  # noqa: ANN401
    clean = _clean(key, _MAX_DEPTH)
    return clean if isinstance(clean, str) else str(json.dumps(clean))
