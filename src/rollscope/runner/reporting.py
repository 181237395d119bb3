"""What a runner tells about itself: ledger, health, statistics, and where each task hangs."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from rollscope.instrument.stacks import await_chain, call_chain
from rollscope.runner.base import RunnerBase
from rollscope.runner.ledger import Ledger
from rollscope.runner.stats import Stats
from rollscope.runner.task import BACKOFF, FREED, QUEUED, RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.runner.task import Task
    from rollscope.runner.watcher import Watcher

__all__ = ["Health", "Reporting", "TaskReport"]

HealthState = Literal["starting", "running", "paused", "draining", "degraded", "broken", "closed"]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a runner is."""

    state: HealthState
    error: str | None
    loop_lag_s: float
    blocked_for_s: float
    zombies: int
    """Tasks that did not end when told to."""
    orphans: int
    """Asyncio tasks that outlive the task that started them."""
    oldest_queued_s: float
    oldest_running_s: float
    since_progress_s: float
    """Since the last task ended."""


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """One task, as it is now."""

    id: int
    state: Literal["queued", "backoff", "running", "zombie", "orphan"]
    """An orphan is an asyncio task that the task of this id has started and left behind."""
    tier: str
    group: object | None
    attempt: int
    age_s: float
    """Since it started, or since its submit if it has not."""
    since_progress_s: float | None
    phase: str | None
    """The innermost span that it is in."""
    frames: list[str]
    """`file:line function` through its awaits, outermost first."""
    children: int


def _longest_first(shown: tuple[Task, Any]) -> tuple[bool, int]:
    started_ns = shown[0].started_ns
    return started_ns is None, started_ns or shown[0].submitted_ns


