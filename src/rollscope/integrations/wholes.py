"""Whole numbers as programs hand them over: in any spelling, and of any library's type."""

from __future__ import annotations

from rollscope.instrument.sanitise import plain_number
from rollscope.otlp.aliases import whole_number

__all__ = ["whole"]


def whole(value: object) -> int | None:
    """Read 7, 7.0, "7" or a number of numpy's; None for what is no whole number of 64 bits."""
    kind = type(value)  # an object may lie about its class, or fail to tell it
    if kind is int or kind is float or issubclass(kind, str):
        return whole_number(value)
    return None if value is None or kind is bool else whole_number(plain_number(value))
