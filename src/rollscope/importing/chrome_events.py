"""One event of a Chrome trace, whatever its writer put into it."""

from functools import lru_cache
from typing import Any, Final, NamedTuple

from rollscope.importing.values import decode_object, micros_to_ns
from rollscope.instrument.sanitise import clean_text

__all__ = ["PHASES", "ChromeEvent", "Key", "key_of", "name_of", "read_event"]

Key = int | str | None
"""What tells processes, threads and flows apart: a number, a text, or nothing."""
PHASES: Final = frozenset("XBEbneSTpFstfiIRCM")
"""What is read; all other phases are counted and set aside."""
_KNOWN: Final = frozenset(
    ("name", "cat", "ph", "ts", "dur", "pid", "tid", "args", "cname", "id", "id2", "bp", "s")
)
"""A colour, an arrow's binding and the reach of an instant are for drawing only."""
_NAME_BYTES: Final = 512
_KEY_CHARACTERS: Final = 128
_MOST_NS: Final = 2**61
"""About the year 2043: times are kept in 63 bits, and some are added."""


class ChromeEvent(NamedTuple):
    """What an event says."""

    phase: str
    name: str
    """Empty if it has none."""
    category: str
    pid: Key
    tid: Key
    start_ns: int | None
    """After the zero of its file, whatever that is; None if there is no time in it."""
    length_ns: int | None
    args: dict[str, Any]
    own: dict[str, Any]
    """The event as it was read."""
    is_odd: bool
    """Whether it held a number without a size."""

    @property
    def extras(self) -> dict[str, Any]:
        """Give what stands beside the known members."""
        if self.own.keys() <= _KNOWN:
            return {}
        return {key: value for key, value in self.own.items() if key not in _KNOWN}


def read_event(raw: bytes) -> ChromeEvent | None:
    """Read an event; None if it is no object."""
    read = decode_object(raw)
    if read is None:
        return None
    event, is_odd = read
    get = event.get
    phase, args = get("ph"), get("args")
    return ChromeEvent(
        phase if isinstance(phase, str) else "",
        name_of(get("name")),
        name_of(get("cat")),
        key_of(get("pid")),
        key_of(get("tid")),
        _time(get("ts")),
        _time(get("dur")),
        args if isinstance(args, dict) else {},
        event,
        is_odd,
    )


def _time(value: object) -> int | None:
    time_ns = None if value is None else micros_to_ns(value)
    return time_ns if time_ns is not None and -_MOST_NS < time_ns < _MOST_NS else None


def key_of(value: object) -> Key:
    """Give a key for an id in any spelling; equal numbers give equal keys."""
    if value is None or (type(value) is int and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return clean_text(value if isinstance(value, str) else repr(value)[:1024], _KEY_CHARACTERS)


def name_of(value: object) -> str:
    """Give a name that can be written; empty if there is none."""
    if isinstance(value, str):
        return _clean(value) if len(value) <= _NAME_BYTES else clean_text(value, _NAME_BYTES)
    return "" if value is None else clean_text(repr(value)[:_NAME_BYTES], _NAME_BYTES)


@lru_cache(maxsize=8192)
def _clean(name: str) -> str:
    return clean_text(name, _NAME_BYTES)
