"""What a setting may be given, and how it is read; what is not allowed is `Rejected`."""

import re
from collections.abc import Callable, Mapping

__all__ = [
    "Rejected",
    "is_off",
    "number_between",
    "read_flag",
    "read_function",
    "read_path",
    "read_run_name",
    "read_sink",
    "read_tags",
    "read_text",
    "read_token",
    "read_viewer",
    "read_whole",
    "whole_between",
]

_ON = frozenset({"1", "on", "true", "yes"})
_OFF = frozenset({"0", "off", "false", "no"})
_PORTS = range(1, 65_536)
_FIRST_PORT, _LAST_PORT = 2, 65_535
"""Port 1 is not to be had: as a variable, 1 means on."""
_FUNCTION_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_HTTP_ADDRESS = re.compile(
    r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>\d{1,5}))?"
    r"(/[^?#\s]*)?(\?token=[^&#\s]+)?"
)
_TOKEN = re.compile(r"[!-~]{1,1024}")
_RUN_NAME = re.compile(r"[A-Za-z0-9_+=@][A-Za-z0-9._+=@-]{0,127}")


class Rejected(Exception):
    """A value is not of the kind its setting takes."""


def is_off(text: str) -> bool:
    """Say whether a text means off."""
    return text.strip().lower() in _OFF


def read_flag(value: object) -> bool:
    """Read on or off."""
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _ON or text in _OFF:
        return text in _ON
    raise Rejected


def read_text(value: object) -> str:
    """Read any text but an empty one."""
    if not isinstance(value, str) or not value.strip():
        raise Rejected
    return value


def read_path(value: object) -> str:
    """Read a path."""
    text = value.__fspath__() if hasattr(value, "__fspath__") else value
    return read_text(text)


def read_run_name(value: object) -> str:
    """Read the name of a run, which is also that of a directory."""
    if not isinstance(value, str) or not _RUN_NAME.fullmatch(value):
        raise Rejected
    return value


def read_whole(value: object) -> int:
    """Read a whole number from 0."""
    if isinstance(value, (bool, float)):
        raise Rejected
    try:
        number = int(str(value))
    except ValueError:
        raise Rejected from None
    if number < 0:
        raise Rejected
    return number


def number_between(low: float, high: float) -> Callable[[object], float]:
    """Give what reads a number from a range, its ends included."""

    def parse(value: object) -> float:
        if isinstance(value, bool):
            raise Rejected
        try:
            number = float(str(value))
        except ValueError:
            raise Rejected from None
        if not low <= number <= high:
            raise Rejected
        return number

    return parse


def whole_between(low: int, high: int) -> Callable[[object], int]:
    """Give what reads a whole number from a range, its ends included."""

    def parse(value: object) -> int:
        number = read_whole(value)
        if not low <= number <= high:
            raise Rejected
        return number

    return parse


def read_sink(value: object) -> object:
    """Read where frames go: a name, an address, or an object with the methods of a sink."""
    if isinstance(value, str):
        address = _HTTP_ADDRESS.fullmatch(value)
        is_address = address is not None and int(address["port"] or 1) in _PORTS
        if not is_address and value not in ("file", "none", "ray"):
            raise Rejected
        return value
    if all(callable(getattr(value, method, None)) for method in ("open", "write", "close")):
        return value
    raise Rejected


def read_token(value: object) -> str:
    """Read what a server knows its own by."""
    if not isinstance(value, str) or not _TOKEN.fullmatch(value):
        raise Rejected
    return value


def read_viewer(value: object) -> bool | int | str:
    """Read whether to start a viewer, on which port, and whether it stays."""
    if value == "stay":
        return "stay"
    try:
        return read_flag(value)
    except Rejected:
        number = read_whole(value)
    if not _FIRST_PORT <= number <= _LAST_PORT:
        raise Rejected
    return number


def read_function(value: object) -> object:
    """Read a function, or where to import it from."""
    if callable(value) or (isinstance(value, str) and _FUNCTION_PATH.fullmatch(value)):
        return value
    raise Rejected


def read_tags(value: object) -> dict[str, str]:
    """Read labels, as a mapping or as text."""
    if isinstance(value, Mapping):
        return {str(key): str(item) for key, item in value.items()}
    pairs = [pair.partition("=") for pair in str(value).split(",") if pair.strip()]
    if any(not key.strip() or not equals for key, equals, _ in pairs):
        raise Rejected
    return {key.strip(): item.strip() for key, _, item in pairs}
