"""Names and labels that every monitoring system takes: cleaned, and bounded in number."""

import re
from collections.abc import Callable
from typing import Final

__all__ = ["FORBIDDEN", "OTHER", "Caps", "clean_label", "clean_name", "clean_value"]

FORBIDDEN: Final = frozenset(
    {
        *("session", "session_id", "task", "task_key", "sample", "uid", "trajectory"),
        *("trace_id", "span_id", "request_id", "step", "version", "pid"),
        *("title", "message", "messages", "url"),
    }
)
"""Labels that have a value of their own for nearly everything that is counted."""
OTHER: Final = "other"
"""Stands for all values beyond the bound."""
_MOST_VALUES: Final = 200
_MOST_CHARACTERS: Final = 200
_TAKEN: Final = frozenset({"run", "role", "rank", "le", "quantile", "job", "instance"})
_ODD: Final = re.compile(r"[^a-zA-Z0-9_]")
_UNREADABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def clean_name(name: str) -> str:
    """Give a name as it may stand behind a prefix."""
    return _ODD.sub("_", name[:_MOST_CHARACTERS]).strip("_") or "unnamed"


def clean_label(name: str) -> str:
    """Give the name of a label; those that are ours or the system's get another."""
    cleaned = _ODD.sub("_", name[:_MOST_CHARACTERS]).lstrip("_") or "label"
    return f"user_{cleaned}" if cleaned in _TAKEN or cleaned[0].isdigit() else cleaned


def clean_value(value: str) -> str:
    """Give the value of a label as one line of bounded length."""
    cleaned = _UNREADABLE.sub("\ufffd", value[: _MOST_CHARACTERS + 1])
    return cleaned if len(cleaned) <= _MOST_CHARACTERS else cleaned[: _MOST_CHARACTERS - 1] + "…"


class Caps:
    """Lets only so many values of each label through: the first that come, for good."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], set[str]] = {}
        self.refused_total = 0
        """How much was counted under another value than its own since `begin`."""

    def begin(self) -> None:
        """Count anew what is refused."""
        self.refused_total = 0

    def admit(self, family: str, label: str, value: str, weigh: Callable[[], int]) -> str:
        """Give the value, or what stands for it.

        Args:
            family: The name of the family.
            label: The label.
            value: Its value.
            weigh: Says how many records or calls stand behind it.
        """
        cleaned = clean_value(value)
        known = self._known.setdefault((family, label), set())
        if cleaned in known or cleaned == OTHER:
            return cleaned
        if len(known) < _MOST_VALUES:
            known.add(cleaned)
            return cleaned
        self.refused_total += weigh()
        return OTHER
