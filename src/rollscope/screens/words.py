"""How sessions, times and numbers are written on the screens."""

import re
import time
from typing import Final

from rollscope.analysis.rows import SessionRow
from rollscope.analysis.wording import say_ns, say_sample

__all__ = [
    "assign_letters",
    "letter_bar",
    "place_bar",
    "say_clock",
    "say_frame",
    "say_maybe_ns",
    "say_number",
    "say_phase",
    "say_reward",
    "say_session",
    "say_signed",
    "say_signed_share",
    "say_unended",
]

_FRAME: Final = re.compile(r"(?:.*[/\\])?(?P<rest>[^/\\]+:\d+ .*)")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
OTHER_MARK: Final = "."


def say_session(row: SessionRow) -> str:
    """Name a session as `show` takes it: task and sample, else its id."""
    return say_sample(row.task_key, row.sample, row.span_id)


def say_maybe_ns(ns: int | None) -> str:
    """Write a duration, a dash for none."""
    return "-" if ns is None else say_ns(ns)


def say_number(value: float | None, digits: int = 2) -> str:
    """Write a number without needless zeros, a dash for none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}f}"


def say_reward(value: float | None) -> str:
    """Write a reward: three digits, so that eighths and thousandths can be told apart."""
    return say_number(value, 3)


def say_signed(ns: int) -> str:
    """Write a difference of durations with its sign, if any is left of it when rounded."""
    said = say_ns(abs(ns))
    return said if said.startswith("0 ") else f"{'-' if ns < 0 else '+'}{said}"


def say_signed_share(share: float | None) -> str:
    """Write a relative change in per cent with its sign."""
    if share is None:
        return "-"
    return f"{share * 100:+.0f} %" if share < 9.995 else f"x {share + 1:.0f}"


def say_unended(columns: str, count: int, measured: int, open_now: int) -> str | None:
    """Say which columns count what did not end, and which do not; None if all of it ended."""
    lost = count - measured - open_now
    parts = [f"{open_now:,} open, up to now"] if open_now else []
    parts += [f"{lost:,} lost, until last heard of"] if lost else []
    if not parts:
        return None
    return f"{columns} include what did not end ({'; '.join(parts)}); p50 to max do not."


def say_phase(name: str, detail: str | None) -> str:
    """Write a phase and its tool, environment or model for a cell: `toolcall browser`."""
    return f"{name} {detail}" if detail else name


def say_clock(time_ns: int) -> str:
    """Write a time of day of the wall clock, here: `10:49:07`."""
    return time.strftime("%H:%M:%S", time.localtime(time_ns / 1e9))


def say_frame(frame: str) -> str:
    """Write a line of code without the folders of its file."""
    match = _FRAME.fullmatch(frame)
    return frame if match is None else match["rest"]


def assign_letters(names: list[str]) -> dict[str, str]:
    """Give each name a letter of its own, its first one where that is free."""
    letters: dict[str, str] = {}
    for name in names:
        wanted = [char for char in name.lower() if char in _LETTERS] + list(_LETTERS)
        free = next((char for char in wanted if char not in letters.values()), "?")
        letters[name] = free
    return letters


def letter_bar(parts: dict[str, int], whole: int, letters: dict[str, str], width: int) -> str:
    """Draw parts of a whole as letters, and what is left of it as dots."""
    drawn, done, exact = "", 0, 0
    for name, part in parts.items():
        exact += part
        upto = round(min(exact / whole, 1) * width) if whole else 0
        drawn += letters.get(name, "?") * (upto - done)
        done = max(done, upto)
    return drawn + OTHER_MARK * (width - done) if whole else ""


def place_bar(low: float, high: float, width: int, *, is_unicode: bool = True) -> str:
    """Draw a stretch, given as shares of a time line, where it lies; never as nothing."""
    low, high = (min(max(value, 0.0), 1.0) for value in (low, high))
    first = min(int(low * width), width - 1)
    last = max(min(round(high * width), width), first + 1)
    return (" " * first + ("█" if is_unicode else "#") * (last - first)).ljust(width)
