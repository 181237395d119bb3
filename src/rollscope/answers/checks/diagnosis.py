"""What a check says, and how bad that is."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from rollscope.analysis.wording import say_names

__all__ = ["Finding", "Severity", "name_some"]

_MOST_NAMES: Final = 4


class Severity(StrEnum):
    """How bad a finding is."""

    PROBLEM = "problem"
    """Something was lost or will be."""
    WARNING = "warning"
    """Answers may be off, or something needs a look."""
    NOTE = "note"
    """Good to know."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be."""

    severity: Severity
    check: str
    """Which check found it."""
    sentence: str
    advice: str


def name_some(names: Iterable[str]) -> str:
    """Name processes or files; as many as a sentence bears."""
    return say_names(names, _MOST_NAMES)
