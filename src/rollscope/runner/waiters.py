"""Those who wait for outcomes: threads, and coroutines of any loop."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.runner.outcome import Outcome

__all__ = ["Order", "TaskWaiter", "ThreadWaiter", "Waiter"]

Order = Literal["arrival", "started", "submitted", "shuffled", "oldest_shuffled"]
"""In which order outcomes are handed over."""


class Waiter:
    """Somebody who waits for a number of outcomes, or for the one of an id."""

    __slots__ = ("count", "error", "order", "result", "where")

    def __init__(
        self,
        count: int,
        order: Order = "arrival",
        where: Callable[[Outcome], bool] | None = None,
    ) -> None:
        self.count = count
        self.order: Order = order
        self.where = where
        self.result: list[Any] | None = None
        self.error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has what it waited for, or an error."""
        return self.result is not None or self.error is not None

    def notify(self) -> None:
        """Wake whoever waits; called once, after `result` or `error` is set."""
        raise NotImplementedError

    def outcome(self) -> list[Any]:
        """Give what was waited for, or raise what came instead."""
        if self.error is not None:
            raise self.error
        assert self.result is not None  # noqa: S101  (asked only when it is done)
        return self.result


class ThreadWaiter(Waiter):
    """A thread that waits; a bare lock is the quickest way to wake one."""

    __slots__ = ("_gate",)

    def __init__(
        self,
        count: int,
        order: Order = "arrival",
        where: Callable[[Outcome], bool] | None = None,
    ) -> None:
        super().__init__(count, order, where)
        self._gate = threading.Lock()
        self._gate.acquire()

    def notify(self) -> None:
        """Wake the thread."""
        self._gate.release()

    def sleep(self, timeout_s: float | None) -> bool:
        """Sleep until there is something; false if that was not in time."""
        if timeout_s is None:
            return self._gate.acquire()
        return self._gate.acquire(timeout=min(max(timeout_s, 0.0), threading.TIMEOUT_MAX))


class TaskWaiter(Waiter):
    """A coroutine that waits, on whichever loop it runs."""

    __slots__ = ("_future", "_loop")

    def __init__(
        self,
        count: int,
        order: Order = "arrival",
        where: Callable[[Outcome], bool] | None = None,
    ) -> None:
        super().__init__(count, order, where)
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def notify(self) -> None:
        """Wake the coroutine."""
        with suppress(RuntimeError):  # its loop was closed meanwhile: nobody waits there any more
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def sleep(self, timeout_s: float | None) -> bool:
        """Sleep until there is something; false if that was not in time."""
        if timeout_s is None:
            await self._future
            return True
        now = _clock_of(self._loop)
        deadline = now() + timeout_s
        while True:
            handle = self._loop.call_later(max(0.0, deadline - now()), self._wake)
            try:
                await self._future
            finally:
                handle.cancel()
            if self.is_done or now() >= deadline:
                return self.is_done
            self._future = self._loop.create_future()  # the loop's timer was early, by a rounding


def _clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Give the clock that time limits on a loop go by: uvloop's own is up to a tick behind."""
    is_real = abs(loop.time() - time.monotonic()) < _TICK_S
    return time.monotonic if is_real else loop.time


_TICK_S: Final = 0.1
