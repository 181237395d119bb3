"""What all sides of a runner share: its kernel, and who may block where."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import RunnerClosed, RunnerError
from rollscope.runner.waiters import TaskWaiter, ThreadWaiter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.runner.kernel import Kernel

__all__ = ["RunnerBase"]

_LOOK_S: Final = 0.1
"""How often a thread that waits for the loop looks whether there still is one."""


class RunnerBase:
    """A runner's kernel and the ways to reach it."""

    name: str
    _kernel: Kernel
    _refusal: str | None
    """Why no task is taken, as a sentence; None when tasks are taken."""
    _is_closed: bool

    def _check_may_block(self) -> None:
        """Refuse to block the loop that everything depends on.

        Raises:
            RunnerError: This is the loop's own thread.
        """
        if threading.get_ident() == self._kernel.thread_id:
            raise RunnerError(
                "this call blocks, and would block the loop of the runner itself; "
                "await its async form there"
            )

    def _on_loop(self, act: Callable[[], Any]) -> Any:  # noqa: ANN401  (what `act` gives)
        """Do something on the loop thread and give its result, from any thread."""
        kernel = self._kernel
        if threading.get_ident() == kernel.thread_id or not kernel.is_turning:
            return act()
        done = ThreadWaiter(1)

        def do() -> None:
            try:
                done.result = [act()]
            except BaseException as error:
                done.error = error
            done.notify()

        kernel.call_loop(do)
        while not done.sleep(_LOOK_S):
            if not kernel.is_turning:
                return act()
        return done.outcome()[0]

    def _until(self, is_so: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait in a thread until something is so; false if it is not in time."""
        if not self._kernel.is_turning:
            return is_so()
        waiter = ThreadWaiter(1)
        self._kernel.call_loop(lambda: self._watch(is_so, waiter))
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while self._kernel.is_turning:  # what the loop was called for as it ended is lost
                left_s = _LOOK_S if deadline is None else deadline - time.monotonic()
                if waiter.sleep(min(_LOOK_S, left_s)):
                    return True
                if left_s <= 0:
                    break
            return is_so()
        finally:
            waiter.count = 0
            self._kernel.wake()  # which sweeps out those who wait no more

    async def _auntil(self, is_so: Callable[[], bool], timeout_s: float | None) -> bool:
        """Wait in a coroutine until something is so; false if it is not in time."""
        if not self._kernel.is_turning:
            return is_so()
        waiter = TaskWaiter(1)
        self._kernel.call_loop(lambda: self._watch(is_so, waiter))
        try:
            return await waiter.sleep(timeout_s) or is_so()
        finally:
            waiter.count = 0
            self._kernel.wake()

    def _watch(self, is_so: Callable[[], bool], waiter: ThreadWaiter | TaskWaiter) -> None:
        """Tell a waiter when something is so; a count of 0 says that it waits no more."""

        def look() -> bool:
            if not waiter.count:
                return True
            if is_so() or self._kernel.error is not None:
                waiter.result = []
                waiter.notify()
                return True
            return False

        if not look():
            self._kernel.on_change.append(look)

    def _closed(self) -> RunnerClosed:
        return RunnerClosed(self._refusal or f"the runner {self.name!r} is closed")
