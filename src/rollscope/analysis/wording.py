"""How findings are put into words: durations, shares and counts."""

from collections.abc import Iterable, Sequence
from typing import Final

from rollscope.model.refs import span_hex

__all__ = [
    "say_count",
    "say_names",
    "say_ns",
    "say_sample",
    "say_seconds",
    "say_share",
    "say_sum",
    "say_where",
    "say_whole",
]

_US: Final = 1_000
_MS: Final = 1_000 * _US
_SECOND: Final = 1_000 * _MS
_LONG: Final = 99_950 * _MS
"""From here on minutes are told."""
_HOUR: Final = 3600 * _SECOND
_DAY: Final = 24 * _HOUR


def say_ns(ns: int) -> str:
    """Write a duration as the page does: `850 ms`, `4.82 s`, `14.3 s`, `3 m 12 s`, `2.1 h`."""
    if ns < 0:
        return f"-{say_ns(-ns)}"
    if ns < _US:
        return f"{ns} ns" if ns else "0 s"
    if ns < _SECOND - _MS // 2:
        return _say_short(ns)
    if ns < _LONG:
        return f"{_decimal(ns, _SECOND, 2 if ns < 9_995 * _MS else 1)} s"
    minutes, seconds = divmod(_rounded(ns, _SECOND), 60)
    if minutes < 60:
        return f"{minutes} m {seconds:02} s"
    return f"{_decimal(ns, _HOUR, 1)} h" if ns < _DAY else f"{_decimal(ns, _DAY, 1)} d"


def _say_short(ns: int) -> str:
    """Write less than a second; a tenth is told of few units only, and only if there is one."""
    unit, name = _short_unit(ns)
    return f"{_decimal(ns, unit, 1 if ns < 10 * unit else 0).removesuffix('.0')} {name}"


def _short_unit(ns: int) -> tuple[int, str]:
    return (_US, "µs") if ns < _MS - _US // 2 else (_MS, "ms")


def say_seconds(seconds: float) -> str:
    """Write a duration that is known in seconds, in the same way."""
    return say_ns(round(seconds * 1e9))


def say_whole(ns: int) -> str:
    """Write what changes by the second, as an age or a time left: `< 1 s`, `41 s`, `3 m 12 s`."""
    if ns < _SECOND:
        return "< 1 s"
    return f"{ns // _SECOND} s" if ns < _LONG else say_ns(ns)


def say_sum(whole_ns: int, parts_ns: Sequence[int]) -> tuple[str, list[str]]:
    """Write durations of one sum, all as finely as the whole, so that what is read adds up.

    The largest part takes what is left over by rounding, if they add up to the whole at all. What
    is too little to be told reads as less than the least: `1 h 13 m 08 s`, `37 s`, `< 1 s`.
    """
    unit, name, digits = _fineness(abs(whole_ns))
    step = unit // 10**digits
    whole, parts = _rounded(whole_ns, step), [_rounded(ns, step) for ns in parts_ns]
    if parts and sum(parts_ns) == whole_ns:
        largest = max(range(len(parts)), key=lambda at: abs(parts_ns[at]))
        parts[largest] += whole - sum(parts)

    def say(steps: int, ns: int) -> str:
        if steps < 0:
            return f"-{say(-steps, -ns)}"
        if ns and not steps:
            return f"< {_decimal(step, unit, digits)} {name}"
        if unit == _SECOND and not digits:
            return _say_clocklike(steps)
        return f"{_decimal(steps * step, unit, digits)} {name}"

    return say(whole, whole_ns), [say(*one) for one in zip(parts, parts_ns, strict=True)]


def _fineness(ns: int) -> tuple[int, str, int]:
    """Give the unit, and the digits after the point, in which `say_ns` tells this much."""
    if ns >= _LONG or not ns:
        return _SECOND, "s", 0
    if ns >= _SECOND - _MS // 2:
        return _SECOND, "s", 2 if ns < 9_995 * _MS else 1
    if ns < _US:
        return 1, "ns", 0
    unit, name = _short_unit(ns)
    return unit, name, 1 if ns < 10 * unit else 0


def _say_clocklike(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} m {seconds:02} s"
    return f"{minutes} m {seconds:02} s" if minutes else f"{seconds} s"


def say_share(part: float, whole: float = 1) -> str:
    """Write a part of a whole in per cent."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 1 else f"{percent:.0f} %"


def say_count(count: int, noun: str) -> str:
    """Write a number of things: `1 session`, `3 sessions`, `2 processes`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def say_names(names: Iterable[str], at_most: int = 3) -> str:
    """Write a list of names: `a`, `a and b`, `a, b, c and 4 more`; there has to be one."""
    listed = list(names)
    more = [f"{len(listed) - at_most} more"] if len(listed) > at_most else []
    *most, last = [*listed[:at_most], *more]
    return f"{', '.join(most)} and {last}" if most else last


def say_sample(task_key: str | None, sample: int | None, span_id: int) -> str:
    """Name a session by task and sample, as far as known, else by its id."""
    if task_key is None:
        return span_hex(span_id)
    return task_key if sample is None else f"{task_key}#{sample}"


def say_where(name: str, detail: str | None) -> str:
    """Write a phase and what it is of: "toolcall `browser`"."""
    return f"{name} `{detail}`" if detail else name


def _decimal(ns: int, unit: int, digits: int) -> str:
    """Write a number of units with so many digits after the point."""
    value = _rounded(ns, unit // 10**digits)
    return f"{value // 10**digits}.{value % 10**digits:0{digits}}" if digits else str(value)


def _rounded(ns: int, unit: int) -> int:
    return (ns + unit // 2) // unit
