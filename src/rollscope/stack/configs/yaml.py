"""YAML as configurations need it: mappings, lists and scalars in block form, written only.

Every text that could be read as anything but itself is quoted as JSON, which is YAML too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

__all__ = ["Value", "to_yaml"]

Value: TypeAlias = "str | int | float | bool | Mapping[str, Value] | Sequence[Value] | None"

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?: [A-Za-z][A-Za-z0-9_./-]*)*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""What some reader takes for something else than text."""


def to_yaml(value: Mapping[str, Value], comment: str = "") -> str:
    """Write a document, with a comment above it."""
    head = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join([*head, *_lines(value)]) + "\n"


def _lines(value: Value) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [line for key, item in value.items() for line in _entry(_scalar(key) + ":", item)]
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return [line for item in value for line in _item(item)]
    return [_scalar(value)]


def _entry(key: str, value: Value) -> list[str]:
    """Write one key: what holds others goes below it, further in."""
    below = _lines(value)
    if _is_block(value):
        return [key, *(f"  {line}" for line in below)]
    return [f"{key} {below[0]}"]


def _item(value: Value) -> list[str]:
    first, *others = _lines(value)
    return [f"- {first}", *(f"  {line}" for line in others)]


def _is_block(value: Value) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(value)


def _scalar(value: Value) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if is_plain else _quoted(value)
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, Sequence):
        return "[]"
    written = json.dumps(value)
    # Without a point, some readers take an exponent for text.
    return written if "." in written else written.replace("e-", ".0e-").replace("e+", ".0e+")


def _quoted(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in written)
