"""When a member that has ended is started again, and when it is left alone."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["RestartPolicy", "Restarts"]


@dataclass(frozen=True)
class RestartPolicy:
    """How often, and how soon."""

    most: int = 5
    within_s: float = 600.0
    first_delay_s: float = 1.0
    """Doubled each time."""


class Restarts:
    """The restarts of one member."""

    def __init__(self, policy: RestartPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._at: deque[float] = deque()
        self._due = 0.0

    def next_delay_s(self) -> float | None:
        """Plan another restart and say in how many seconds; None if there were too many."""
        now = self._clock()
        while self._at and now - self._at[0] > self._policy.within_s:
            self._at.popleft()
        if len(self._at) >= self._policy.most:
            return None
        delay_s = self._policy.first_delay_s * float(2 ** len(self._at))
        self._at.append(now)
        self._due = now + delay_s
        return delay_s

    def is_due(self) -> bool:
        """Say whether the restart that was planned last is due."""
        return self._clock() >= self._due
