"""What settings may be: a wrong one is told to who gives it, not to the loop that uses it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Final

from rollscope.errors import SettingError

__all__ = ["check", "check_seconds", "is_hashable", "is_id", "is_number"]

_FOR_EVER_S: Final = 1e12
"""What is longer than this is no limit; some of it would not fit the clock."""


def check(name: str, value: object, what: str, *, is_right: bool) -> None:
    """Refuse a setting that is not right.

    Raises:
        SettingError: The message says what it can be.
    """
    if not is_right:
        raise SettingError(f"{name} is {value!r}; it can be {what}")


def check_seconds(name: str, value: Any) -> float | None:  # noqa: ANN401  (whatever was given)
    """Give a time limit; None for one that never comes.

    Raises:
        SettingError: It is not a number.
    """
    if value is None:
        return None
    check(name, value, "a number of seconds, or None", is_right=is_number(value))
    return None if value >= _FOR_EVER_S else max(0.0, value)


def is_number(value: object) -> bool:
    """Whether it can be compared with other numbers."""
    return isinstance(value, Real) and value == value  # NaN is not


def is_id(value: object) -> bool:
    """Whether it can name a task, or leaves that to the runner."""
    return value is None or (isinstance(value, Integral) and int(value) >= 0)


def is_hashable(value: object) -> bool:
    """Whether it can be the key of a dictionary."""
    try:
        hash(value)
    except TypeError:
        return False
    return True
