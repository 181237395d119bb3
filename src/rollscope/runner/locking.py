"""The lock of a runner: one that does not make its threads march in step.

With the interpreter lock, a thread that sleeps for a plain lock is given it as soon as it is
released, long before it gets to run; the thread that let go runs on, wants the lock again, and has
to sleep in turn. From then on every use costs a change of threads, a hundred times the work done
under it. Here whoever finds the lock taken steps aside and tries again, so that it is never owned
by one who does not run.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["BargingLock"]

_TRIES: Final = 16
"""After so many, whoever has the lock is slow, as with a caller's own condition; sleep is due."""


class BargingLock:
    """A lock for `with`; where each microsecond counts, see `try_acquire`."""

    __slots__ = ("_lock", "release", "try_acquire")

    def __init__(self) -> None:
        """Begin free."""
        self._lock = threading.Lock()
        self.try_acquire = self._lock.acquire
        """Without a method call of ours: `if not lock.try_acquire(False): lock.acquire()`."""
        self.release = self._lock.release

    def acquire(self) -> None:
        """Take the lock."""
        for _ in range(_TRIES):
            if self._lock.acquire(False):
                return
            time.sleep(0)
        self._lock.acquire()

    def __enter__(self) -> None:
        """Take the lock."""
        if not self.try_acquire(False):
            self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of it."""
        self.release()
