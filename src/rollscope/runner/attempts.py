"""Starting a task again: after a failure, after a pause, after what executed it has died."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollscope.runner.outcome import Reason, Status
from rollscope.runner.settling import attempt_of
from rollscope.runner.task import BACKOFF, QUEUED

if TYPE_CHECKING:
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task

__all__ = ["Attempts"]


class Attempts:
    """Decides which tasks get another attempt, and lets them wait for it."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def follow(self, task: Task) -> bool:
        """Say whether an attempt that has ended is followed by another, and see to it."""
        kernel, failure = self._kernel, task.failure
        if task.stop is not None:
            return self._follow_abort(task)
        if failure is None or task.status is not Status.FAILED:
            return False
        delay_s = kernel.retry.delay_s(task, failure.kind)
        if delay_s is None:
            return False
        kernel.breaker.note(task.status, failure)
        kernel.figures.retries += 1
        self._begin_next(task)
        task.state = BACKOFF
        task.more().entries.append(kernel.timers.after(delay_s, lambda: self._come_back(task)))
        return True

    def _follow_abort(self, task: Task) -> bool:
        """Let a task that a pause has aborted start again, from its checkpoint."""
        if task.rare is None or not task.rare.is_aborted:
            return False
        task.rare.is_aborted = False
        self._begin_next(task)
        task.rare.stop = None
        task.state = BACKOFF
        self._kernel.call_loop(lambda: self._come_back(task))
        return True

    def _begin_next(self, task: Task) -> None:
        kernel = self._kernel
        rare = task.more()
        rare.history.append(attempt_of(task))
        if task.attempt_ns is not None and task.finished_ns is not None:
            rare.execution_ns += task.finished_ns - task.attempt_ns
        kernel.trace.attempt_ended(task)
        rare.attempt += 1
        if rare.started_ns is None:
            rare.started_ns = task.attempt_ns
        task.attempt_ns = task.finished_ns = task.runs_in = None
        task.end(Status.OK, Reason.ACCEPTED)
        if kernel.keeper is not None:
            kernel.keeper.attempted(task)

    def _come_back(self, task: Task) -> None:
        """Let a task wait for a place again, before all that were never started."""
        if task.state != BACKOFF:
            return
        kernel = self._kernel
        task.state = QUEUED
        with kernel.lock:
            kernel.ledger.backoff -= 1
            kernel.ledger.queued += 1
        kernel.queues.push(task, front=True)
        kernel.signal()

    def requeue(self, task: Task, *, counts: bool = True) -> None:
        """Start a running task again elsewhere: what executed it has died.

        Args:
            task: The task, whose last attempt is described already.
            counts: False if that attempt never began.
        """
        kernel = self._kernel
        kernel.limits.forget(task)
        kernel.figures.running_changed(kernel.running, kernel.clock())
        kernel.running -= 1
        kernel.queues.ended(task)
        kernel.admission.release(task, None)
        kernel.admission.flush(kernel.queues)
        if counts:
            self._begin_next(task)
        else:
            task.attempt_ns = task.finished_ns = None
        if task.rare is not None:
            task.rare.stop = None
        task.state = QUEUED
        with kernel.lock:
            kernel.ledger.running -= 1
            kernel.ledger.queued += 1
        kernel.queues.push(task, front=True)
        kernel.signal()
