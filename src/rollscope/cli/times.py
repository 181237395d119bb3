"""Times on the command line: `10:30`, `2026-11-15T10:30:05`, `-5m`."""

import re
from argparse import ArgumentParser
from datetime import datetime, time, timedelta
from typing import Final

from rollscope.errors import CommandError

__all__ = ["TIME_PATTERN", "add_times", "parse_time"]

TIME_PATTERN: Final = r"[0-9].*"
"""What follows the minus of a time, for `allow_minus`."""

_SECOND: Final = 1_000_000_000
_UNITS_NS: Final = {
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "min": 60 * _SECOND,
    "h": 3600 * _SECOND,
    "d": 86_400 * _SECOND,
}
_BEFORE: Final = re.compile(r"-(?P<number>\d{1,9}(?:\.\d{1,6})?)\s*(?P<unit>ms|s|min|m|h|d)")
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


def add_times(parser: ArgumentParser) -> None:
    """Declare `--since` and `--until`."""
    forms = "10:30, 2026-11-15T10:30:05 or -5m"
    parser.add_argument(
        "--since", metavar="TIME", help=f"sessions that were open after this: {forms}"
    )
    parser.add_argument("--until", metavar="TIME", help="sessions that were open before this")


def parse_time(text: str, now_ns: int) -> int:
    """Read a time as nanoseconds since 1970; without a zone, it is meant here.

    Args:
        text: A time of day, the last one before now; a date with or without one; or how long
            before now, as in `-5m`.
        now_ns: What counts as now: of a run that is over, its end.

    Raises:
        CommandError: It is none of these.
    """
    text = text.strip()
    before = _BEFORE.fullmatch(text)
    if before is not None:
        return now_ns - round(float(before["number"]) * _UNITS_NS[before["unit"]])
    try:
        clock = _CLOCK.fullmatch(text)
        if clock is not None:
            hour, minute, second = (int(part or 0) for part in clock.groups())
            return _last(time(hour, minute, second), now_ns)
        return _to_ns(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise CommandError(
            f"{text!r} is no time; write 10:30, 2026-11-15T10:30:05, or -5m for five minutes "
            "before now (ms, s, m, h, d)",
            2,
        ) from None


def _last(clock: time, now_ns: int) -> int:
    """Give the last moment at which clocks here showed this."""
    now = datetime.fromtimestamp(now_ns / _SECOND)  # noqa: DTZ006  (the time here is meant)
    found = datetime.combine(now.date(), clock)
    return _to_ns(found - timedelta(days=1) if found > now else found)


def _to_ns(moment: datetime) -> int:
    whole = moment.replace(microsecond=0)
    return round(whole.timestamp()) * _SECOND + moment.microsecond * 1000
