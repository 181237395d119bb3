"""The gate that bounds off-policy age, over our counters or over somebody else's manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol

from rollscope.runner.gates.accounting import StalenessCounters, VersionProvider
from rollscope.runner.gates.base import CountingGate, TaskView

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ForeignManager", "StalenessGate"]

_RECHECK_S: Final = 0.2
"""How often a version is read that nobody announces."""

_Ending = Literal["accepted", "rejected", "neither"]


class ForeignManager(Protocol):
    """The part of a staleness manager that the gate needs; it keeps its own counts."""

    def get_capacity(self) -> int:
        """Count the items that may start now."""

    def on_rollout_enqueued(self) -> None:
        """Count one more as waiting."""

    def on_rollout_submitted(self) -> None:
        """Move one from waiting to running."""

    def on_rollout_accepted(self) -> None:
        """Move one from running to accepted."""

    def on_rollout_rejected(self) -> None:
        """Move one from running to rejected."""


class _Book(Protocol):
    """Where the gate keeps its counts."""

    def capacity(self) -> int: ...
    def start(self, count: int) -> None: ...
    def end(self, ending: _Ending) -> None: ...
    def put_back(self, count: int) -> None: ...


class StalenessGate(CountingGate):
    """Admits only what can be consumed within `staleness` versions of its start.

    Permits are for tasks that are trained on; the eval tier needs none. Who runs tasks calls
    `finished` for each that has ended for good, and then `give`. Permits given back without it
    are of tasks that wait to be tried again.

    Args:
        manager: Whose counters to use. Who submits tasks calls its `on_rollout_enqueued`, if it
            has one, for each; starting and ending is counted by the gate. A manager that is not
            ours keeps its way of counting: reports of what was consumed do not reach it.
        name: Under which the gate is reported.
    """

    def __init__(
        self, manager: StalenessCounters | ForeignManager, *, name: str = "staleness"
    ) -> None:
        super().__init__(name)
        self._ended = 0
        """Tasks that have ended and whose permits were not given back yet."""
        self._counters: StalenessCounters | None = None
        self._book: _Book
        self.recheck_s: float | None = _RECHECK_S
        if isinstance(manager, StalenessCounters):
            self._counters = manager
            self._book = _OwnBook(manager, counts_waiting=hasattr(manager, "on_rollout_enqueued"))
            self._subscribers = manager.subscribers
            if manager.version_provider is None:
                self.recheck_s = None
        else:
            self._book = _ForeignBook(manager)

    @classmethod
    def bounded(
        cls,
        staleness: int,
        *,
        batch: int = 1,
        concurrency: int | None = None,
        version: int = 0,
        version_source: VersionProvider | None = None,
        dynamic: bool | None = None,
        name: str = "staleness",
    ) -> StalenessGate:
        """Make a gate with counters of its own.

        Args:
            staleness: How many versions old an item may be when it is consumed.
            batch: Items that the consumer takes for one version.
            concurrency: How many items may run at a time; None for no limit.
            version: The version to begin at. Beyond 0 this is a resumed run, and the window opens
                as wide as it does for a new one.
            version_source: Asked for the version with every look, if nobody announces it.
            dynamic: Whether batches count rejected items; see `StalenessCounters`.
            name: Under which the gate is reported.
        """
        counters = StalenessCounters(version_source, concurrency, batch, staleness, dynamic=dynamic)
        if version:
            counters.on_version_recovered(version)
        return cls(counters, name=name)

    @property
    def counters(self) -> StalenessCounters | None:
        """The counters, unless a foreign manager keeps them."""
        return self._counters

    @property
    def accounting(self) -> Literal["versions", "events"]:
        """Which way of counting is in force."""
        return "versions" if self._counters is None else self._counters.accounting

    def applies_to(self, tier: str) -> bool:
        """Whether tasks of this tier are trained on."""
        return tier != "eval"

    def available(self) -> int:
        """Count the tasks that may start now; may be below zero."""
        return self._book.capacity()

    def take(self, count: int) -> None:
        """Count `count` tasks as running."""
        self._book.start(count)

    def finished(self, task: TaskView, accepted: bool, rejected: bool) -> None:
        """Count a running task as ended for good; its permit is still to be given back."""
        if not self.applies_to(task.tier):
            return
        self._book.end("accepted" if accepted else "rejected" if rejected else "neither")
        with self._lock:
            self._ended += 1

    def withdrawn(self, task: TaskView) -> None:
        """Count an accepted task as not ended after all: it runs again, and asks again.

        A foreign manager has no call for that, and goes on counting it.
        """
        if self._counters is not None and self.applies_to(task.tier):
            self._counters.count(accepted=-1)

    def give(self, count: int) -> None:
        """Give permits back, of finished tasks first."""
        with self._lock:
            ended = min(count, self._ended)
            self._ended -= ended
        if count > ended:
            self._book.put_back(count - ended)
        self._subscribers.wake_if_shared()

    def numbers(self) -> dict[str, float | None]:
        """Give what capacity is made of, as far as it is known."""
        return super().numbers() if self._counters is None else self._counters.numbers()

    def consumed(self, count: int) -> None:
        """Report that a batch took `count` accepted items."""
        self._report(lambda counters: counters.consumed(count))

    def filtered(self, count: int) -> None:
        """Report that a batch took `count` rejected items."""
        self._report(lambda counters: counters.filtered(count))

    def discarded(self, count: int) -> None:
        """Report that `count` accepted items will never be trained on."""
        self._report(lambda counters: counters.discarded(count))

    def set_version(self, version: int) -> None:
        """Tell the version now in force. A foreign manager asks its own source, but is woken."""
        self._report(lambda counters: counters.set_version(version))

    def _report(self, tell: Callable[[StalenessCounters], None]) -> None:
        if self._counters is None:
            self.wake()
        else:
            tell(self._counters)


class _OwnBook:
    """Counts on our counters."""

    def __init__(self, counters: StalenessCounters, *, counts_waiting: bool) -> None:
        self.capacity = counters.capacity
        self._count = counters.count
        self._counts_waiting = counts_waiting

    def start(self, count: int) -> None:
        self._count(running=count, enqueued=-count if self._counts_waiting else 0)

    def end(self, ending: _Ending) -> None:
        self._count(
            running=-1, accepted=int(ending == "accepted"), rejected=int(ending == "rejected")
        )

    def put_back(self, count: int) -> None:
        self._count(running=-count, enqueued=count if self._counts_waiting else 0)


class _ForeignBook:
    """Counts through the calls of a foreign manager, which knows two endings only."""

    def __init__(self, manager: ForeignManager) -> None:
        self.capacity = manager.get_capacity
        self._manager = manager

    def start(self, count: int) -> None:
        for _ in range(count):
            self._manager.on_rollout_submitted()

    def end(self, ending: _Ending) -> None:
        if ending == "accepted":
            self._manager.on_rollout_accepted()
        else:
            self._manager.on_rollout_rejected()

    def put_back(self, count: int) -> None:
        for _ in range(count):
            self._manager.on_rollout_rejected()
            self._manager.on_rollout_enqueued()
