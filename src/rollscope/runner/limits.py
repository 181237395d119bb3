"""Time limits of tasks: in the queue, in all, of an attempt, without progress, of cleaning up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollscope.runner.checks import check_seconds
from rollscope.runner.outcome import Reason, Status
from rollscope.runner.task import DONE, QUEUED, RUNNING

if TYPE_CHECKING:
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task

__all__ = ["Limits"]

_LOOKS: Final = 4
"""How often progress is looked for within a no-progress limit: phases are seen only by looking."""


class Limits:
    """Watches over limits with the kernel's timers."""

    def __init__(self, kernel: Kernel, cleanup_s: float | None) -> None:
        self._kernel = kernel
        self._cleanup_s = check_seconds("cleanup_s", cleanup_s)

    def active_ns(self) -> int:
        """Read a clock that stands still while the runner is paused or its loop is held up."""
        kernel = self._kernel
        return kernel.clock() - kernel.pauses.paused_ns() - kernel.timers.late_ns

    def watch_queue(self, task: Task) -> None:
        """Begin to count how long it waits."""
        limit_s = task.options.queue_timeout_s
        assert limit_s is not None  # noqa: S101  (asked for those that have one)
        due_ns = task.submitted_ns + int(limit_s * 1e9)
        self._at(task, due_ns, lambda: self._expire_queued(task))

    def watch(self, task: Task) -> None:
        """Begin to count for an attempt that has just started."""
        options = task.options
        if options.timeout_s is not None and task.started_ns is not None:
            rare = task.more()
            if rare.deadline is None:  # it counts on while the task waits for its next attempt
                due_ns = task.started_ns + int(options.timeout_s * 1e9)
                rare.deadline = self._kernel.timers.at(
                    due_ns, lambda: self._expire(task, Reason.DEADLINE)
                )
        if options.attempt_timeout_s is not None and task.attempt_ns is not None:
            due_ns = task.attempt_ns + int(options.attempt_timeout_s * 1e9)
            self._at(task, due_ns, lambda: self._expire(task, Reason.DEADLINE))
        if options.stall_s is not None:
            task.more().progress_ns = self.active_ns()
            self._look_again(task, int(options.stall_s * 1e9))

    def watch_clean_up(self, task: Task) -> None:
        """Begin to count for a task that was told to stop."""
        if self._cleanup_s is None:
            return
        kernel = self._kernel
        due_ns = kernel.clock() + int(self._cleanup_s * 1e9)
        self._at(task, due_ns, lambda: kernel.stops.abandon(task))

    def forget(self, task: Task, *, ends: bool = False) -> None:
        """Stop counting: the attempt has ended, or the whole task."""
        rare = task.rare
        if rare is None:
            return
        for timer in rare.entries:
            self._kernel.timers.take_back(timer)
        rare.entries.clear()
        if ends and rare.deadline is not None:
            self._kernel.timers.take_back(rare.deadline)

    def _at(self, task: Task, due_ns: int, act: object) -> None:
        task.more().entries.append(self._kernel.timers.at(due_ns, act))  # type: ignore[arg-type]

    def _expire_queued(self, task: Task) -> None:
        if task.state == QUEUED:
            self._kernel.stops.stop(task, Status.TIMEOUT, Reason.QUEUE_DEADLINE)

    def _expire(self, task: Task, reason: Reason) -> None:
        if task.state != DONE:
            self._kernel.stops.stop(task, Status.TIMEOUT, reason)

    def _look_again(self, task: Task, stall_ns: int) -> None:
        now_ns = self._kernel.clock()
        self._at(task, now_ns + stall_ns // _LOOKS, lambda: self._look(task, stall_ns))

    def _look(self, task: Task, stall_ns: int) -> None:
        """See whether a task has got on: said so itself, or entered or left a phase."""
        if task.state != RUNNING or task.stop is not None:
            return
        rare = task.more()
        seen = self._kernel.trace.innermost(task)
        if seen != rare.seen_span:
            rare.seen_span, rare.progress_ns = seen, self.active_ns()
        rare.entries = [timer for timer in rare.entries if timer.act is not None]
        if not self._kernel.pauses.is_paused and self.active_ns() - rare.progress_ns >= stall_ns:
            self._expire(task, Reason.NO_PROGRESS)
        else:
            self._look_again(task, stall_ns)
