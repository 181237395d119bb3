"""Ending tasks that have not ended by themselves, wherever they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rollscope.runner.outcome import Reason, Status
from rollscope.runner.task import BACKOFF, DONE, QUEUED, RUNNING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task

__all__ = ["Stops"]


class Stops:
    """Stops tasks of one kernel, on its loop thread."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def stop(self, task: Task, status: Status, reason: Reason) -> bool:
        """End a task wherever it is; false if it has ended or was told to end already."""
        if task.state in (QUEUED, BACKOFF):
            self.end_waiting([task], status, reason)
            return True
        if task.state != RUNNING:
            return False
        if task.stop is not None:
            if task.rare is None or not task.rare.is_aborted:
                return False
            task.rare.is_aborted = False  # this time it is for good
            task.rare.stop = (status, reason)
            return True
        if task.finished_ns is not None:  # it has ended, in this very turn
            self._kernel.free()
            return task.state == BACKOFF and bool(self.end_waiting([task], status, reason))
        task.more().stop = (status, reason)
        self._kernel.limits.watch_clean_up(task)
        self._kernel.launcher.stop(task)
        return True

    def abort(self, task: Task) -> None:
        """Stop a running task for it to start again later."""
        if task.finished_ns is None and self.stop(task, Status.CANCELLED, Reason.REQUESTED):
            task.more().is_aborted = True

    def end_waiting(self, tasks: Iterable[Task], status: Status, reason: Reason) -> int:
        """End tasks that wait for a place or for their next attempt; say how many."""
        kernel = self._kernel
        kernel.read_inbox()
        ended: list[Task] = []
        queued = 0
        now_ns = kernel.clock()
        for task in tasks:
            if task.state not in (QUEUED, BACKOFF):
                continue
            kernel.limits.forget(task, ends=True)
            if task.state == QUEUED:
                task.state = DONE
                queued += 1
                kernel.queues.forget(task)
            task.end(status, reason, failure=task.failure)
            task.finished_ns = now_ns
            if task.attempt_ns is None:
                kernel.trace.ended_unstarted(task)
            ended.append(task)
        kernel.end(ended, queued=queued, backoff=len(ended) - queued)
        kernel.notify()
        kernel.signal()
        return len(ended)

    def end_queued(self, status: Status, reason: Reason) -> int:
        """End every task that has not started; say how many."""
        kernel = self._kernel
        with kernel.lock:
            waiting = [task for task in kernel.live.values() if task.state in (QUEUED, BACKOFF)]
        return self.end_waiting(waiting, status, reason)

    def abandon(self, task: Task) -> None:
        """Give a task up that does not end: its outcome is made, its place is freed."""
        if task.state != RUNNING or task.finished_ns is not None:
            return
        leftovers = self._kernel.leftovers
        attempt = replace(task, state=DONE)
        if task.rare is not None and task.rare.is_aborted:
            leftovers.zombies.add(attempt)
        else:
            if task.stop is not None:
                task.end(*task.stop, detail="it did not end when told to")
            else:
                task.more().detail = "what it left behind did not end when told to"
            leftovers.zombies.add(task)
        self._kernel.end_now(task)
        if task in leftovers.zombies:
            if task.state == DONE:
                task.runs_in = attempt.runs_in  # where it is can still be shown
            else:  # it starts again, beside this attempt
                leftovers.zombies.discard(task)
                leftovers.zombies.add(attempt)
        self._kernel.signal()
