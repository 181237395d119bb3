"""Categories of perf events, by AReaL's names and aliases."""

from __future__ import annotations

from enum import Enum
from typing import Final

from rollscope.model.kinds import Category as OwnCategory

__all__ = ["Category", "CategoryLike", "PerfTraceCategory", "is_own_category", "normalise_category"]


class PerfTraceCategory(str, Enum):  # noqa: UP042  (its `str()` is the original's, not the value)
    """What a scope spends its time on."""

    COMPUTE = "compute"
    COMM = "comm"
    IO = "io"
    SYNC = "sync"
    SCHEDULER = "scheduler"
    INSTR = "instr"
    MISC = "misc"


Category = PerfTraceCategory
CategoryLike = PerfTraceCategory | str | None

_LONG_NAMES: Final[dict[object, str]] = {
    "communication": "comm",
    "synchronization": "sync",
    "scheduling": "scheduler",
    "instrumentation": "instr",
}
# Members and plain values both: a member of such an enum does not hash as its value does.
_KNOWN: Final[dict[object, str]] = {
    None: "misc",
    **{member: member.value for member in PerfTraceCategory},
    **{member.value: member.value for member in PerfTraceCategory},
    **_LONG_NAMES,
}
_OWN: Final = frozenset(str(category) for category in OwnCategory)


def normalise_category(category: object) -> str:
    """Give the category's short name; text that is not known is kept as it is."""
    try:
        return _KNOWN[category]
    except Exception:  # not only a KeyError: it may be any object
        text = str.__str__(category) if isinstance(category, str) else ""
    return _KNOWN.get(text.strip().lower(), text) if text.strip() else "misc"


def is_own_category(category: str) -> bool:
    """Say whether Rollscope has a category of that name too."""
    return category in _OWN
