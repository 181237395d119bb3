"""The filter language: what it looks like, and what it means.

    phase:toolcall host:gpu-07 ran>30s outcome:failed,timeout reward<=0 -env:swe "some text"

A space is AND, a comma is OR, a minus in front is NOT. A filter is read into plain structs;
whoever asks a store turns them into a query. What they mean stands in `matching`.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from enum import StrEnum
from typing import Final, Literal

import msgspec

from rollscope.errors import FilterError
from rollscope.model.kinds import Outcome, Status

__all__ = [
    "ATTRIBUTE_PREFIX",
    "FIELDS",
    "MISSING",
    "NUMBER",
    "Comparison",
    "Field",
    "Filter",
    "FilterError",
    "Not",
    "Operator",
    "Text",
    "Value",
    "ValueType",
    "parse_filter",
]

ATTRIBUTE_PREFIX: Final = "attr."
MISSING: Final = "none"
"""The word for no value; in quotes it is a text like any other."""

Operator = Literal[":", "<", "<=", ">", ">="]
Value = str | int | float | None


class ValueType(StrEnum):
    """What a field is compared with."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    DURATION = "duration"
    """Written with a unit, kept in nanoseconds."""
    CHOICE = "choice"
    ID = "id"
    """Hexadecimal, kept with all 16 digits."""
    ATTRIBUTE = "attribute"
    """Text with a colon, a number otherwise."""


class Field(msgspec.Struct, frozen=True):
    """What can stand in front of a colon."""

    name: str
    type: ValueType
    title: str
    choices: tuple[str, ...] = ()


class Comparison(msgspec.Struct, tag="comparison", frozen=True):
    """A field and what it is compared with; any one of several values will do."""

    field: str
    operator: Operator
    values: tuple[Value, ...]


class Text(msgspec.Struct, tag="text", frozen=True):
    """Text found anywhere, in capitals or not; any one of several will do."""

    values: tuple[str, ...]


class Not(msgspec.Struct, tag="not", frozen=True):
    """The opposite."""

    term: Comparison | Text


class Filter(msgspec.Struct, tag="all", frozen=True):
    """Everything has to hold; an empty filter lets everything through."""

    terms: tuple[Comparison | Text | Not, ...]


def _fields(*fields: Field) -> dict[str, Field]:
    return {field.name: field for field in fields}


FIELDS: Final = _fields(
    Field("attempt", ValueType.INTEGER, "how often it was tried before"),
    Field("consumed", ValueType.INTEGER, "the step that consumed it"),
    Field("detail", ValueType.TEXT, "the detail of any phase"),
    Field("dispatched", ValueType.INTEGER, "the step that dispatched it"),
    Field("env", ValueType.TEXT, "the detail of an environment phase"),
    Field("family", ValueType.TEXT, "the task's family"),
    Field("group", ValueType.TEXT, "the group it belongs to"),
    Field("host", ValueType.TEXT, "where it ran"),
    Field("id", ValueType.ID, "its id"),
    Field("name", ValueType.TEXT, "the name of any span"),
    Field("outcome", ValueType.CHOICE, "the verdict on it", tuple(Outcome)),
    Field("phase", ValueType.TEXT, "the name of any phase"),
    Field("pool", ValueType.TEXT, "what its slot belongs to"),
    Field("ran", ValueType.DURATION, "from start to end"),
    Field("rank", ValueType.INTEGER, "the rank of its process"),
    Field("reason", ValueType.TEXT, "why it ended like that"),
    Field("replica", ValueType.TEXT, "the same as pool"),
    Field("reward", ValueType.NUMBER, "its reward"),
    Field("role", ValueType.TEXT, "the role of its process"),
    Field("sample", ValueType.INTEGER, "which sample of its task"),
    Field("status", ValueType.CHOICE, "how its span ended", tuple(Status)),
    Field("step", ValueType.INTEGER, "the step that consumed it, else the one that dispatched it"),
    Field("task", ValueType.TEXT, "its task"),
    Field("tokens", ValueType.INTEGER, "tokens it generated"),
    Field("tokens_in", ValueType.INTEGER, "tokens it was given"),
    Field("tool", ValueType.TEXT, "the detail of a tool phase"),
    Field("turns", ValueType.INTEGER, "its turns"),
    Field("version", ValueType.INTEGER, "the version it started with"),
    Field("waited", ValueType.DURATION, "from submission to start"),
)

