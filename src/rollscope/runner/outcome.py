"""How a task ended: the one record that every accepted task gets."""

import traceback
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

__all__ = ["Attempt", "Failure", "Outcome", "Reason", "Status", "describe_failure"]

_TEXT_CHARS: Final = 2_000
_TRACEBACK_CHARS: Final = 16_000


class Status(StrEnum):
    """How a task ended."""

    OK = "ok"
    """It returned a value, which was accepted."""
    REJECTED = "rejected"
    """It returned None where that means "not good", or a filter said no."""
    FAILED = "failed"
    """An error ended its last attempt."""
    TIMEOUT = "timeout"
    """A time limit ended it."""
    CANCELLED = "cancelled"
    """Somebody asked for it, or the task itself raised `CancelledError`."""
    STALE = "stale"
    """It was made with weights that are too old."""
    DROPPED = "dropped"
    """It was removed before it started."""


class Reason(StrEnum):
    """Why it ended like that."""

    ACCEPTED = "accepted"
    RETURNED_NONE = "returned_none"
    FILTERED = "filtered"
    EXCEPTION = "exception"
    BAD_CALL = "bad_call"
    """The function could not be called with its arguments, or gave nothing to await."""
    BASE_EXCEPTION = "base_exception"
    INVALID_TRAJECTORY = "invalid_trajectory"
    FILTER_ERROR = "filter_error"
    REWARD_ERROR = "reward_error"
    REWARD_TIMEOUT = "reward_timeout"
    GROUP_SHORT = "group_short"
    """Too few members of its group were good."""
    LOST = "lost"
    """What ran it died."""
    DEADLINE = "deadline"
    NO_PROGRESS = "no_progress"
    QUEUE_DEADLINE = "queue_deadline"
    REQUESTED = "requested"
    GROUP_SETTLED = "group_settled"
    STRAGGLER = "straggler"
    CLOSED = "closed"
    DRAINED = "drained"
    SELF_CANCELLED = "self_cancelled"
    TOO_OLD = "too_old"
    CUT_BEFORE_UPDATE = "cut_before_update"
    OVERLOAD = "overload"
    BUDGET = "budget"


class Failure(msgspec.Struct, frozen=True):
    """An error, as text: a live traceback would keep everything it passed through alive."""

    kind: str
    """`infra`, `data` or `policy`: what a retry rule made of it."""
    type_name: str
    text: str
    traceback_text: str


def describe_failure(error: BaseException, kind: str = "data") -> Failure:
    """Put an error into words, however it behaves."""
    try:
        text = str(error)[:_TEXT_CHARS]
    except Exception:  # the exception's own code
        text = "(its text cannot be had)"
    try:
        lines = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARS:]
    except Exception:  # printing it calls the exception's code too
        lines = ""
    return Failure(kind, type(error).__qualname__, text, lines)


class Attempt(msgspec.Struct, frozen=True):
    """One execution of a task, where there was more than one."""

    number: int
    started_ns: int | None
    finished_ns: int | None
    status: Status
    reason: Reason
    actor: str | None = None


class Outcome(msgspec.Struct, frozen=True, eq=False):
    """How one task ended; it changes no more once it is handed over."""

    id: int
    status: Status
    reason: Reason
    value: Any
    error: Failure | None
    detail: str
    group: object | None
    tier: str
    tags: Mapping[str, Any]
    attempts: int
    submitted_ns: int
    admitted_ns: int | None
    started_ns: int | None
    finished_ns: int
    version_start: int | None
    version_end: int | None
    versions: tuple[int, ...]
    """One per segment: more than one if the weights changed while it ran."""
    partial: Any = None
    """The last checkpoint, kept when the task did not end `ok`."""
    history: tuple[Attempt, ...] = ()
    """Each attempt, if there was more than one."""
    execution_ns: int = 0
    """In all attempts together."""
    span: Any = None
    """What names it in the trace."""
    delivered_ns: int | None = None
    age: int | None = None
    """How many versions old it was when it was handed over."""
    weight: int = 1
    """How many accepted tasks it stands for."""

    @property
    def parts(self) -> "Sequence[Outcome]":
        """The outcomes of single tasks that it is made of: itself."""
        return (self,)

    @property
    def is_ok(self) -> bool:
        """Whether it returned a value that was accepted."""
        return self.status is Status.OK
