"""A task on its way from submit to outcome, and the settings it was submitted with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import force_setattr

from rollscope.runner.checks import check, check_seconds, is_hashable, is_id, is_number
from rollscope.runner.outcome import Reason, Status
from rollscope.runner.retry import Retry

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from rollscope.runner.outcome import Attempt, Failure

__all__ = [
    "BACKOFF",
    "DONE",
    "FREED",
    "NO_TAGS",
    "QUEUED",
    "RUNNING",
    "Rare",
    "Task",
    "TaskOptions",
    "Verdict",
]

QUEUED, BACKOFF, RUNNING, FREED, DONE = range(5)
"""Where a task is. One that is admitted counts as running; one whose place is freed waits for
its outcome to be made, which is soon."""

NO_TAGS: Final[Mapping[str, Any]] = {}


_TIME_LIMITS: Final = ("timeout_s", "attempt_timeout_s", "queue_timeout_s", "stall_s")
_CHECKS: Final[tuple[tuple[str, str, Callable[[Any], bool]], ...]] = (
    ("id", "an int from 0 on, or None", is_id),
    ("priority", "a number", is_number),
    ("tags", "a mapping", lambda given: isinstance(given, Mapping)),
    ("retry", "a Retry, or None", lambda given: given is None or isinstance(given, Retry)),
    ("children", "'keep' or 'cancel'", lambda given: given in ("keep", "cancel")),
    ("group", "anything that is hashable", is_hashable),
)


class TaskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What tasks submitted together share."""

    id: int | None = None
    """Given by the caller; counted up if it is not."""
    key: str | None = None
    """What names the data item in the trace; the function's name and the id if not given."""
    sample: int = 0
    tier: str = "train"
    priority: int = 0
    tags: Mapping[str, Any] = NO_TAGS
    timeout_s: float | None = None
    attempt_timeout_s: float | None = None
    queue_timeout_s: float | None = None
    stall_s: float | None = None
    retry: Any = None
    """A `Retry` of its own."""
    children: str = "keep"
    """`cancel`: asyncio tasks that outlive the function are cancelled at its return."""
    group: Any = None
    none_is: Reason | None = None
    """`Reason.RETURNED_NONE` where a function that returns None rejects its item."""

    is_limited: bool = False
    """Whether a time limit has to be watched from the start on; follows from the others."""
    is_special: bool = False
    """Whether the trace has more to say of it than of most; follows from the others."""

    def __post_init__(self) -> None:
        """Refuse what the loop could not cope with, and work out once what it asks of every task.

        Raises:
            SettingError: A setting has a value that cannot be used.
        """
        for name in _TIME_LIMITS:
            given = getattr(self, name)
            if given is not None:
                force_setattr(self, name, check_seconds(name, given))
        if self.tags is None:
            force_setattr(self, "tags", NO_TAGS)
        for name, what, is_right in _CHECKS:
            given = getattr(self, name)
            check(name, given, what, is_right=is_right(given))
        limits = (self.timeout_s, self.attempt_timeout_s, self.stall_s)
        force_setattr(self, "is_limited", any(limit is not None for limit in limits))
        is_special = bool(self.tags) or self.tier != "train" or self.timeout_s is not None
        force_setattr(self, "is_special", is_special)


class Verdict(msgspec.Struct, frozen=True):
    """What a function returns to say itself how its task ended."""

    status: Status
    reason: Reason
    value: Any = None
    detail: str = ""


class Rare:
    """What few tasks have."""

    __slots__ = (
        "attempt",
        "cancel_hooks",
        "children",
        "deadline",
        "detail",
        "entries",
        "execution_ns",
        "failure",
        "history",
        "holders",
        "hooks",
        "is_aborted",
        "partial",
        "permits",
        "progress_ns",
        "retries",
        "seen_span",
        "started_ns",
        "stop",
        "versions",
    )

    def __init__(self) -> None:
        self.attempt = 1
        """Which execution of it the one at hand is."""
        self.cancel_hooks: list[Callable[[], Awaitable[object]]] = []
        self.children: set[Any] = set()
        self.entries: list[Any] = []
        """Timers to be taken back when the attempt ends."""
        self.deadline: Any = None
        """The timer of its limit over all attempts."""
        self.detail = ""
        self.execution_ns = 0
        """In the attempts before the one at hand."""
        self.failure: Failure | None = None
        self.history: list[Attempt] = []
        self.holders = 1
        """How many of its coroutines have to wait at a pause point for it to count as held."""
        self.hooks: set[Any] = set()
        """What was to be done on a cancel and is under way."""
        self.is_aborted = False
        """Told to stop for a pause, to start again after it."""
        self.partial: Any = None
        self.permits: list[Any] = []
        self.progress_ns = 0
        self.retries = 0
        self.seen_span = 0
        self.started_ns: int | None = None
        """When its first attempt started, if the one at hand is another."""
        self.stop: tuple[Status, Reason] | None = None
        """Set when it was told to stop; that is then how it ends."""
        self.versions: list[int] = []


@dataclass(slots=True, eq=False)
class Task:
    """One accepted submit. Only the loop thread changes it once it is accepted.

    No msgspec struct: that is made in half the time, but each of the twenty changes on its way
    costs five times as much.
    """

    fn: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    origin: Any
    """The context of whoever submitted it."""
    options: TaskOptions
    submitted_ns: int
    id: int = -1
    state: int = QUEUED
    admitted_ns: int | None = None
    attempt_ns: int | None = None
    """When the attempt at hand started."""
    finished_ns: int | None = None
    version_start: int | None = None
    context: Any = None
    """What the attempt at hand runs in."""
    runs_in: Any = None
    """What executes it: an asyncio task, or a lease on another machine."""
    status: Status = Status.OK
    reason: Reason = Reason.ACCEPTED
    value: Any = None
    span: Any = None
    rare: Any = None
    kernel: Any = None

    @property
    def tier(self) -> str:
        """Which queue it waits in."""
        return self.options.tier

    @property
    def tags(self) -> Mapping[str, Any]:
        """Labels as given."""
        return self.options.tags

    @property
    def group(self) -> Any:  # noqa: ANN401  (what the group is named by is the caller's)
        """The group it belongs to."""
        return self.options.group

    @property
    def attempt(self) -> int:
        """Which execution of it the one at hand is, from 1."""
        return 1 if self.rare is None else self.rare.attempt

    @property
    def started_ns(self) -> int | None:
        """When its first attempt started, here or elsewhere."""
        rare: Rare | None = self.rare
        return self.attempt_ns if rare is None or rare.started_ns is None else rare.started_ns

    @property
    def stop(self) -> tuple[Status, Reason] | None:
        """How it was told to end, if it was."""
        return None if self.rare is None else self.rare.stop

    @property
    def failure(self) -> Failure | None:
        """The error that the attempt at hand has ended with."""
        return None if self.rare is None else self.rare.failure

    def more(self) -> Rare:
        """Give the part that few tasks have, made when it is first needed."""
        rare: Rare | None = self.rare
        if rare is None:
            rare = self.rare = Rare()
        return rare

    def end(
        self,
        status: Status,
        reason: Reason,
        value: Any = None,  # noqa: ANN401
        failure: Failure | None = None,
        detail: str = "",
    ) -> None:
        """Note how the attempt ended."""
        self.status, self.reason, self.value = status, reason, value
        if failure is not None or detail or self.rare is not None:
            rare = self.more()
            rare.failure, rare.detail = failure, detail
