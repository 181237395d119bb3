"""The part of a runner that lives on its loop: admission, starting, ending, stopping.

Everything here runs on the loop thread unless it says otherwise. What other threads read or write
too (the inbox, the ledger, the outbox) is touched under `lock`, in one go for many tasks.
"""

from __future__ import annotations

import asyncio
import threading
from contextvars import Context
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from rollscope.errors import RunnerBroken
from rollscope.runner.admission import Admission
from rollscope.runner.attempts import Attempts
from rollscope.runner.breaker import Breaker
from rollscope.runner.children import ChildSearch
from rollscope.runner.guard import log, quietly
from rollscope.runner.ledger import Ledger
from rollscope.runner.leftovers import Leftovers
from rollscope.runner.limits import Limits
from rollscope.runner.locking import BargingLock
from rollscope.runner.outcome import Reason, Status, describe_failure
from rollscope.runner.settling import outcome_of
from rollscope.runner.stats import Figures
from rollscope.runner.stopping import Stops
from rollscope.runner.task import DONE, FREED, RUNNING, Task
from rollscope.runner.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rollscope.runner.outbox import Outbox
    from rollscope.runner.outcome import Failure, Outcome
    from rollscope.runner.pausing import Pauses
    from rollscope.runner.requeueing import Requeueing
    from rollscope.runner.retry import RetryBudget
    from rollscope.runner.tiers import TierQueues
    from rollscope.runner.tracing import Trace
    from rollscope.runner.waiters import Waiter

__all__ = ["Kernel", "Launcher"]

_AT_ONCE: Final = 64
"""Tasks started before the loop gets a turn: about as many as the processor's cache holds, and few
enough that the objects they are made of do not call the garbage collector."""
_options_of: Final = attrgetter("options")


