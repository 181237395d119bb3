"""How many tasks the actors can hold: a gate, so that the rest wait at the head, in its order."""

from __future__ import annotations

from rollscope.runner.gates.base import CountingGate

__all__ = ["SlotsGate"]


class SlotsGate(CountingGate):
    """Opens as actors come and finish, and closes as they go."""

    def __init__(self) -> None:
        super().__init__("actors")
        self._capacity = 0
        self._held = 0

    def available(self) -> int:
        """Count what the actors could still take."""
        with self._lock:
            return self._capacity - self._held

    def take(self, count: int) -> None:
        """Count tasks in."""
        with self._lock:
            self._held += count

    def give(self, count: int) -> None:
        """Count tasks out."""
        with self._lock:
            self._held -= count

    def set_capacity(self, capacity: int) -> None:
        """Say how many tasks all actors can hold."""
        with self._lock:
            is_more = capacity > self._capacity
            self._capacity = capacity
        if is_more:
            self.wake()

    def numbers(self) -> dict[str, float | None]:
        """Give what the gate knows."""
        with self._lock:
            return {"capacity": self._capacity, "leased": self._held}
