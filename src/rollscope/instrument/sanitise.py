"""Making what comes from outside fit to be written: attributes, and numbers carried as text.

Nothing in here runs the host's code: an object of an unknown type becomes its type's name, because
the `repr` of, say, a tensor may wait for a GPU. Types are told by `type`, not by `isinstance`,
which asks the object for its `__class__`; and lists, maps and text are read by the built-ins' own
methods, whatever a subclass makes of them.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import Any, Final

from rollscope.instrument.guard import tell_once

__all__ = [
    "clean_attrs",
    "clean_text",
    "clean_value",
    "name_type",
    "plain_number",
    "read_span_id",
    "read_whole",
]

_MAX_DEPTH: Final = 4
_MAX_ITEMS: Final = 64
_LEAST_BYTES: Final = 16
"""What a piece of text inside a list or map may have at least, and a list or map needs."""
_INT64: Final = range(-(2**63), 2**64)
_MOST_DIGITS: Final = 20
"""No number that fits has more, with its sign."""
_LISTS: Final = (list, tuple, set, frozenset)
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
"""Top-level module and name of types whose `str` is known to be harmless."""
_module_of: Final = type.__dict__["__module__"].__get__
_qualname_of: Final = type.__dict__["__qualname__"].__get__


def clean_text(value: object, limit: int) -> str:
    """Give text that can be encoded, cut to `limit` bytes with a mark that says so."""
    if issubclass(type(value), str):
        text = _plain_text(value, limit)  # type: ignore[arg-type]  # it is a str
    else:
        text = str(clean_value(value, limit, "a name"))
    if len(text) <= limit // 4 and text.isascii():
        return text
    # Encoding only what can fit keeps a text of gigabytes from being copied.
    head = text[:limit].encode("utf-8", "backslashreplace")
    if len(head) <= limit and len(text) <= limit:
        return head.decode()
    return head[: limit - 3].decode("utf-8", "ignore") + "…"


def _plain_text(value: str, limit: int) -> str:
    """Give text as plain `str`; of a subclass only as much as tells that it is too long."""
    return value if type(value) is str else str.__getitem__(value, slice(limit + 1))


def clean_attrs(attrs: dict[str, Any], limit: int) -> dict[str, Any]:
    """Give attributes that can be encoded, each within `limit` bytes."""
    cleaned: dict[str, Any] = {}
    for key, value in attrs.items():
        name = clean_text(key, limit)
        cleaned[name] = clean_value(value, limit, name)
    return cleaned


def clean_value(value: object, limit: int, where: str) -> Any:  # noqa: ANN401
    """Give a value that can be encoded: whole if it may, cut or named if it must.

    Args:
        value: Anything at all.
        limit: The bytes that it may have, roughly where it is a list or a map.
        where: What the user knows it by.
    """
    try:
        return _clean(value, limit, where, 0)
    except (Exception, SystemExit):  # another thread changes it just now, or it has its own ideas
        return _name_type(value, limit, where)


def plain_number(value: Any) -> int | float | None:  # noqa: ANN401
    """Give a number of any sort as a plain one; None for what is no number."""
    kind = type(value)
    if name_type(kind)[0] == "numpy" and getattr(value, "ndim", None) == 0:
        try:
            value = value.item()
        except (Exception, SystemExit):  # it only calls itself numpy
            return None
        kind = type(value)
    if issubclass(kind, int):
        return int.__int__(value)
    return float.__float__(value) if issubclass(kind, float) else None


def name_type(kind: type) -> tuple[str, str]:
    """Give the module of a type and its qualified name, without asking its metaclass."""
    module: object = _module_of(kind)
    return module if type(module) is str else "?", _qualname_of(kind)


def read_whole(text: str | None) -> int | None:
    """Read a number that another program has carried; None unless it fits a record."""
    return _read(text, 10, range(-(2**63), 2**63))


def read_span_id(text: str | None) -> int | None:
    """Read the id of a span, in hexadecimal, that another program has carried."""
    return _read(text, 16, range(1, 2**64))


def _read(text: str | None, base: int, allowed: range) -> int | None:
    if not text or len(text) > _MOST_DIGITS:
        return None
    try:
        number = int(text, base)
    except ValueError:
        return None
    return number if number in allowed else None


def _clean(value: Any, limit: int, where: str, depth: int) -> Any:  # noqa: ANN401
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        return value if value in _INT64 else clean_text(hex(value), max(limit, _LEAST_BYTES))
    if issubclass(kind, str):
        return _cut_text(value, max(limit, _LEAST_BYTES), where)
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return _cut_bytes(value, max(limit, _LEAST_BYTES), where)
    for base in _LISTS:
        if issubclass(kind, base):
            return _clean_items(base.__iter__(value), base.__len__(value), limit, where, depth)
    if issubclass(kind, dict):
        return _clean_map(value, limit, where, depth)
    return _clean_object(value, limit, where, depth)


def _cut_text(value: str, limit: int, where: str) -> str:
    text = _plain_text(value, limit)
    cleaned = clean_text(text, limit)
    if len(cleaned) < len(text):
        _tell_cut(where, limit)
    return cleaned


def _cut_bytes(value: bytes | bytearray | memoryview, limit: int, where: str) -> str:
    """Give bytes as hexadecimal text, two characters each."""
    flat = value.cast("B") if isinstance(value, memoryview) else value
    if len(flat) > limit // 2:
        _tell_cut(where, limit)
    return bytes(flat[: limit // 2]).hex()


def _clean_items(items: Iterator[Any], size: int, limit: int, where: str, depth: int) -> Any:  # noqa: ANN401
    if not _has_room(limit, where, depth):
        return "…"
    each = limit // (min(size, _MAX_ITEMS) or 1)
    cleaned = [_clean(item, each, where, depth + 1) for item in islice(items, _MAX_ITEMS)]
    if size > _MAX_ITEMS:
        _tell_cut(where, limit)
        cleaned.append(f"… {size} in all")
    return cleaned


def _clean_map(value: dict[Any, Any], limit: int, where: str, depth: int) -> Any:  # noqa: ANN401
    if not _has_room(limit, where, depth):
        return "…"
    size = dict.__len__(value)
    if size > _MAX_ITEMS:
        _tell_cut(where, limit)
    each = limit // (min(size, _MAX_ITEMS) or 1)
    cleaned: dict[str, Any] = {}
    for key, item in islice(dict.items(value), _MAX_ITEMS):
        name = key if issubclass(type(key), (str, int)) else type(key).__name__
        cleaned[clean_text(name, max(each, _LEAST_BYTES))] = _clean(item, each, where, depth + 1)
    return cleaned


def _has_room(limit: int, where: str, depth: int) -> bool:
    """Say whether a list or map may be opened; one that holds itself would have no end."""
    if depth < _MAX_DEPTH and limit >= _LEAST_BYTES:
        return True
    _tell_cut(where, limit)
    return False


def _clean_object(value: Any, limit: int, where: str, depth: int) -> Any:  # noqa: ANN401
    kind = type(value)
    if (kind.__module__.partition(".")[0], kind.__name__) in _AS_TEXT:
        return clean_text(str(value), max(limit, _LEAST_BYTES))
    if depth <= _MAX_DEPTH:
        if kind.__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            return _clean(value.item(), limit, where, _MAX_DEPTH + 1)
        if issubclass(kind, Enum):
            return _clean(value._value_, limit, where, _MAX_DEPTH + 1)
    number = plain_number(value)
    if number is not None:
        return _clean(number, limit, where, depth)
    return _name_type(value, limit, where)


def _name_type(value: object, limit: int, where: str) -> str:
    name = f"<{'.'.join(name_type(type(value)))}>"
    tell_once(
        f"attr-type:{where}:{name}",
        "Rollscope cannot record the attribute %.100r of type %.200s and kept the type's name; "
        "give it text, a number, a boolean, a list or a map",
        where,
        name,
    )
    return clean_text(name, max(limit, _LEAST_BYTES))


def _tell_cut(where: str, limit: int) -> None:
    tell_once(
        f"attr-cut:{where}"[:200],
        "Rollscope cut the attribute %.100r, which is longer than %d bytes; "
        "use rollscope.payload for long text",
        where,
        limit,
    )
