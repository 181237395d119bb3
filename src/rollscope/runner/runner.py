"""The runner: thousands of slow, failing, uneven coroutines, none of them lost.

Its sides are in modules of their own: taking tasks (`submitting`), giving outcomes (`collecting`),
being steered (`steering`), ending (`ending`) and telling about itself (`reporting`).
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Final, Literal, Self, get_args

from msgspec.structs import force_setattr

from rollscope.errors import MissingExtra, RunnerError
from rollscope.runner.admission import Admission
from rollscope.runner.breaker import Breaker
from rollscope.runner.checks import check
from rollscope.runner.children import child_factory
from rollscope.runner.ending import Ending
from rollscope.runner.gates import AgePolicy, ConcurrencyGate, age_of, judge_age
from rollscope.runner.guard import log
from rollscope.runner.keeping import Keeping
from rollscope.runner.kernel import Kernel, Launcher
from rollscope.runner.local import LocalLauncher
from rollscope.runner.outbox import Outbox
from rollscope.runner.outcome import Reason, Status
from rollscope.runner.pausing import Pauses
from rollscope.runner.reporting import Reporting
from rollscope.runner.requeueing import Requeueing
from rollscope.runner.retry import NO_RETRY, Retry, RetryBudget
from rollscope.runner.steering import Steering
from rollscope.runner.task import TaskOptions
from rollscope.runner.tiers import DEFAULT_TIERS, Tier, TierQueues
from rollscope.runner.tracing import Trace
from rollscope.runner.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from rollscope.instrument.tracer import Tracer
    from rollscope.runner.gates import Gate
    from rollscope.runner.outcome import Outcome
    from rollscope.runner.state import Codec

__all__ = ["Runner"]

LoopKind = Literal["auto", "asyncio", "uvloop"]

_alive: Final[weakref.WeakSet[Runner]] = weakref.WeakSet()
_watches_forks = False


class Runner(Keeping, Steering, Ending, Reporting):
    """Runs coroutines from sync or async code, and gives exactly one outcome for each.

    With `with` it has a loop thread of its own; with `async with` it uses the running loop.

    Args:
        name: What it is called in traces and messages.
        concurrency: How many tasks may run at once; no limit if not given.
        inbox: How many accepted tasks may wait to be started.
        outbox: How many outcomes may wait to be fetched before nothing new starts.
        gates: What else limits how many start.
        tiers: The classes of tasks. One submitted without a tier is of `train`, or of the first
            where there is no `train`.
        retry: Which failures are tried again.
        timeout_s: Time limit of a task over all its attempts.
        stall_s: Time limit without progress.
        cleanup_s: How long a task that was told to stop has for its `finally` blocks.
        loop: Which loop its own thread runs; `auto` takes uvloop where it is installed.
        probe_s: How often the loop is asked whether it still turns; None never asks.
        tracer: What to record with; the default tracer if not given.
        clock: Gives monotonic nanoseconds.
        seed: For the orders that shuffle, and for jitter.
        breaker: So many failed attempts in a row stop admission; None never does.
        max_age: Outcomes more versions old than this are too old.
        age_policy: What becomes of those.
        ageing_s: Waiting this long adds one to the priority of a task.
        resumable: Keep what it takes for another process to go on: see `state_dict`.
        journal: A file in which that is kept at all times.
        codec: How arguments and values are written; pickle if not given.
    """

    def __init__(
        self,
        *,
        name: str = "runner",
        concurrency: int | None = None,
        inbox: int = 10_000,
        outbox: int | None = None,
        gates: Iterable[Gate] = (),
        tiers: Sequence[Tier] = DEFAULT_TIERS,
        retry: Retry = NO_RETRY,
        timeout_s: float | None = None,
        stall_s: float | None = None,
        cleanup_s: float = 5.0,
        loop: LoopKind = "auto",
        probe_s: float | None = 0.5,
        tracer: Tracer | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        seed: int | None = None,
        breaker: int | None = 64,
        max_age: int | None = None,
        age_policy: AgePolicy | str = AgePolicy.ACCEPT,
        ageing_s: float = 30.0,
        resumable: bool = False,
        journal: str | os.PathLike[str] | None = None,
        codec: Codec | None = None,
    ) -> None:
        self.name = name
        self._inbox_size = inbox
        self._outbox_size = outbox
        self._gates: list[Any] = list(gates)
        self._limit: ConcurrencyGate | None = None
        if concurrency is not None:
            self._limit = ConcurrencyGate(concurrency)
            self._gates.insert(0, self._limit)
        self._tiers = tuple(tiers)
        self._retry = retry
        self._cleanup_s = cleanup_s
        kinds = get_args(LoopKind)
        check("loop", loop, f"one of {', '.join(kinds)}", is_right=loop in kinds)
        self._loop_kind: LoopKind = loop
        self._probe_s = probe_s
        self._tracer = tracer
        self._clock = clock
        self._random = random.Random(seed)  # noqa: S311  (mixes batches, guards nothing)
        self._breaker = breaker
        self._max_age = max_age
        self._age_policy = AgePolicy(age_policy)
        self._ageing_s = ageing_s
        self._next_id = 0
        self._thread: threading.Thread | None = None
        self._exit_callbacks: list[Callable[[], Any]] = []
        self._is_closed = False
        for gate in self._gates:
            gate.subscribe(self._wake)
        self._set_up_keeping(resumable, journal, codec)
        self._begin_life()
        tier = self._kernel.queues.default
        self._options = TaskOptions(tier=tier, timeout_s=timeout_s, stall_s=stall_s)
        self._refusal = f"the runner {name!r} has not started"

    def _begin_life(self) -> None:
        self._kernel = kernel = Kernel(
            clock=self._clock,
            queues=TierQueues(self._tiers, self._ageing_s),
            admission=Admission(self._gates, self._outbox_size, self._clock),
            retry=RetryBudget(self._retry, self._random.randrange(2**32)),
            breaker=Breaker(self._breaker),
            pauses=Pauses(self._clock),
            trace=Trace(self.name, self._tracer, self._gates),
            cleanup_s=self._cleanup_s,
        )
        kernel.outbox = Outbox(self._random, self._hand_over)
        kernel.launcher = self._make_launcher(kernel)
        self._watcher = Watcher(kernel, self._probe_s, self.name)
        kernel.on_first_start, kernel.on_death = self._watcher.wake, self._watcher.stop
        if self._age_policy is AgePolicy.REQUEUE and self._max_age is not None:
            kernel.requeueing = Requeueing(kernel, self._max_age, self._enlist)
        self._begin_keeping(kernel)

    def _renew_limit(self) -> None:
        """Begin with all places free; those that are taken belong to another process."""
        if self._limit is not None:
            limit = ConcurrencyGate(self._limit.limit)
            limit.subscribe(self._wake)
            self._gates[self._gates.index(self._limit)] = limit
            self._limit = limit

    def _wake(self) -> None:
        """Look whether something can start: a gate may have opened."""
        self._kernel.wake()

    def _make_launcher(self, kernel: Kernel) -> Launcher:
        return LocalLauncher(kernel)

    # --- its own thread --------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the loop thread; returns once the loop runs.

        Raises:
            MissingExtra: It is to run on uvloop, which is not installed.
        """
        if self._runs_already():
            return self
        loop = _new_loop(self._loop_kind)
        try:
            self._begin_anew()
            self._open_journal()
            _watch_forks(self)
            ready = threading.Event()
            self._thread = threading.Thread(
                target=self._run_loop,
                args=(loop, ready),
                name=f"rollscope-{self.name}",
                daemon=True,
            )
            self._thread.start()
        except BaseException:
            loop.close()
            raise
        ready.wait()
        return self

    def _runs_already(self) -> bool:
        """Whether this life goes on, on a thread of its own or the caller's loop; warns if so."""
        thread, kernel = self._thread, self._kernel
        if thread is None or not thread.is_alive():
            loop = kernel.loop
            if loop is None or loop.is_closed() or not kernel.is_turning:
                return False
        log.warning("the runner %r runs already; the second start does nothing", self.name)
        return True

    def _begin_anew(self) -> None:
        """Begin a life with nothing left of the last one."""
        if self._kernel.has_lived or self._kernel.closed is not None:
            self._begin_life()
        self._is_closed = False

    def _run_loop(self, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        kernel = self._kernel
        try:
            asyncio.set_event_loop(loop)
            loop.set_task_factory(child_factory)
            loop.call_soon(ready.set)
            kernel.bind(loop)
            self._refusal = None
            self._is_stopping = False
            _turn_until_stopped(loop)
        finally:
            self._is_stopping = True
            ready.set()
            if not self._is_closed:
                kernel.die(RunnerError("the loop was stopped from outside"))
                self._refusal = f"the loop of the runner {self.name!r} has died"
            _end_loop(loop)
            kernel.unbind()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- on the caller's loop --------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._runs_already():
            return self
        self._begin_anew()
        self._open_journal()
        _watch_forks(self)
        self._kernel.finds_children_by_context = True
        self._kernel.bind(asyncio.get_running_loop())
        self._refusal = None
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _after_close(self) -> None:
        self._close_journal()

    # --- what its sides need of it ---------------------------------------------------------------

    def _hand_over(self, outcomes: Sequence[Outcome]) -> None:
        """Count and judge outcomes that are handed over; under the lock."""
        kernel, now_ns = self._kernel, self._clock()
        ledger, times = kernel.ledger, kernel.figures.undelivered.counts
        for outcome in outcomes:
            force_setattr(outcome, "delivered_ns", now_ns)
            times[(now_ns - outcome.finished_ns >> 10).bit_length()] += 1
        count = len(outcomes)
        if kernel.has_groups:
            count = sum(outcome.weight for outcome in outcomes)
        ledger.outbox -= count
        ledger.delivered += count
        if kernel.version is not None:
            self._judge_ages(outcomes)
        if kernel.keeper is not None:
            kernel.keeper.delivered(outcomes)
        if kernel.requeueing is not None:
            kernel.requeueing.forget(outcomes)
        if kernel.has_groups:
            kernel.groups.difference_update(outcome.id for outcome in outcomes)
            parts = [part for whole in outcomes for part in whole.parts]
            for part in parts:
                force_setattr(part, "delivered_ns", now_ns)
            kernel.trace.delivered(parts)
        elif kernel.trace.is_on:
            kernel.trace.delivered(outcomes)

    def _judge_ages(self, outcomes: Sequence[Outcome]) -> None:
        version, figures = self._kernel.version, self._kernel.figures
        for outcome in outcomes:
            age = age_of(version, outcome.versions)
            if age is None:
                continue
            force_setattr(outcome, "age", age)
            figures.ages[age] += 1
            if self._max_age is None or not outcome.is_ok:
                continue
            judged = judge_age(age, self._max_age, self._age_policy)
            if judged is AgePolicy.DROP:
                force_setattr(outcome, "status", Status.STALE)
                force_setattr(outcome, "reason", Reason.TOO_OLD)
                figures.too_old += outcome.parts[0] is outcome  # not members, which were good
            elif judged is AgePolicy.MARK:
                force_setattr(outcome, "detail", f"{age} versions old, more than {self._max_age}")


def _new_loop(kind: LoopKind) -> asyncio.AbstractEventLoop:
    if kind != "asyncio":
        try:
            import uvloop
        except ImportError as error:
            if kind == "uvloop":
                raise MissingExtra(
                    "the runner's loop needs uvloop; install it with: "
                    "pip install 'rollscope[uvloop]'"
                ) from error
        else:
            loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
            return loop
    return asyncio.new_event_loop()


def _turn_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt) as error:
            # An asyncio task raised it, and asyncio lets it through; whoever awaits has it too.
            log.warning("a task's child raised %r; the loop goes on", error)
        else:
            return


def _end_loop(loop: asyncio.AbstractEventLoop) -> None:
    try:
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        if pending:
            loop.run_until_complete(asyncio.wait(pending, timeout=0.5))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    except Exception:
        log.exception("ending the loop")
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def _watch_forks(runner: Runner) -> None:
    """Close the copies that a forked child gets: their loop thread is not there."""
    global _watches_forks
    _alive.add(runner)
    if not _watches_forks:
        _watches_forks = True
        os.register_at_fork(after_in_child=_close_copies)


def _close_copies() -> None:
    for runner in list(_alive):
        runner._leave_journal()
        runner._renew_limit()
        runner._begin_life()
        runner._refusal = "this runner belongs to the process that this one was forked from"
        runner._is_closed = True
        runner._thread = None