class Reporting(RunnerBase):
    """The side of a runner that tells about it."""

    _watcher: Watcher
    _thread: threading.Thread | None
    _clock: Callable[[], int]

    def ledger(self) -> Ledger:
        """Count where all accepted tasks are, at one moment."""
        with self._kernel.lock:
            return replace(self._kernel.ledger)

    def health(self) -> Health:
        """Say how the runner is."""
        kernel, now_ns = self._kernel, self._clock()
        with kernel.lock:
            live = list(kernel.live.values())
        queued = [task.submitted_ns for task in live if task.state in (QUEUED, BACKOFF)]
        running = [
            task.started_ns
            for task in live
            if task.started_ns is not None and task.state not in (QUEUED, BACKOFF)
        ]
        return Health(
            state=self._state(),
            error=self._error_text(),
            loop_lag_s=self._watcher.lag_s,
            blocked_for_s=self._watcher.blocked_for_s(),
            zombies=len(kernel.leftovers.zombies),
            orphans=len(kernel.leftovers.orphans()),
            oldest_queued_s=(now_ns - min(queued, default=now_ns)) * 1e-9,
            oldest_running_s=(now_ns - min(running, default=now_ns)) * 1e-9,
            since_progress_s=(now_ns - kernel.figures.ended_ns) * 1e-9,
        )

    def _state(self) -> HealthState:
        kernel = self._kernel
        if kernel.error is not None or kernel.breaker.is_open:
            return "broken"
        if self._is_closed:
            return "closed"
        if kernel.loop is None:
            return "starting"
        if self._refusal is not None:
            return "draining"
        if kernel.leftovers.zombies or self._watcher.blocked_since is not None:
            return "degraded"
        return "paused" if kernel.pauses.is_paused else "running"

    def _error_text(self) -> str | None:
        kernel = self._kernel
        if kernel.error is not None:
            return repr(kernel.error)
        return kernel.breaker.explain() if kernel.breaker.is_open else None

    def raise_if_unhealthy(self) -> None:
        """Raise if nothing can go on.

        Raises:
            RunnerBroken: The loop has died, or everything fails.
        """
        if self._state() == "broken":
            raise self._kernel.broken()

    def reset_breaker(self) -> None:
        """Let work go on after the breaker has stopped it."""
        self._on_loop(self._kernel.breaker.reset)
        self._kernel.wake()

    def inspect(
        self, limit: int = 20, where: Callable[[TaskReport], bool] | None = None
    ) -> list[TaskReport]:
        """Show the tasks that have run the longest and where each hangs; from any thread."""
        kernel, now_ns = self._kernel, self._clock()
        with kernel.lock:
            live = [*kernel.live.values(), *kernel.leftovers.zombies]
        shown: list[tuple[Task, Any]] = [(task, None) for task in live]
        shown += ((task, orphan) for orphan, task in kernel.leftovers.orphans().items())
        shown.sort(key=_longest_first)
        if where is None:
            shown = shown[:limit]
        reports = [
            self._report_task(task, now_ns)
            if orphan is None
            else self._report_orphan(task, orphan, now_ns)
            for task, orphan in shown
        ]
        return [one for one in reports if where is None or where(one)][:limit]

    def _report_task(self, task: Task, now_ns: int) -> TaskReport:
        kernel, rare = self._kernel, task.rare
        if task in kernel.leftovers.zombies:
            state = "zombie"
        elif task.state in (RUNNING, FREED):
            state = "running"
        else:
            state = "backoff" if task.state == BACKOFF else "queued"
        progress_s = None
        if rare is not None and rare.progress_ns:
            progress_s = (kernel.limits.active_ns() - rare.progress_ns) * 1e-9
        return TaskReport(
            id=task.id,
            state=state,  # type: ignore[arg-type]  # one of these four
            tier=task.tier,
            group=task.group,
            attempt=task.attempt,
            age_s=(now_ns - (task.started_ns or task.submitted_ns)) * 1e-9,
            since_progress_s=progress_s,
            phase=kernel.trace.phase_of(task),
            frames=self._frames_of(task.runs_in, ours=1),
            children=0 if rare is None else len(rare.children),
        )

    def _report_orphan(self, owner: Task, orphan: Any, now_ns: int) -> TaskReport:  # noqa: ANN401
        return TaskReport(
            id=owner.id,
            state="orphan",
            tier=owner.tier,
            group=owner.group,
            attempt=owner.attempt,
            age_s=(now_ns - (owner.started_ns or owner.submitted_ns)) * 1e-9,
            since_progress_s=None,
            phase=None,
            frames=self._frames_of(orphan, ours=0),
            children=0,
        )

    def _frames_of(self, runs_in: Any, *, ours: int) -> list[str]:  # noqa: ANN401
        """Show where code hangs, without the outermost frames, which are ours."""
        if runs_in is None or not hasattr(runs_in, "get_coro"):
            return []
        coroutine = runs_in.get_coro()
        if getattr(coroutine, "cr_running", False):  # it blocks the loop, or we are called by it
            frame = sys._current_frames().get(self._kernel.thread_id or 0)
            return [] if frame is None else call_chain(frame)
        return await_chain(coroutine)[ours:]

    def stats(self) -> Stats:
        """Give the runner's figures."""
        kernel, now_ns = self._kernel, self._clock()
        figures, admission = kernel.figures, kernel.admission
        binding_s = {name: spent * 1e-9 for name, spent in admission.binding_ns.copy().items()}
        binding = admission.binding
        if binding is not None:
            since_s = (now_ns - admission.binding_since_ns) * 1e-9
            binding_s[binding] = binding_s.get(binding, 0.0) + since_s
        ledger = self.ledger()
        return Stats(
            queued=ledger.queued + ledger.backoff,
            running=ledger.running,
            outbox=ledger.outbox,
            slot_seconds=figures.slot_ns_until(kernel.running, now_ns) * 1e-9,
            outcomes={
                f"{status}/{reason}": count
                for (status, reason), count in figures.verdicts().items()
            },
            retries=figures.retries,
            cancels=figures.cancels,
            queued_p50_s=figures.queued.percentile_s(50),
            queued_p99_s=figures.queued.percentile_s(99),
            running_p50_s=figures.running.percentile_s(50),
            running_p99_s=figures.running.percentile_s(99),
            undelivered_p50_s=figures.undelivered.percentile_s(50),
            undelivered_p99_s=figures.undelivered.percentile_s(99),
            ages=dict(figures.ages),
            producer_blocked_s=figures.producer_blocked_ns * 1e-9,
            consumer_blocked_s=figures.consumer_blocked_ns * 1e-9,
            loop_lag_s=self._watcher.lag_s,
            binding_gate=binding,
            binding_s=binding_s,
            late_results=kernel.leftovers.late_results,
        )
