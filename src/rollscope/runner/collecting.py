"""Getting outcomes from a runner."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, get_args

from rollscope.errors import OutcomeTaken, RunnerClosed, UnknownTask
from rollscope.runner.base import RunnerBase
from rollscope.runner.checks import check
from rollscope.runner.waiters import Order, TaskWaiter, ThreadWaiter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from rollscope.runner.outcome import Outcome
    from rollscope.runner.waiters import Waiter

__all__ = ["Collecting", "Outcomes"]


class Collecting(RunnerBase):
    """The side of a runner that gives outcomes."""

    _next_id: int

    def wait(
        self,
        count: int = 1,
        timeout_s: float | None = None,
        order: Order = "arrival",
        where: Callable[[Outcome], bool] | None = None,
    ) -> list[Outcome]:
        """Wait for exactly so many outcomes.

        Args:
            count: How many.
            timeout_s: How long; for ever if not given. With 0, what is there is taken or nothing.
            order: `arrival`, `started`, `submitted`, `shuffled`, or `oldest_shuffled`: of all that
                are there those that started first, shuffled.
            where: Which outcomes count.

        Raises:
            WaitTimeout: Too few came in time; none was taken.
            RunnerClosed: Too few are left, and no more will come.
            RunnerBroken: The loop has died, or everything fails.
            SettingError: There is no such order.
        """
        self._check_may_block()
        if order != "arrival":
            _check_order(order)
        if count <= 0:
            return []
        if where is None and len(self._kernel.outbox.free) >= count:
            there = self._take_at_once(count, order)
            if there is not None:
                return there
        waiter = ThreadWaiter(count, order, where)
        self._join(waiter)
        return self._sleep(waiter, timeout_s, lambda: self._kernel.outbox.leave(waiter))

    async def await_outcomes(
        self,
        count: int = 1,
        timeout_s: float | None = None,
        order: Order = "arrival",
        where: Callable[[Outcome], bool] | None = None,
    ) -> list[Outcome]:
        """As `wait`, for coroutines of any loop."""
        if order != "arrival":
            _check_order(order)
        if count <= 0:
            return []
        if where is None and len(self._kernel.outbox.free) >= count:
            there = self._take_at_once(count, order)
            if there is not None:
                return there
        waiter = TaskWaiter(count, order, where)
        self._join(waiter)
        return await self._asleep(waiter, timeout_s, lambda: self._kernel.outbox.leave(waiter))

    def wait_for(self, task_id: int, timeout_s: float | None = None) -> Outcome:
        """Wait for the outcome of one task; nobody else gets it meanwhile.

        Raises:
            UnknownTask: There never was such a task.
            OutcomeTaken: Its outcome was handed to somebody.
            WaitTimeout: It did not come in time.
        """
        self._check_may_block()
        waiter = ThreadWaiter(1)
        self._reserve(task_id, waiter)
        release = self._kernel.outbox.release
        (outcome,) = self._sleep(waiter, timeout_s, lambda: release(task_id, waiter))
        return outcome

    async def await_for(self, task_id: int, timeout_s: float | None = None) -> Outcome:
        """As `wait_for`, for coroutines of any loop."""
        waiter = TaskWaiter(1)
        self._reserve(task_id, waiter)
        release = self._kernel.outbox.release
        (outcome,) = await self._asleep(waiter, timeout_s, lambda: release(task_id, waiter))
        return outcome

    def take_ready(self, limit: int | None = None) -> list[Outcome]:
        """Take what is there; never blocks."""
        with self._kernel.lock:
            taken = self._kernel.outbox.take_ready(limit)
        self._has_taken()
        return taken

    def outcomes(self) -> Outcomes:
        """Give outcomes one by one, to `for` or `async for`, until no more can come."""
        return Outcomes(self)

    def _take_at_once(self, count: int, order: Order) -> list[Outcome] | None:
        """Take what is there if it is enough and nobody is in line; None otherwise."""
        kernel = self._kernel
        lock, outbox = kernel.lock, kernel.outbox
        if not lock.try_acquire(False):
            lock.acquire()
        try:
            taken = outbox.take_at_once(count, order)
        finally:
            lock.release()
        if taken is not None and kernel.admission.bounds_outbox:
            self._has_taken()
        return taken

    # --- joining and leaving ---------------------------------------------------------------------

    def _join(self, waiter: Waiter) -> None:
        kernel = self._kernel
        lock = kernel.lock
        if not lock.try_acquire(False):
            lock.acquire()
        try:
            woken = kernel.outbox.join(waiter)
            if self._refusal is not None or kernel.error is not None or kernel.breaker.is_open:
                woken += self._turn_away(waiter)
        finally:
            lock.release()
        for one in woken:
            one.notify()
        if kernel.admission.bounds_outbox:
            self._has_taken()

    def _reserve(self, task_id: int, waiter: Waiter) -> None:
        kernel = self._kernel
        with kernel.lock:
            known = kernel.live, kernel.outbox, kernel.groups
            if not any(task_id in some for some in known):
                raise self._not_there(task_id)
            is_stuck = kernel.error is not None or kernel.breaker.is_open
            if is_stuck and task_id not in kernel.outbox:
                raise kernel.broken()
            is_there = kernel.outbox.reserve(task_id, waiter)
        if is_there:
            waiter.notify()
        self._has_taken()

    def _not_there(self, task_id: int) -> LookupError:
        if 0 <= task_id < self._next_id:
            return OutcomeTaken(f"the outcome of task {task_id} was handed over already")
        return UnknownTask(f"task {task_id} was never submitted")

    def _has_taken(self) -> None:
        """Let admission look again where it may have waited for outcomes to be fetched."""
        if self._kernel.admission.binding == "outbox":
            self._kernel.wake()

    def _turn_away(self, waiter: Waiter) -> list[Waiter]:
        """Let somebody in line go who waits in vain; give those to be woken."""
        if waiter.is_done or not self._cannot_be_met(waiter):
            return []
        self._kernel.outbox.leave(waiter)
        waiter.error = self._why_not()
        return [waiter]

    def _cannot_be_met(self, waiter: Waiter) -> bool:
        """Whether too few outcomes are there or can still come; under the lock."""
        kernel = self._kernel
        if kernel.error is not None or kernel.breaker.is_open:
            return True
        unfinished = kernel.ledger.unfinished
        return not unfinished or len(kernel.outbox.free) + unfinished < waiter.count

    def _why_not(self) -> Exception:
        kernel = self._kernel
        if kernel.error is not None or kernel.breaker.is_open:
            return kernel.broken()
        return RunnerClosed(
            f"the runner {self.name!r} is closed and has {len(kernel.outbox.free)} outcomes left"
        )

    def _sleep(
        self, waiter: ThreadWaiter, timeout_s: float | None, leave: Callable[[], BaseException]
    ) -> list[Outcome]:
        began_ns = time.monotonic_ns()
        try:
            is_in_time = waiter.sleep(timeout_s)
            while not is_in_time and timeout_s is not None:
                left_s = timeout_s - (time.monotonic_ns() - began_ns) * 1e-9
                if left_s <= 0:
                    break
                is_in_time = waiter.sleep(left_s)
        except BaseException:  # a signal handler of the host's
            self._give_up(waiter, leave)
            raise
        self._kernel.figures.consumer_blocked_ns += time.monotonic_ns() - began_ns
        if waiter.result is not None:  # the way of most
            return waiter.result
        return self._finish(waiter, leave)

    async def _asleep(
        self, waiter: TaskWaiter, timeout_s: float | None, leave: Callable[[], BaseException]
    ) -> list[Outcome]:
        try:
            await waiter.sleep(timeout_s)
        except BaseException:  # the coroutine is cancelled
            self._give_up(waiter, leave)
            raise
        return self._finish(waiter, leave)

    def _finish(self, waiter: Waiter, leave: Callable[[], BaseException]) -> list[Outcome]:
        kernel = self._kernel
        if waiter.is_done:
            return waiter.outcome()
        with kernel.lock:
            error = None if waiter.is_done else leave()
            woken = kernel.outbox.serve()
        for one in woken:
            one.notify()
        if error is not None:
            raise error
        return waiter.outcome()

    def _give_up(self, waiter: Waiter, leave: Callable[[], BaseException]) -> None:
        """Leave without taking anything, also what was handed over at the last moment."""
        kernel = self._kernel
        with kernel.lock:
            result = waiter.result
            if result is None and waiter.error is None:
                leave()
        self._put_back(result or [])

    def _put_back(self, outcomes: list[Outcome]) -> None:
        """Take outcomes back that were handed over and reached nobody."""
        kernel = self._kernel
        with kernel.lock:
            kernel.outbox.put_back(outcomes)
            count = sum(outcome.weight for outcome in outcomes)
            kernel.ledger.delivered -= count
            kernel.ledger.outbox += count
            woken = kernel.outbox.serve()
        for one in woken:
            one.notify()


def _check_order(order: Order) -> None:
    orders = get_args(Order)
    check("order", order, f"one of {', '.join(orders)}", is_right=order in orders)


class Outcomes:
    """Outcomes one by one, as they arrive, until no more can come."""

    def __init__(self, runner: Collecting) -> None:
        self._runner = runner

    def __iter__(self) -> Iterator[Outcome]:
        while not self._is_over():
            try:
                yield from self._runner.wait(1)
            except RunnerClosed:
                return

    async def __aiter__(self) -> AsyncIterator[Outcome]:
        while not self._is_over():
            try:
                (outcome,) = await self._runner.await_outcomes(1)
            except RunnerClosed:
                return
            yield outcome

    def _is_over(self) -> bool:
        runner = self._runner
        with runner._kernel.lock:
            ended = runner._refusal is not None and not runner._kernel.ledger.unfinished
            return ended and not runner._kernel.outbox.free