_UNITS_NS: Final = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
_LARGEST = 2**53 - 1
"""Numbers beyond this are not whole in every language that reads filters."""
_LONGEST_NS = 100 * 24 * _UNITS_NS["h"]
_SPACE = " \t\r\n\u00a0"  # named, since languages differ in what else they call space
_KEY = re.compile(rf'(?P<key>[^{_SPACE}",:<>=!]+)(?P<operator><=|>=|!=|[:<>=])')
_WORD = re.compile(rf'[^{_SPACE}",]+')
_SIGNS = (":", "<", ">", "=", "!=")
_INTEGER = re.compile(r"-?[0-9]{1,16}")
NUMBER = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,16})?")
_DURATION = re.compile(r"(?P<number>[0-9]{1,16}(?:\.[0-9]{1,9})?)(?P<unit>[A-Za-z]*)")
_ID = re.compile(r"[0-9a-fA-F]{1,16}")


def parse_filter(text: str) -> Filter:
    """Read a filter.

    Raises:
        FilterError: It is not a valid one.
    """
    return _Parser(text).read()


class _Word(msgspec.Struct):
    text: str
    position: int
    is_quoted: bool


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self) -> Filter:
        terms = []
        while self._skip_space():
            terms.append(self._term())
            if not self._is_at_space():
                raise FilterError("a space is needed between two conditions", self._at)
        return Filter(tuple(terms))

    def _skip_space(self) -> bool:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        return self._at < len(self._text)

    def _is_at_space(self) -> bool:
        return self._at == len(self._text) or self._text[self._at] in _SPACE

    def _term(self) -> Comparison | Text | Not:
        if self._text[self._at] != "-":
            return self._positive()
        self._at += 1
        if self._is_at_space() or self._text[self._at] == "-":
            raise FilterError("a minus needs a condition right behind it", self._at)
        return Not(self._positive())

    def _positive(self) -> Comparison | Text:
        match = _KEY.match(self._text, self._at)
        if match is None and self._text.startswith(_SIGNS, self._at):
            raise FilterError("a field is missing in front of this", self._at)
        if match is None:
            return Text(tuple(word.text for word in self._words("a condition")))
        field = _field(match["key"], self._at)
        operator = _operator(field, match["operator"], match.start("operator"))
        self._at = match.end()
        words = self._words(f"a value for {field.name}")
        if operator != ":" and len(words) > 1:
            raise FilterError(f"only one value can follow {operator}", words[1].position)
        return Comparison(
            field.name, operator, tuple(_value(field, operator, word) for word in words)
        )

    def _words(self, wanted: str) -> list[_Word]:
        words = [self._word(wanted)]
        while self._at < len(self._text) and self._text[self._at] == ",":
            self._at += 1
            words.append(self._word(wanted))
        return words

    def _word(self, wanted: str) -> _Word:
        start = self._at
        if self._text.startswith('"', start):
            return _Word(self._quoted(), start, is_quoted=True)
        match = _WORD.match(self._text, start)
        if match is None:
            raise FilterError(f"{wanted} is missing here", start)
        self._at = match.end()
        return _Word(match[0], start, is_quoted=False)

    def _quoted(self) -> str:
        """Read up to the closing quote; a backslash takes the next character as it is."""
        start = self._at
        letters: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            letter = self._text[self._at]
            self._at += 1
            if letter == '"':
                return "".join(letters)
            if letter == "\\" and self._at < len(self._text):
                letter = self._text[self._at]
                self._at += 1
            letters.append(letter)
        raise FilterError("the quote that opens here is not closed", start)


