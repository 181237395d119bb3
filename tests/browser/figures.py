"""Numbers in text, as people read them: what each says, and how exactly it says it.

Commands and the page write the same value with different numbers of digits. Two figures agree if
some one value rounds to both.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Figure", "added", "agree", "apart", "figures", "of_day_s", "only", "ratio"]

_NS: Final = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9, "d": 86_400e9}
_OTHER: Final = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "k": 1e3, "M": 1e6}
_SIZES: Final = _NS | _OTHER
_BYTES: Final = ("B", "KB", "MB", "GB")

_HALF: Final = 0.4999
"""A little less, so that neighbours such as 24 s and 25 s have nothing in common."""

_FIGURE: Final = re.compile(
    r"""(?<![\w.#/:-])                               # not within a name, a time of day or an id
    (?P<less><\s)?(?P<sign>[-+\u2212~]?)
    (?P<number>(?!0\d)\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?)
    (?:\s(?P<unit>ns|µs|ms|s|m|h|d|B|KB|MB|GB|k|M|%)(?!\w|\.\d))?+
    (?:\s(?P<seconds>\d\d)\ss\b)?                    # 3 m 12 s
    (?![\w#/]|:\d)""",
    re.VERBOSE,
)


class Figure(NamedTuple):
    """What a number in a text can mean."""

    kind: str
    low: float
    high: float


def figures(text: str) -> list[Figure]:
    """Read every number of a text, in order."""
    return [_figure(match) for match in _FIGURE.finditer(text)]


def _figure(match: re.Match[str]) -> Figure:
    number = match["number"].replace(",", "")
    value, unit = float(number), match["unit"] or ""
    if match["less"]:
        return Figure("%", 0, value)
    mantissa, _, power = number.partition("e")
    digit = 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
    size = _SIZES.get(unit, 1)
    kind = "%" if unit == "%" else "bytes" if unit in _BYTES else "time" if unit in _NS else ""
    if not unit and mantissa.isdigit() and not power:  # counts are exact
        digit = 0
    value, digit = value * size, digit * size
    if match["seconds"]:
        value, digit = value + int(match["seconds"]) * 1e9, 1e9
    if match["sign"] in ("-", "\u2212"):
        value = -value
    return Figure(kind, value - digit * _HALF, value + digit * _HALF)


def agree(printed: Figure, shown: Figure) -> bool:
    """Say whether two figures may be the same value, each rounded its own way."""
    is_zero = printed.low <= 0 <= printed.high and shown.low <= 0 <= shown.high
    return (printed.kind == shown.kind or is_zero) and (
        printed.low <= shown.high and shown.low <= printed.high
    )


def apart(printed: str, shown: str) -> list[Figure]:
    """Give the figures of a printed text that are nowhere in a shown one."""
    there = figures(shown)
    return [one for one in figures(printed) if not any(agree(one, each) for each in there)]


def added(parts: list[Figure]) -> Figure:
    """Give what figures add up to."""
    return Figure(parts[0].kind, sum(one.low for one in parts), sum(one.high for one in parts))


def ratio(part: Figure, whole: Figure) -> Figure:
    """Give the share that one figure is of another, in per cent."""
    return Figure("%", 100 * part.low / whole.high, 100 * part.high / whole.low)


def only(text: str) -> Figure:
    """Read the one number of a text, or its first."""
    return figures(text)[0]


def of_day_s(clock: str) -> int:
    """Read a time of day, in seconds."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return hours * 3600 + minutes * 60 + seconds
