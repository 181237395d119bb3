"""Span kinds, categories, statuses and session outcomes, with their codes in a frame.

The codes are part of the schema: they are never reused and never renumbered.
"""

from enum import StrEnum
from typing import Final, NamedTuple

__all__ = [
    "EVENT_CODE",
    "KIND_CODES",
    "SPAN_CODES",
    "STATUS_CODES",
    "STATUS_OF_CODE",
    "WHAT_OF_CODE",
    "Category",
    "Kind",
    "MetricType",
    "Outcome",
    "Status",
    "What",
]


class Kind(StrEnum):
    """What a timed region stands for."""

    STEP = "step"
    """One trainer step."""
    TASK = "task"
    """One data item being rolled out."""
    SESSION = "session"
    """One sample of a task."""
    PHASE = "phase"
    """A named stage of a session."""
    SPAN = "span"
    """Any other timed region."""
    STATE = "state"
    """An interval on a lane."""


class Category(StrEnum):
    """What an ordinary span spends its time on."""

    COMPUTE = "compute"
    COMM = "comm"
    IO = "io"
    SYNC = "sync"
    SCHEDULER = "scheduler"
    INSTR = "instr"
    MISC = "misc"


class Status(StrEnum):
    """How a span ended, if it did."""

    OPEN = "open"
    OK = "ok"
    ERROR = "error"
    CANCELLED = "cancelled"
    LOST = "lost"
    """Its process died, or its end was dropped, before the end was recorded."""


class Outcome(StrEnum):
    """The verdict on a session; a session without one has none yet."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    FAILED = "failed"
    TIMEOUT = "timeout"
    DROPPED = "dropped"
    CANCELLED = "cancelled"


class MetricType(StrEnum):
    """What a metric counts."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class What(NamedTuple):
    """Kind and category behind one code of a frame; an event has no kind."""

    kind: Kind | None
    category: Category | None


EVENT_CODE: Final = 0
KIND_CODES: Final = {
    Kind.STEP: 1,
    Kind.TASK: 2,
    Kind.SESSION: 3,
    Kind.PHASE: 4,
    Kind.STATE: 5,
}
SPAN_CODES: Final[dict[str, int]] = {str(category): 16 + n for n, category in enumerate(Category)}
STATUS_CODES: Final = {status: n for n, status in enumerate(Status)}

WHAT_OF_CODE: Final[dict[int, What]] = {
    EVENT_CODE: What(None, None),
    **{code: What(kind, None) for kind, code in KIND_CODES.items()},
    **{16 + n: What(Kind.SPAN, category) for n, category in enumerate(Category)},
}
STATUS_OF_CODE: Final = tuple(Status)
