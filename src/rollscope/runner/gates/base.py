"""What a gate is, and what all gates of ours share.

A gate gives permits and knows nothing of tasks beyond `TaskView`. Asking several gates, and taking
their permits together or not at all, is the runner's part.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

__all__ = ["CountingGate", "Gate", "Permit", "Subscribers", "TaskView"]


class TaskView(Protocol):
    """What a gate sees of a task."""

    @property
    def id(self) -> int:
        """The task's id."""

    @property
    def tier(self) -> str:
        """The name of its tier."""

    @property
    def tags(self) -> Mapping[str, Any]:
        """Its labels."""

    @property
    def group(self) -> object | None:
        """The id of its group, if it has one."""

    @property
    def attempt(self) -> int:
        """The number of the attempt that asks, from 1."""

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments of the user's function."""

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """Keyword arguments of the user's function."""


class Permit(Protocol):
    """The right of one attempt to run."""

    def release(self) -> None:
        """Give the permit back; a second time changes nothing."""


class Gate(Protocol):
    """A source of permits that limits how many tasks are admitted."""

    name: str

    def available(self) -> int | None:
        """Count free permits; None means no limit, and less than zero is possible."""

    def acquire(self, task: TaskView) -> Permit:
        """Take a permit, in the loop's thread and without blocking."""

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when there may be more permits."""


class Subscribers:
    """Who wants to know when there may be more permits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: tuple[Callable[[], None], ...] = ()

    def add(self, wake: Callable[[], None]) -> None:
        """Tell this one too from now on."""
        with self._lock:
            self._wakes = (*self._wakes, wake)

    def wake_all(self) -> None:
        """Tell everyone. The caller holds no lock that a gate needs."""
        for wake in self._wakes:
            wake()

    def wake_if_shared(self) -> None:
        """Tell everyone if there are several.

        A lone runner looks again by itself after it gave permits back.
        """
        if len(self._wakes) > 1:
            self.wake_all()


class CountingGate(ABC):
    """A gate whose permits are all alike, so that many are taken at once and none is an object.

    The runner uses `take` and `give`; `acquire` serves everyone else.
    """

    recheck_s: float | None = None
    """How often the runner has to ask again while this gate holds work back; None: never."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._subscribers = Subscribers()

    @abstractmethod
    def available(self) -> int | None:
        """Count free permits; None means no limit, and less than zero is possible."""

    @abstractmethod
    def take(self, count: int) -> None:
        """Take permits for `count` tasks, whether or not so many are free."""

    @abstractmethod
    def give(self, count: int) -> None:
        """Give the permits of `count` tasks back."""

    def applies_to(self, tier: str) -> bool:
        """Whether tasks of this tier need a permit."""
        return True

    def numbers(self) -> dict[str, float | None]:
        """Give what the gate knows, for statistics and messages."""
        return {"available": self.available()}

    def acquire(self, task: TaskView) -> Permit:
        """Take one permit."""
        self.take(1)
        return _CountedPermit(self)

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when there may be more permits."""
        self._subscribers.add(wake)

    def wake(self) -> None:
        """Tell the subscribers that there may be more permits."""
        self._subscribers.wake_all()


class _CountedPermit:
    """One permit of a counting gate, as an object."""

    def __init__(self, gate: CountingGate) -> None:
        self._gate: CountingGate | None = gate
        self._lock = threading.Lock()

    def release(self) -> None:
        """Give the permit back, once."""
        with self._lock:
            gate, self._gate = self._gate, None
        if gate is not None:
            gate.give(1)
            gate.wake()
