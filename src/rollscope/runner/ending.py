"""How a runner ends: drained, or closed with a report."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from rollscope.errors import RunnerError
from rollscope.runner.base import RunnerBase
from rollscope.runner.checks import check
from rollscope.runner.guard import log
from rollscope.runner.outcome import Reason, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CloseReport", "DrainMode", "DrainReport", "Ending"]

DrainMode = Literal["finish", "checkpoint", "cancel"]

_PATIENCE_S: Final = 0.05
"""How long those who wait may still get what the end itself makes, before they are let go."""
_RAISED: Final = (Exception, asyncio.CancelledError, SystemExit, KeyboardInterrupt)
"""What is logged of a callback: who awaits what it has cancelled itself gets a cancellation too."""


class DrainReport(msgspec.Struct, frozen=True):
    """What became of the work."""

    is_drained: bool
    """False if work was left when the time was up."""
    unfinished: int
    undelivered: int
    outcomes: dict[str, int]
    """Over the life of the runner, by status."""


class CloseReport(msgspec.Struct, frozen=True):
    """What was not finished."""

    unfinished: list[int]
    """Ids of tasks that were queued or running; each has an outcome that says `closed`."""
    undelivered: int
    """Outcomes that nobody has fetched; they stay readable."""
    zombies: int
    """Tasks that did not end when told to."""


class Ending(RunnerBase):
    """The side of a runner that ends it."""

    _thread: threading.Thread | None
    _exit_callbacks: list[Callable[[], Any]]
    _is_stopping: bool
    """Whether the loop is being stopped, or was; set by its thread."""
    _watcher: Any

    def on_exit(self, act: Callable[[], Any]) -> None:
        """Have something done, sync or async, when the runner ends; the last one given first."""
        self._exit_callbacks.append(act)

    # --- draining --------------------------------------------------------------------------------

    def drain(self, timeout_s: float | None = None, mode: DrainMode = "finish") -> DrainReport:
        """Take no more tasks and let work end.

        Args:
            timeout_s: How long that may take; for ever if not given.
            mode: `finish` lets everything run to its end, `checkpoint` ends what is queued and
                stops what runs with its last checkpoint, `cancel` ends all.

        Raises:
            SettingError: There is no such mode.
        """
        self._check_may_block()
        self._start_drain(mode)
        is_drained = self._until(self._has_ended, timeout_s)
        return self._drained(is_drained=is_drained)

    async def adrain(
        self, timeout_s: float | None = None, mode: DrainMode = "finish"
    ) -> DrainReport:
        """As `drain`, for coroutines."""
        self._start_drain(mode)
        is_drained = await self._auntil(self._has_ended, timeout_s)
        return self._drained(is_drained=is_drained)

    @contextmanager
    def drain_on_signal(
        self, budget_s: float, signals: tuple[int, ...] = (signal.SIGTERM,)
    ) -> Iterator[None]:
        """Drain when a signal comes, then let the handler that was there before have its turn."""

        def handle(number: int, frame: Any) -> None:  # noqa: ANN401
            restore()
            threading.Thread(
                target=self._drain_then_raise, args=(budget_s, number), daemon=True
            ).start()

        before: dict[int, Any] = {}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        try:
            for number in signals:
                before[number] = signal.signal(number, handle)
            yield
        finally:
            restore()

    @property
    def _draining(self) -> str:
        return f"the runner {self.name!r} is being drained"

    def _drain_then_raise(self, budget_s: float, number: int) -> None:
        try:
            self.drain(budget_s)
        finally:
            # To the thread that handlers run in: it may wait for something that only this ends.
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    def _refuse(self, why: str) -> None:
        kernel = self._kernel
        with kernel.lock:
            if self._refusal in (None, self._draining):
                self._refusal = why
            kernel.closed = self._closed
            hopeless = kernel.outbox.fail_all(self._closed) if self._has_ended() else []
        for waiter in hopeless:
            waiter.notify()

    def _start_drain(self, mode: DrainMode) -> None:
        modes = get_args(DrainMode)
        check("mode", mode, f"one of {', '.join(modes)}", is_right=mode in modes)
        self._refuse(self._draining)
        self._kernel.call_loop(lambda: self._begin_drain(mode))

    def _begin_drain(self, mode: DrainMode) -> None:
        kernel = self._kernel
        if mode != "finish":
            kernel.stops.end_queued(Status.CANCELLED, Reason.DRAINED)
            for task in kernel.running_tasks():
                kernel.stops.stop(task, Status.CANCELLED, Reason.DRAINED)
        kernel.leftovers.cancel_orphans()
        kernel.signal()

    def _has_ended(self) -> bool:
        return not self._kernel.ledger.unfinished

    def _drained(self, *, is_drained: bool) -> DrainReport:
        kernel = self._kernel
        kernel.call_loop(kernel.leftovers.cancel_orphans)  # also those of the tasks that ended last
        by_status: dict[str, int] = {}
        for (status, _), count in kernel.figures.verdicts().items():
            by_status[str(status)] = by_status.get(str(status), 0) + count
        with kernel.lock:
            ledger = kernel.ledger
            return DrainReport(is_drained, ledger.unfinished, ledger.outbox, by_status)

    # --- closing ---------------------------------------------------------------------------------

    def close(self, timeout_s: float = 30.0) -> CloseReport:
        """End now: what waits, what runs, the loop; what was finished stays readable.

        Raises:
            RunnerError: The runner is on the caller's loop; `await aclose()` ends that.
        """
        thread, kernel = self._thread, self._kernel
        is_over = self._is_closed or kernel.is_abandoned
        if thread is None and kernel.loop is not None and not is_over:
            raise RunnerError("this runner is on a loop of the caller's; await its aclose()")
        if thread is None or not thread.is_alive() or self._is_closed:
            self._refuse(f"the runner {self.name!r} is closed")
            self._is_closed = True
            with kernel.lock:
                left = list(kernel.live) if kernel.is_abandoned else []
            if left:
                kernel.is_over = True
                kernel.end_all(Status.CANCELLED, Reason.CLOSED, None, "the loop has ended")
            self._watcher.stop()
            self._after_close()
            return self._report(left)
        self._check_may_block()
        deadline = time.monotonic() + timeout_s
        self._refuse(f"the runner {self.name!r} is closed")
        with kernel.lock:
            unfinished = list(kernel.live)
        kernel.call_loop(self._begin_close)
        if not self._until(self._has_ended, min(_PATIENCE_S, timeout_s)):
            self._let_waiters_go()
            self._until(self._has_ended, deadline - time.monotonic())
        if not self._has_ended():
            self._end_rest()
        self._let_waiters_go()
        self._is_closed = True
        kernel.call_loop(self._stop_loop)
        thread.join(max(0.1, deadline - time.monotonic()))
        self._watcher.stop()
        self._after_close()
        return self._report(unfinished)

    def _end_rest(self) -> None:
        """Give up what does not end: on the loop, or without it if that does not turn."""
        kernel = self._kernel
        given_up = threading.Event()

        def give_up() -> None:
            self._give_up_rest()
            given_up.set()

        kernel.call_loop(give_up)
        if not given_up.wait(_PATIENCE_S * 4):
            kernel.is_over = True
            kernel.end_all(Status.CANCELLED, Reason.CLOSED, None, "the loop is blocked")

    async def aclose(self, timeout_s: float = 30.0) -> CloseReport:
        """As `close`, for coroutines of any loop but that of the runner's own thread."""
        kernel, thread = self._kernel, self._thread
        if thread is not None and thread.is_alive():
            self._check_may_block()
            return await asyncio.to_thread(Ending.close, self, timeout_s)
        if self._is_closed or kernel.loop is None:
            return self._report([])
        self._refuse(f"the runner {self.name!r} is closed")
        with kernel.lock:
            unfinished = list(kernel.live)
        self._begin_close()
        if not await self._auntil(self._has_ended, min(_PATIENCE_S, timeout_s)):
            self._let_waiters_go()
            await self._auntil(self._has_ended, timeout_s)
        self._give_up_rest()
        self._let_waiters_go()
        self._is_closed = True
        await self._run_exit_callbacks()
        kernel.leftovers.cancel_orphans()
        kernel.trace.close()
        kernel.unbind()
        self._watcher.stop()
        self._after_close()
        return self._report(unfinished)

    def _after_close(self) -> None:
        """Do what is left to do when all has ended."""

    def _begin_close(self) -> None:
        kernel = self._kernel
        kernel.stops.end_queued(Status.CANCELLED, Reason.CLOSED)
        for task in kernel.running_tasks():
            kernel.stops.stop(task, Status.CANCELLED, Reason.CLOSED)
        kernel.leftovers.cancel_orphans()

    def _give_up_rest(self) -> None:
        for task in self._kernel.running_tasks():
            self._kernel.stops.abandon(task)

    def _let_waiters_go(self) -> None:
        kernel = self._kernel
        with kernel.lock:
            released = kernel.outbox.fail_all(self._closed)
        for waiter in released:
            waiter.notify()

    def _stop_loop(self) -> None:
        if self._is_stopping:
            return  # by another close, or by somebody else, and its thread is ending it
        self._is_stopping = True
        loop = self._kernel.loop
        assert loop is not None  # noqa: S101  (this runs on it)

        async def end() -> None:
            await self._run_exit_callbacks()
            self._kernel.leftovers.cancel_orphans()
            self._kernel.trace.close()
            loop.stop()

        self._last = asyncio.Task(end(), loop=loop)

    async def _run_exit_callbacks(self) -> None:
        while self._exit_callbacks:
            act = self._exit_callbacks.pop()
            try:
                given = act()
                if inspect.isawaitable(given):
                    await given
            except _RAISED:
                myself = asyncio.current_task()
                if myself is not None and myself.cancelling():
                    raise  # nobody waits for this end any more
                log.exception("what was to be done at the end raised an error")

    def _report(self, unfinished: list[int]) -> CloseReport:
        kernel = self._kernel
        with kernel.lock:
            return CloseReport(unfinished, len(kernel.outbox), len(kernel.leftovers.zombies))
