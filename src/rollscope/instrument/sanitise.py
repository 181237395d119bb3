"""Making attributes fit to be written, whatever the host program put into them.

Nothing in here runs the host's code: an object of an unknown type becomes its type's name, because
the `repr` of, say, a tensor may wait for a GPU.
"""

from enum import Enum
from itertools import islice
from typing import Any, Final

from rollscope.instrument.guard import tell_once

__all__ = ["clean_attrs", "clean_text", "clean_value"]

_MAX_DEPTH: Final = 4
_MAX_ITEMS: Final = 64
_MAX_ATTRS: Final = 128
_KEY_BYTES: Final = 256
_INT64: Final = range(-(2**63), 2**64)
_AS_TEXT: Final = frozenset(
    {
        ("datetime", "date"),
        ("datetime", "datetime"),
        ("datetime", "time"),
        ("datetime", "timedelta"),
        ("decimal", "Decimal"),
        ("pathlib", "PosixPath"),
        ("pathlib", "PurePosixPath"),
        ("uuid", "UUID"),
    }
)


def clean_text(value: object, limit: int) -> str:
    """Give text that can be encoded, cut to `limit` bytes with a mark that says so."""
    if not isinstance(value, str):
        value = str(clean_value(value, limit, "a name"))
    if len(value) <= limit // 4 and value.isascii():
        return value
    # Encoding only what can fit keeps a text of gigabytes from being copied.
    head = value[:limit].encode("utf-8", "backslashreplace")
    if len(head) <= limit and len(value) <= limit:
        return head.decode()
    return head[: limit - 3].decode("utf-8", "ignore") + "…"


def clean_attrs(attrs: dict[str, Any], limit: int) -> dict[str, Any]:
    """Give attributes that can be encoded, each within `limit` bytes."""
    if len(attrs) > _MAX_ATTRS:
        tell_once(
            "attr-many", "Rollscope keeps the first %d of %d attributes", _MAX_ATTRS, len(attrs)
        )
    return {
        clean_text(key, _KEY_BYTES): clean_value(value, limit, str(key)[:_KEY_BYTES])
        for key, value in islice(attrs.items(), _MAX_ATTRS)
    }


def clean_value(value: object, limit: int, where: str, depth: int = 0) -> Any:  # noqa: ANN401
    """Give a value that can be encoded: whole if it may, cut or named if it must."""
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if isinstance(value, int) and kind is int:
        return value if value in _INT64 else clean_text(hex(value), limit)
    if isinstance(value, str):
        text = str.__str__(value)
        cleaned = clean_text(text, limit)
        if len(cleaned) < len(text):
            _tell_cut(where, limit)
        return cleaned
    if isinstance(value, (bytes, bytearray, memoryview)):
        if len(value) > limit:
            _tell_cut(where, limit)
        return bytes(value[:limit]).hex()
    if depth < _MAX_DEPTH:
        if isinstance(value, (list, tuple, set, frozenset)):
            return _clean_items(value, limit, where, depth)
        if isinstance(value, dict):
            return _clean_map(value, limit, where, depth)
    return _clean_object(value, limit, where, depth)


def _clean_items(
    value: list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any],
    limit: int,
    where: str,
    depth: int,
) -> list[Any]:
    items = list(islice(value, _MAX_ITEMS))
    if len(items) < len(value):
        _tell_cut(where, limit)
    each = max(limit // (len(items) or 1), 16)
    cleaned = [clean_value(item, each, where, depth + 1) for item in items]
    return cleaned if len(items) == len(value) else [*cleaned, f"… {len(value)} in all"]


def _clean_map(value: dict[Any, Any], limit: int, where: str, depth: int) -> dict[str, Any]:
    items = list(islice(value.items(), _MAX_ITEMS))
    if len(items) < len(value):
        _tell_cut(where, limit)
    each = max(limit // (len(items) or 1), 16)
    return {
        clean_text(key if isinstance(key, (str, int)) else type(key).__name__, each): clean_value(
            item, each, where, depth + 1
        )
        for key, item in items
    }


def _clean_object(value: object, limit: int, where: str, depth: int) -> Any:  # noqa: ANN401
    kind = type(value)
    if (kind.__module__, kind.__name__) in _AS_TEXT:
        return clean_text(str(value), limit)
    if kind.__module__ == "numpy" and getattr(value, "ndim", None) == 0 and depth <= _MAX_DEPTH:
        return clean_value(value.item(), limit, where, _MAX_DEPTH + 1)  # type: ignore[attr-defined]
    if isinstance(value, Enum) and depth <= _MAX_DEPTH:
        return clean_value(value._value_, limit, where, _MAX_DEPTH + 1)
    if isinstance(value, int):
        return clean_value(int.__int__(value), limit, where, depth)
    if isinstance(value, float):
        return float.__float__(value)
    name = f"<{kind.__module__}.{kind.__qualname__}>"
    tell_once(
        f"attr-type:{where}:{name}",
        "Rollscope cannot record the attribute %.100r of type %.200s and kept the type's name; "
        "give it text, a number, a boolean, a list or a map",
        where,
        name,
    )
    return clean_text(name, limit)


def _tell_cut(where: str, limit: int) -> None:
    tell_once(
        f"attr-cut:{where}"[:200],
        "Rollscope cut the attribute %.100r, which is longer than %d bytes; "
        "use rollscope.payload for long text",
        where,
        limit,
    )
