"""Gates with a plain limit on the tasks that run: a fixed one, and one that others move."""

from rollscope.runner.gates.base import CountingGate

__all__ = ["ConcurrencyGate", "ExternalGate"]


class _LimitGate(CountingGate):
    """At most so many permits out at a time."""

    def __init__(self, name: str, limit: int | None) -> None:
        super().__init__(name)
        self._limit = _checked(limit)
        self._held = 0

    def available(self) -> int | None:
        """Count free permits: below zero after the limit was lowered, None without one."""
        with self._lock:
            return None if self._limit is None else self._limit - self._held

    def take(self, count: int) -> None:
        """Count `count` more as running."""
        with self._lock:
            self._held += count

    def give(self, count: int) -> None:
        """Count `count` fewer as running."""
        with self._lock:
            self._held -= count
        self._subscribers.wake_if_shared()

    def numbers(self) -> dict[str, float | None]:
        """Give the limit and how many permits are out."""
        with self._lock:
            return {"limit": self._limit, "held": self._held}

    def _move_limit(self, limit: int | None) -> None:
        checked = _checked(limit)
        with self._lock:
            self._limit = checked
        self.wake()


class ConcurrencyGate(_LimitGate):
    """Lets at most `limit` tasks run at a time; None for no limit."""

    def __init__(self, limit: int | None, name: str = "concurrency") -> None:
        super().__init__(name, limit)

    @property
    def limit(self) -> int | None:
        """The limit in force."""
        return self._limit

    def set_limit(self, limit: int | None) -> None:
        """Change the limit. A lower one cancels nobody: it is reached as tasks end."""
        self._move_limit(limit)


class ExternalGate(_LimitGate):
    """A limit that somebody outside moves, from any thread: cache pressure, maintenance.

    The last call counts, whoever made it; give each cause a gate of its own. Starts open.
    """

    def __init__(self, name: str = "external") -> None:
        super().__init__(name, None)

    def set(self, limit: int) -> None:
        """Let at most `limit` tasks run at a time."""
        self._move_limit(limit)

    def open(self) -> None:
        """Lift every limit."""
        self._move_limit(None)

    def close(self) -> None:
        """Let nothing start; what runs goes on."""
        self._move_limit(0)


def _checked(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise ValueError(f"a limit cannot be below zero: {limit}")
    return limit
