"""The lines of Rollscope's own JSON: what each may hold, and reading one whatever it holds."""

import math
import re
from hashlib import blake2b
from typing import Annotated, Any, Final

import msgspec

from rollscope.importing.values import decode_object
from rollscope.model.kinds import Category, Kind, MetricType, Outcome, Status
from rollscope.model.undecodable import UNDECODABLE

__all__ = [
    "LINES_SCHEMA",
    "LINE_KINDS",
    "Line",
    "cut_text",
    "fields_of",
    "number_of",
    "read_id",
    "read_line",
    "read_number",
    "read_trace",
]

LINES_SCHEMA: Final = 1
"""Raised when a line changes its meaning; a new key alone does not raise it."""
_SPAN_KINDS: Final = frozenset(map(str, Kind))
LINE_KINDS: Final = _SPAN_KINDS | {"run", "process", "event", "fact", "metric"}
_HEX: Final = frozenset("0123456789abcdef")
_UNENCODABLE: Final = (UnicodeEncodeError, OverflowError, RecursionError)
_MOST_TEXT: Final = 4096
_FIELD: Final = re.compile(r"\$\.(\w+)")
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Time = Annotated[int, msgspec.Meta(ge=1, lt=2**62)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Recorded(msgspec.Struct):
    outcome: Outcome | msgspec.UnsetType | None = msgspec.UNSET
    reason: str | msgspec.UnsetType | None = msgspec.UNSET
    version_end: Whole | msgspec.UnsetType | None = msgspec.UNSET


class Line(msgspec.Struct):
    """Every key that some line has."""

    kind: str
    process: str = ""
    trace_id: str = ""
    span_id: str = ""
    event_id: str = ""
    parent_id: str | None = None
    session_id: str | None = None
    name: str = ""
    category: Category | None = None
    start_ns: Time = 0
    end_ns: Time | None = None
    time_ns: Time = 0
    status: str = Status.OK
    outcome: Outcome | None = None
    reason: str | None = None
    step: Whole | None = None
    version_start: Whole | None = None
    version_end: Whole | None = None
    task_key: str | None = None
    sample: Whole | None = None
    group: str | None = None
    lane: str | None = None
    attrs: dict[str, Any] = {}
    recorded: _Recorded | None = None
    facts: dict[str, Any] = {}
    type: MetricType | None = None
    labels: dict[str, str] = {}
    value: float | str | None = None
    count: Count = 0
    min: float | str | None = None
    max: float | str | None = None
    buckets: dict[int, Count] = {}
    host: str = ""
    pid: Whole = 0
    role: str = ""
    rank: Whole | None = None
    schema: int = LINES_SCHEMA

    @property
    def is_span(self) -> bool:
        """Say whether it is one that may come again, open first and ended later."""
        return self.kind in _SPAN_KINDS


_decode: Final = msgspec.json.Decoder(Line).decode
_pack: Final = msgspec.msgpack.Encoder().encode


def read_line(raw: bytes) -> tuple[Line | None, str]:
    """Read a line, or say why it cannot be read."""
    try:
        line = _decode(raw)
    except UNDECODABLE as error:
        read = decode_object(raw)
        if read is None:
            return None, "bad: no JSON object"
        try:
            line = msgspec.convert(read[0], Line)
        except UNDECODABLE:
            field = _FIELD.search(str(error))
            return None, f"bad: {field[1]} cannot be read" if field else "bad: no line of a run"
        try:  # what our own reader did not take may hold more that no frame can
            _pack(line)
        except _UNENCODABLE:
            return None, "bad: text or a number that cannot be kept"
    if line.kind not in LINE_KINDS:
        return None, "bad: a kind that is unknown"
    return line, ""


def number_of(raw: bytes) -> int:
    """Give a number that no two lines share, the same in every process."""
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), signed=True)


def read_id(text: str | None) -> int:
    """Read an id; 0 if it is none."""
    if not text or len(text) != 16 or not _HEX.issuperset(text):
        return 0
    return int(text, 16)


def cut_text(text: str | None) -> str | None:
    """Cut text that nobody would read to its end."""
    return text if text is None else text[:_MOST_TEXT]


def read_trace(text: str) -> bytes | None:
    """Read the id of a trace; None if it is none."""
    return bytes.fromhex(text) if len(text) == 32 and _HEX.issuperset(text) else None


def read_number(value: float | str | None) -> float | None:
    """Read a number, also one that JSON has no spelling for."""
    try:
        return None if value is None else float(value)
    except (ValueError, OverflowError):
        return math.nan


def fields_of(line: Line) -> dict[str, Any]:
    """Give the fields that few spans have, as they were recorded."""
    values: dict[str, Any] = {
        "outcome": line.outcome and str(line.outcome),
        "reason": cut_text(line.reason),
        "lane": cut_text(line.lane),
        "version_start": line.version_start,
        "version_end": line.version_end,
    }
    if line.recorded is not None:
        values |= msgspec.to_builtins(line.recorded)
    return {name: value for name, value in values.items() if value is not None}