def _field(key: str, position: int) -> Field:
    field = FIELDS.get(key)
    if field is not None:
        return field
    if key.startswith(ATTRIBUTE_PREFIX) and len(key) > len(ATTRIBUTE_PREFIX):
        return Field(key, ValueType.ATTRIBUTE, "an attribute of the session")
    allowed = ", ".join(FIELDS)
    raise FilterError(
        f"there is no field {key}; there are {allowed}, and attr. with an attribute's name; "
        "text with a sign in it goes in quotes",
        position,
    )


def _operator(field: Field, sign: str, position: int) -> Operator:
    if sign == "!=":
        raise FilterError(f"!= is written with a minus in front: -{field.name}:…", position)
    if sign in (":", "="):
        return ":"
    if field.type in (ValueType.TEXT, ValueType.CHOICE, ValueType.ID):
        raise FilterError(f"{field.name} has no order, only : can follow it", position)
    # Any operator that the pattern lets through and that was not dealt with above is one of these.
    orders: dict[str, Operator] = {"<": "<", "<=": "<=", ">": ">", ">=": ">="}
    return orders[sign]


def _value(field: Field, operator: Operator, word: _Word) -> Value:
    if word.text == MISSING and not word.is_quoted:
        if operator != ":":
            raise FilterError(f"{MISSING} can only follow a colon", word.position)
        return None
    if field.type is ValueType.TEXT or (field.type is ValueType.ATTRIBUTE and operator == ":"):
        return word.text
    if field.type is ValueType.DURATION and operator == ":":
        raise FilterError(
            f"{field.name} is compared with <, <=, > or >=; with a colon only to {MISSING}",
            word.position,
        )
    return _READERS[field.type](field, word)


def _read_integer(field: Field, word: _Word) -> int:
    if not _INTEGER.fullmatch(word.text) or abs(int(word.text)) > _LARGEST:
        raise FilterError(f"{field.name} is compared with a whole number", word.position)
    return int(word.text)


def _read_number(field: Field, word: _Word) -> float:
    if not NUMBER.fullmatch(word.text):
        raise FilterError(f"{field.name} is compared with a number", word.position)
    return float(word.text)


def _read_duration(field: Field, word: _Word) -> int:
    match = _DURATION.fullmatch(word.text)
    if match is None:
        raise FilterError(
            f"{field.name} is compared with a duration such as 500ms, 30s, 1.5min or 2h",
            word.position,
        )
    unit_ns = _UNITS_NS.get(match["unit"])
    if unit_ns is None:
        raise FilterError(
            "a duration needs a unit: ms, s, min or h", word.position + match.start("unit")
        )
    duration_ns = int(Decimal(match["number"]) * unit_ns)
    if duration_ns > _LONGEST_NS:
        raise FilterError("a duration can be at most 100 days long", word.position)
    return duration_ns


def _read_choice(field: Field, word: _Word) -> str:
    if word.text not in field.choices:
        allowed = ", ".join(field.choices)
        raise FilterError(f"{field.name} is one of {allowed}, {MISSING}", word.position)
    return word.text


def _read_id(field: Field, word: _Word) -> str:
    if not _ID.fullmatch(word.text):
        raise FilterError(
            f"{field.name} is compared with up to 16 hexadecimal digits", word.position
        )
    return word.text.lower().rjust(16, "0")


_READERS: Final[dict[ValueType, Callable[[Field, _Word], Value]]] = {
    ValueType.INTEGER: _read_integer,
    ValueType.NUMBER: _read_number,
    ValueType.DURATION: _read_duration,
    ValueType.CHOICE: _read_choice,
    ValueType.ID: _read_id,
    ValueType.ATTRIBUTE: _read_number,
}
