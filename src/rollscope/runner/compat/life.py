"""The life of AReaL's task runner: start, pause, end, death, and what is called at the end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import RunnerClosed, WaitTimeout
from rollscope.runner.compat.exits import Exits
from rollscope.runner.compat.views import PauseFlag
from rollscope.runner.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from rollscope.runner.compat.contract import Contract

__all__ = ["TaskRunnerLife"]

_NO_LIMIT: Final = 2**62


class TaskRunnerLife:
    """The side of a task runner that starts and ends it; each life has a runner of its own."""

    def __init__(self, max_queue_size: int, contract: Contract) -> None:
        self.max_queue_size = max_queue_size
        self.logger = logging.getLogger("rollscope.runner")
        self._contract = contract
        self._lock = threading.Lock()
        self._runner: Runner | None = None
        self._destroyed: Runner | None = None
        """The runner that `destroy` has seen to, or is about to."""
        self._exits = Exits()
        self._forget_tasks()
        self.exiting = threading.Event()
        self.paused = PauseFlag(self._pause_runner, self._resume_runner)

    def _forget_tasks(self) -> None:
        self._next_id = 0
        self._ours: dict[int, int] = {}
        """Our id by the runner's: a caller may use an id again while its first result waits."""
        self._theirs: dict[int, list[int]] = {}
        """The runner's ids of what was not fetched, by ours."""

    def _fetched(self, theirs: Iterable[int]) -> list[int]:
        """Forget tasks whose results were handed over; give our ids of them."""
        ids = []
        with self._lock:
            for one in theirs:
                task_id = self._ours.pop(one)
                waiting = self._theirs[task_id]
                waiting.remove(one)
                if not waiting:
                    del self._theirs[task_id]
                ids.append(task_id)
        return ids

    @property
    def thread(self) -> threading.Thread | None:
        """The thread that runs the loop; None before `initialize`."""
        return None if self._runner is None else self._runner._thread

    def initialize(self, logger: logging.Logger | None = None) -> None:
        """Start the thread, with nothing left of an earlier life; returns once its loop runs."""
        if logger is not None:
            self.logger = logger
        if self._runner is not None and self._runner._refusal is None and not self._is_dead():
            self.logger.warning("AsyncTaskRunner runs already; the second initialize does nothing")
            return
        is_bounded = self._contract.queue_bound == "queued"
        runner = Runner(
            name="task-runner",
            inbox=self.max_queue_size if is_bounded else _NO_LIMIT,
            outbox=self.max_queue_size,
            clock=time.monotonic_ns,
            breaker=None,
        )
        with self._lock:
            self._forget_tasks()
            self.exiting.clear()
            self.paused.clear()
            self._runner = runner
        runner.on_exit(lambda: self._exits.run_cleanups(self.logger))
        runner.start()
        if runner._kernel.loop is not None:
            self._exits.belong_to(runner._kernel.loop)

    def destroy(self, timeout: float = 30.0) -> list[int]:
        """End everything now; gives the ids of tasks that were not finished.

        Raises:
            RuntimeError: One of its own tasks calls it, and would wait for itself.
        """
        runner = self._runner
        if runner is not None:
            runner._check_may_block()
        self.exiting.set()
        with self._lock:
            is_first = runner is not self._destroyed
            self._destroyed = runner
        if runner is None or not is_first:
            self.paused.clear()
            return []
        try:
            return self._end(runner, timeout)
        except BaseException:  # Ctrl-C: the next call is to end what this one has left
            self._destroyed = None
            raise

    def _end(self, runner: Runner, timeout: float) -> list[int]:
        began = time.monotonic()
        self._run_hooks(runner, timeout)
        # Before the end makes outcomes of what it cancels: nobody waits for those.
        runner._let_waiters_go()
        report = runner.close(max(0.0, timeout - (time.monotonic() - began)))
        self.paused.clear()
        if runner._thread is not None and runner._thread.is_alive():
            self.logger.warning("the thread of AsyncTaskRunner still runs after %g s", timeout)
        cut = []
        for theirs in report.unfinished:
            with suppress(LookupError, WaitTimeout, RunnerClosed):  # a `wait` may have had it
                cut.append(runner.wait_for(theirs, 0).id)
        return self._fetched(cut)

    def _run_hooks(self, runner: Runner, timeout: float) -> None:
        loop = runner._kernel.loop
        if not self._exits.hooks or loop is None or self._is_dead():
            return
        done = asyncio.run_coroutine_threadsafe(self._exits.run_hooks(self.logger), loop)
        try:
            done.result(timeout)
        except TimeoutError:
            done.cancel()
            self.logger.warning("shutdown hooks did not end within %g s", timeout)

    def register_loop_cleanup(
        self, callback: Callable[[], Any], *, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Have something called, sync or async, at the end, after tasks were cancelled.

        Args:
            callback: Takes no arguments; the last one given is called first.
            loop: Kept for callers that name it; the runner has one loop only.
        """
        self._exits.cleanups.append(callback)

    def unregister_loop_cleanup(
        self, callback: Callable[[], Any], *, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        """Take back what `register_loop_cleanup` was given."""
        self._exits.unregister(callback)

    def register_shutdown_hook(self, async_hook: Callable[[], Awaitable[Any]]) -> None:
        """Have something called at the end, before tasks are cancelled."""
        if self.exiting.is_set():
            self.logger.warning("AsyncTaskRunner is exiting; %r will not be called", async_hook)
            return
        self._exits.hooks.append(async_hook)

    def _is_dead(self) -> bool:
        runner = self._runner
        return runner is not None and runner._kernel.error is not None

    def _check_thread_health(self) -> None:
        if self._is_dead():
            assert self._runner is not None  # noqa: S101  (what is dead has lived)
            raise RuntimeError(
                "AsyncTaskRunner thread has died due to an exception. "
                "No further tasks can be processed."
            ) from self._runner._kernel.error

    def pause(self) -> None:
        """Start nothing new; what runs goes on, and its results are delivered."""
        self.paused.set()

    def resume(self) -> None:
        """Go on, however often it was paused."""
        self.paused.clear()

    def _pause_runner(self) -> None:
        if self._runner is not None:
            self._runner.pause(owner=self)

    def _resume_runner(self) -> None:
        if self._runner is not None:
            self._runner.resume(owner=self)
