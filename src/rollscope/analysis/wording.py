"""How findings are put into words: durations, shares and counts."""

from collections.abc import Iterable

from rollscope.model.refs import span_hex

__all__ = ["say_count", "say_names", "say_ns", "say_sample", "say_share", "say_where"]

_MS = 1_000_000
_SECOND = 1_000 * _MS
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE


def say_ns(ns: int) -> str:
    """Write a duration as people say it: `850 ms`, `4.2 s`, `312 s`, `14 min`, `2.1 h`."""
    if ns < 0:
        return f"-{say_ns(-ns)}"
    if 0 < ns < _SECOND - _MS // 2:
        return f"{_rounded(ns, _MS)} ms"
    if ns < 10 * _SECOND - _SECOND // 20:
        tenths = _rounded(ns, _SECOND // 10)
        return f"{tenths // 10}.{tenths % 10} s" if tenths % 10 else f"{tenths // 10} s"
    if ns < 10 * _MINUTE:
        return f"{_rounded(ns, _SECOND)} s"
    if ns < 2 * _HOUR:
        return f"{_rounded(ns, _MINUTE)} min"
    tenths = _rounded(ns, _HOUR // 10)
    return f"{tenths // 10}.{tenths % 10} h"


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


def _rounded(ns: int, unit: int) -> int:
    return (ns + unit // 2) // unit