class Launcher(Protocol):
    """What executes tasks: this loop, or actors on many machines."""

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this loop."""

    def launch(self, task: Task) -> None:
        """Start an attempt; `Kernel.started` and `Kernel.ended` are called as it goes."""

    def stop(self, task: Task) -> None:
        """Tell an attempt to end."""


class Kernel:
    """Takes tasks from the inbox to the outbox."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        queues: TierQueues,
        admission: Admission,
        retry: RetryBudget,
        breaker: Breaker,
        pauses: Pauses,
        trace: Trace,
        cleanup_s: float,
    ) -> None:
        self.lock = BargingLock()
        self.clock = clock
        self.ledger = Ledger()
        self.inbox: list[Task] = []
        self.live: dict[int, Task] = {}
        """Every task without an outcome; changed under `lock`."""
        self.running = 0
        """How many tasks hold a place."""
        self.outbox: Outbox
        self.launcher: Launcher
        self.queues, self.admission, self.retry = queues, admission, retry
        self.breaker, self.pauses, self.trace = breaker, pauses, trace
        self.timers = Timers(clock, self.die)
        trace.use_timers(self.timers)
        self.limits = Limits(self, cleanup_s)
        self.attempts = Attempts(self)
        self.leftovers = Leftovers(self)
        self.stops = Stops(self)
        self.version: int | None = None
        """The weight version, if one was ever told."""
        self.figures = Figures(clock())
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread_id: int | None = None
        self.finds_children_by_context = False
        self.children = ChildSearch()
        self.error: BaseException | None = None
        """What killed the loop."""
        self.has_lived = False
        self.is_over = False
        """Set when tasks were ended without the loop."""
        self.closed: Callable[[], BaseException] | None = None
        """Set once no more tasks are taken; makes the error for those who wait in vain."""
        self.has_groups = False
        """Whether an outcome may stand for more than one task."""
        self.groups: set[int] = set()
        """Ids of groups whose outcome nobody has yet; changed under `lock`."""
        self.requeueing: Requeueing | None = None
        """Runs tasks again whose outcomes are too old; None if there is no such policy."""
        self.keeper: Any = None
        """Told of everything that a later process has to know; None if there is none."""
        self.on_death: Callable[[], None] | None = None
        self.on_first_start: Callable[[], None] | None = None
        """Called when tasks start where none ran."""
        self.on_settled: Callable[[Task, Outcome], Outcome | None] | None = None
        """Asked what becomes of an outcome; None keeps it from the outbox for now."""
        self.on_change: list[Callable[[], bool]] = []
        """Looked at after every turn; one that gives true is done and goes."""
        self._nowhere = Context()
        """What our own code runs in, whichever task it is called from."""
        self._finished: list[Task] = []
        """What has ended and still holds its place."""
        self._freed: list[Task] = []
        """What has ended and holds nothing any more; its outcome is to be made."""
        self._retried = 0
        self._woken: list[Waiter] = []
        self.wake_pending = False
        """Whether the loop was called and has not read the inbox yet; changed under `lock`."""
        self._turn_due = False

    # --- from any thread -------------------------------------------------------------------------

    def wake(self) -> None:
        """Have a turn soon; cheap if one is due already."""
        with self.lock:
            if self.wake_pending:
                return
            self.wake_pending = True
        self.call_loop(self.turn)

    def mark_wake(self) -> bool:
        """Say whether the caller, who holds the lock, has to call the loop."""
        is_first = not self.wake_pending
        self.wake_pending = True
        return is_first

    def call_loop(self, act: Callable[[], object]) -> None:
        """Have something done on the loop thread."""
        loop = self.loop
        if loop is None:
            return
        try:
            if threading.get_ident() == self.thread_id:
                loop.call_soon(act, context=self._nowhere)
            else:
                loop.call_soon_threadsafe(act, context=self._nowhere)
        except RuntimeError:
            return  # closed meanwhile; whoever closed it has seen to every task

    @property
    def is_turning(self) -> bool:
        """Whether there is a loop to do things on."""
        is_there = self.loop is not None and not self.is_abandoned
        return is_there and self.error is None and not self.is_over

    @property
    def is_abandoned(self) -> bool:
        """Whether its loop, one of the caller's, has ended without a word."""
        loop = self.loop
        return loop is not None and loop.is_closed()

    # --- life ------------------------------------------------------------------------------------

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin on a loop, from its thread."""
        self.loop, self.thread_id = loop, threading.get_ident()
        self.trace.run_on(self.thread_id)
        self.has_lived = True
        self.timers.bind(loop)
        self.launcher.bind(loop)
        self.signal()

    def unbind(self) -> None:
        """Forget the loop: it is over, and its thread's number may be given to another."""
        self.loop = self.thread_id = None
        self.timers.clear()

    def signal(self) -> None:
        """Have a turn in this round of the loop, from the loop thread."""
        if not self._turn_due and self.loop is not None and not self.is_abandoned:
            self._turn_due = True
            self.loop.call_soon(self.turn, context=self._nowhere)

    def turn(self) -> None:
        """Do everything that is to be done now."""
        if self.error is not None or self.is_over:
            return
        try:
            self._turn_due = False
            if self.wake_pending:  # who submits from now on has a turn of its own
                self.read_inbox()
            if self._finished:
                self.free()
                if self.on_settled is not None or self.admission.bounds_outbox:
                    self._end_freed()  # which may hold back or end what would start now
            has_started = self.queues.has_work and self._admit()
            if has_started and self._freed and self.loop is not None:
                # First the first lines of those, so that places stand idle for as short as can be.
                self.loop.call_soon(self._settle, context=self._nowhere)
            elif self._freed or self._woken or self.on_change:
                self._settle()
        except BaseException as error:
            self.die(error)

    def _settle(self) -> None:
        """Hand out the outcomes of what has ended, and tell all who wait for something."""
        if self.is_over:
            return
        try:
            if self._freed:
                self._end_freed()
            if self._woken:
                self.notify()
            if self.on_change:
                self.on_change = [done for done in self.on_change if not done()]
        except BaseException as error:
            self.die(error)

    def die(self, error: BaseException) -> None:
        """End everything because of a fault of ours: each task as lost, each waiter told."""
        if self.error is not None:
            return
        self.error = error
        log.error("the runner's loop has died", exc_info=error)
        if self.on_death is not None:
            self.on_death()
        failure = describe_failure(error, "infra")
        self.end_all(Status.FAILED, Reason.LOST, failure, "the runner's loop died")

    def end_all(self, status: Status, reason: Reason, failure: Failure | None, detail: str) -> None:
        """End every task without asking the loop, which does not turn any more."""
        self.timers.clear()
        with self.lock:
            lost = [*self.live.values()]
        for task in lost:
            if task.state == RUNNING:
                self.admission.release(task, None)
                self.queues.ended(task)
            if task.state not in (FREED, DONE):  # which have ended by themselves
                task.end(status, reason, failure=failure, detail=detail)
                task.finished_ns = task.finished_ns or self.clock()
        self.admission.flush(self.queues)
        self.figures.running_changed(self.running, self.clock())
        self.running = 0
        self._freed.clear()
        with quietly("recording the end"):  # which the fault may lie in
            for task in lost:
                if task.attempt_ns is None:
                    self.trace.ended_unstarted(task)
        settled = [outcome_of(task, None) for task in lost]
        with quietly("recording the end"):
            self.trace.ended_without_loop(settled)
        for task in lost:
            task.state = DONE
            task.context = task.runs_in = None
        outcomes: list[Outcome] = []
        for task, outcome in zip(lost, settled, strict=True):
            with quietly("settling a group"):
                outcomes += self._pass_on([task], [outcome])
        with quietly("keeping the end"):
            if self.keeper is not None:
                self.keeper.ended(outcomes)
        with self.lock:
            self.ledger.outbox += len(lost)
            self.ledger.queued = self.ledger.backoff = self.ledger.running = 0
            self.live.clear()
            self.inbox.clear()
            woken = self.outbox.add(outcomes)
            woken += self.outbox.fail_all(self.broken if self.error else self.closed or self.broken)
        self._woken += woken
        self.notify()
        for done in self.on_change:
            done()

    def running_tasks(self) -> list[Task]:
        """Give the tasks that hold a place, from any thread."""
        with self.lock:
            return [task for task in self.live.values() if task.state == RUNNING]

    def broken(self) -> RunnerBroken:
        """Make the error for those who wait on a runner that cannot go on."""
        if self.error is not None:
            broken = RunnerBroken(f"the runner's loop has died: {self.error!r}")
            broken.__cause__ = self.error
            return broken
        return RunnerBroken(self.breaker.explain())

    # --- in --------------------------------------------------------------------------------------

    def read_inbox(self) -> None:
        """Queue what was submitted."""
        lock = self.lock
        if not lock.try_acquire(False):
            lock.acquire()
        try:
            self.wake_pending = False  # before the inbox is read, or a submit may be missed
            fresh, self.inbox = self.inbox, []
        finally:
            lock.release()
        # Tasks submitted together share their options, and so their place.
        for options, tasks in groupby(fresh, _options_of):
            alike = list(tasks)
            self.queues.push_many(alike, options)
            if options.queue_timeout_s is not None:
                for task in alike:
                    self.limits.watch_queue(task)

    def _admit(self) -> bool:
        """Start what may start; say whether anything did."""
        chosen = self.admission.choose(self, _AT_ONCE)
        if not chosen:
            return False
        now_ns, count = self.clock(), len(chosen)
        self.trace.refresh()
        lock, ledger = self.lock, self.ledger
        if not lock.try_acquire(False):
            lock.acquire()
        try:
            ledger.queued -= count
            ledger.running += count
        finally:
            lock.release()
        self.figures.running_changed(self.running, now_ns)
        self.running += count
        launch = self.launcher.launch
        for task in chosen:
            task.state = RUNNING
            if task.admitted_ns is None:
                task.admitted_ns = now_ns
            task.kernel = self
            launch(task)
        if self.trace.is_on:
            self.trace.slots_changed(self.running)
        if self.running == count and self.on_first_start is not None:
            self.on_first_start()
        if count == _AT_ONCE:
            self.signal()
        return True

    # --- told by the launcher --------------------------------------------------------------------

    def started(self, task: Task, version: int | None) -> None:
        """Note that the first line of an attempt runs, with these weights; `attempt_ns` is set."""
        rare = task.rare
        if rare is None or rare.started_ns is None:  # it is the first attempt
            task.version_start = version
        else:
            _begin_segment(task, version)
        if self.trace.is_on:
            self.trace.started(task)
        if task.options.is_limited:
            self.limits.watch(task)

    def ended(self, task: Task) -> None:
        """Note that an attempt has ended, and how."""
        if task.state == DONE:
            self.leftovers.returned(task)
            return
        self._finished.append(task)
        if not self._turn_due:
            self._turn_due = True
            self.loop.call_soon(self.turn, context=self._nowhere)  # type: ignore[union-attr]  # it runs on one

    # --- out -------------------------------------------------------------------------------------

    def free(self) -> None:
        """Free what ended tasks held, and let those begin to wait that are tried again."""
        finished, self._finished = self._finished, []
        now_ns = self.clock()
        freed = self._freed
        admission = self.admission
        queue_of, follow = self.queues.queues, self.attempts.follow
        ok, looks_at_each = Status.OK, admission.looks_at_each
        options, queue = None, None
        count = 0
        for task in finished:
            if task.state != RUNNING:
                continue
            count += 1
            task.state = FREED
            if task.finished_ns is None:
                task.finished_ns = now_ns
            if task.options is not options or queue is None:
                options = task.options
                queue = queue_of[options.tier]
            queue.running -= 1
            queue.freed += 1
            rare = task.rare
            if rare is not None:
                self.limits.forget(task)
            if task.status is not ok or (rare is not None and rare.stop is not None):
                if follow(task):
                    admission.release(task, None)
                    self._retried += 1
                    continue
                self.breaker.note(task.status, task.failure)
            elif self.breaker.failed:
                self.breaker.note(Status.OK, None)
            if looks_at_each or rare is not None:
                admission.release(task, task.status)
                self.limits.forget(task, ends=True)
                if task.attempt_ns is None:
                    self.trace.ended_unstarted(task)
            freed.append(task)
        self.figures.running_changed(self.running, now_ns)
        self.running -= count
        if admission.counts:
            admission.flush(self.queues)
        if self._retried:
            with self.lock:
                self.ledger.running -= self._retried
                self.ledger.backoff += self._retried
                if self.breaker.is_open:  # which may come with nothing that ends for good
                    self._woken += self.outbox.fail_all(self.broken)
            self._retried = 0
        if self.trace.is_on:
            self.trace.slots_changed(self.running)

    def _end_freed(self) -> None:
        freed, self._freed = self._freed, []
        self.end(freed, running=len(freed))

    def end(
        self,
        tasks: list[Task],
        *,
        queued: int = 0,
        backoff: int = 0,
        running: int = 0,
    ) -> None:
        """Make the outcomes of tasks and hand them out; the numbers say where they were."""
        settled: list[Outcome] = []
        version = self.version
        add = settled.append
        for task in tasks:
            task.state = DONE
            add(outcome_of(task, version))
            task.context = task.runs_in = None  # which know the task in turn
        self.figures.ended(settled)
        outcomes = settled if self.on_settled is None else self._pass_on(tasks, settled)
        if self.requeueing is not None:
            self.requeueing.keep(tasks, outcomes)
        if self.trace.is_on:
            self.trace.ended(settled)
        if self.keeper is not None:
            self.keeper.ended(outcomes)
        lock, ledger, live = self.lock, self.ledger, self.live
        if not lock.try_acquire(False):
            lock.acquire()
        try:
            ledger.queued -= queued
            ledger.backoff -= backoff
            ledger.running -= running
            ledger.outbox += len(tasks)
            for task in tasks:
                del live[task.id]
            if self.requeueing is not None:
                outcomes = self.requeueing.sift(outcomes)
            self._woken += self.outbox.add(outcomes)
            if self.breaker.is_open:
                self._woken += self.outbox.fail_all(self.broken)
            elif self.closed is not None and not ledger.unfinished:
                self._woken += self.outbox.fail_all(self.closed)
        finally:
            lock.release()

    def notify(self) -> None:
        """Wake those who have got what they wait for."""
        woken, self._woken = self._woken, []
        for waiter in woken:
            waiter.notify()

    def _pass_on(self, tasks: Iterable[Task], settled: Iterable[Outcome]) -> list[Outcome]:
        """Let groups have the outcomes of their members."""
        if self.on_settled is None:
            return list(settled)
        asked = map(self.on_settled, tasks, settled)
        return [outcome for outcome in asked if outcome is not None]

    def end_now(self, task: Task) -> None:
        """End a task that holds a place, and make its outcome, without waiting for its code."""
        self._finished.append(task)
        self.free()
        self._end_freed()

    # --- told by tasks ---------------------------------------------------------------------------

    def note_progress(self, task: Task) -> None:
        """Note that a task gets on."""
        task.more().progress_ns = self.limits.active_ns()

    def checkpointed(self, task: Task) -> None:
        """Note that a task has left something to go on from."""
        if self.keeper is not None:
            self.keeper.checkpointed(task)

    @property
    def is_holding(self) -> bool:
        """Whether tasks wait at their pause points."""
        return self.pauses.is_holding

    async def hold(self, task: Task) -> None:
        """Wait with a task until the runner is resumed."""
        self.signal()
        await self.pauses.hold(task)
        _begin_segment(task, self.version)


def _begin_segment(task: Task, version: int | None) -> None:
    """Note that a task goes on with these weights."""
    rare = task.rare
    last = rare.versions[-1] if rare is not None and rare.versions else task.version_start
    if last is not None and version is not None and version != last:
        task.more().versions.append(version)
