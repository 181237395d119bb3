"""Records of verifiers as they stand in a file: episodes, bare traces, updates of traces.

What was said, and the tokens of it, is most of such a record. A member is decoded only when it is
asked for, so that contents cost their length and are never looked at.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from rollscope.importing.values import decode_object
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["Members", "Shape", "read_record", "text_of"]

_as_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_as_objects: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_as_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_as_value: Final = msgspec.json.Decoder().decode
_SHORT: Final = 128
"""Bytes of a value that is kept though nobody knows what it says."""


class Shape(Enum):
    """What a record is."""

    EPISODE = "episode"
    TRACE = "trace"
    UPDATE = "update"
    NONE = "none"


class Members:
    """An object of a record, whose values may have any type or none."""

    def __init__(self, held: Mapping[str, Any]) -> None:
        self._held = held
        """By key the text of a value, or the value where the text was no proper JSON."""

    def get(self, key: str) -> Any:  # noqa: ANN401  (whatever the file holds)
        """Give a value; None if there is none, or none that can be read."""
        value = self._held.get(key)
        if type(value) is not msgspec.Raw:
            return value
        try:
            return _as_value(value)
        except UNDECODABLE:
            return None

    def text(self, key: str) -> str:
        """Give a text, or a number as text; empty if it is neither."""
        return text_of(self.get(key))

    def inside(self, key: str) -> dict[str, Any]:
        """Give an object; empty if it is none."""
        value = self.get(key)
        return value if isinstance(value, dict) else {}

    def objects(self, key: str) -> list["Members"]:
        """Give those elements of a list that are objects, not decoded yet."""
        value = self._held.get(key)
        if type(value) is msgspec.Raw:
            try:
                return [Members(held) for held in _as_objects(value)]
            except UNDECODABLE:  # one of them is none
                pass
        return [read for each in self._elements(key) if (read := _members_of(each)) is not None]

    def count(self, key: str) -> int:
        """Say how many elements a list has."""
        return len(self._elements(key))

    def size(self, key: str) -> int:
        """Say how many bytes a value takes in the file; 0 if that is not known."""
        value = self._held.get(key)
        return len(bytes(value)) if type(value) is msgspec.Raw else 0

    def others(self, known: frozenset[str]) -> Iterator[tuple[str, Any]]:
        """Give what else is here: short plain values as they are, of all others the size."""
        for key, value in self._held.items():
            if key in known:
                continue
            if type(value) is msgspec.Raw and self.size(key) > _SHORT:
                yield f"{key}_bytes", self.size(key)
            elif (plain := self.get(key)) is not None and not isinstance(plain, dict | list):
                yield key, plain if not isinstance(plain, str) else plain[:_SHORT]

    def _elements(self, key: str) -> list[Any]:
        value = self._held.get(key)
        if type(value) is not msgspec.Raw:
            return value if isinstance(value, list) else []
        try:
            return _as_elements(value)
        except UNDECODABLE:
            return []

    @property
    def shape(self) -> Shape:
        """What it is, as a record."""
        keys = self._held.keys()
        if {"traces", "task"} <= keys:
            return Shape.EPISODE
        if {"trace_id", "info"} <= keys:
            return Shape.UPDATE
        return Shape.TRACE if {"timing", "calls"} <= keys else Shape.NONE


def text_of(value: object) -> str:
    """Give a text, or a number as text; empty if it is neither."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def read_record(raw: bytes) -> tuple[Members, bool] | None:
    """Read one line.

    Returns:
        The record, and whether it held numbers without a size; None if it is no object.
    """
    try:
        return Members(_as_members(raw)), False
    except UNDECODABLE:
        read = decode_object(raw)
    return None if read is None else (Members(read[0]), read[1])


def _members_of(value: object) -> Members | None:
    if type(value) is not msgspec.Raw:
        return Members(value) if isinstance(value, dict) else None
    try:
        return Members(_as_members(value))
    except UNDECODABLE:
        return None
