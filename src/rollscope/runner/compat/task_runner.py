"""AReaL's async task runner, call for call, over `Runner`.

Only names, messages and the shape of results are translated here; everything else is the runner's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, overload

from rollscope.errors import (
    InboxFull,
    OutcomeTaken,
    RunnerBroken,
    RunnerClosed,
    UnknownTask,
    WaitTimeout,
)
from rollscope.instrument import default
from rollscope.runner.compat.contract import choose_contract
from rollscope.runner.compat.life import TaskRunnerLife
from rollscope.runner.compat.views import QueueView
from rollscope.runner.outcome import Reason
from rollscope.runner.submitting import Submitter
from rollscope.runner.task import TaskOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from rollscope.runner.outcome import Outcome
    from rollscope.runner.runner import Runner

__all__ = [
    "DEFAULT_POLL_SLEEP_TIME",
    "DEFAULT_POLL_WAIT_TIME",
    "AsyncTaskRunner",
    "TaskQueueFullError",
    "TimedResult",
]

T = TypeVar("T")

DEFAULT_POLL_WAIT_TIME: Final = 0.05
"""Kept for callers that name it; nothing is polled."""
DEFAULT_POLL_SLEEP_TIME: Final = 0.5
"""Kept for callers that name it; nothing is polled."""

_SEVEN_DAYS_S: Final = 7 * 24 * 3600.0
_PLAIN: Final = TaskOptions()


class TaskQueueFullError(RuntimeError):
    """Too many tasks are on their way; this one was not taken."""


@dataclass(frozen=True, slots=True)
class TimedResult(Generic[T]):
    """A result, and when its coroutine started."""

    create_time: int
    """Monotonic nanoseconds."""
    data: T
    task_id: int


class AsyncTaskRunner(TaskRunnerLife, Generic[T]):
    """Runs coroutines on a thread of its own and gives their results.

    Args:
        max_queue_size: How many tasks may be on their way, and how many results may wait to be
            fetched before nothing new starts.
        poll_wait_time: Kept, without effect.
        poll_sleep_time: Kept, without effect.
        enable_tracing: Log a line at the start and end of each task.
        contract: `1.0` or `pr473`: which revision the keywords after it default to.
        order: How results are ordered inside one list: `shuffled`, `oldest_shuffled`, `arrival`.
        task_ids: `required`: the caller names tasks; `auto`: they are counted.
        zero_timeout: What a timeout of 0 means: `now` or `forever`.
        queue_bound: Which tasks count against `max_queue_size`: all `unfinished`, or those still
            `queued`.
    """

    def __init__(
        self,
        max_queue_size: int,
        poll_wait_time: float = DEFAULT_POLL_WAIT_TIME,
        poll_sleep_time: float = DEFAULT_POLL_SLEEP_TIME,
        enable_tracing: bool = False,
        *,
        contract: str = "1.0",
        order: str | None = None,
        task_ids: str | None = None,
        zero_timeout: str | None = None,
        queue_bound: str | None = None,
    ) -> None:
        changes = {"order": order, "task_ids": task_ids}
        changes |= {"zero_timeout": zero_timeout, "queue_bound": queue_bound}
        super().__init__(max_queue_size, choose_contract(contract, changes))
        self.poll_wait_time = poll_wait_time
        self.poll_sleep_time = poll_sleep_time
        self.enable_tracing = enable_tracing
        self.input_queue = QueueView(max_queue_size, self.get_input_queue_size)
        self.output_queue = QueueView(max_queue_size, self.get_output_queue_size)

    # --- in --------------------------------------------------------------------------------------

    def submit(self, async_fn: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  (an id, or None, by the contract)
        """Have an async function called; never blocks.

        Args:
            async_fn: What to call.
            *args: Its arguments.
            **kwargs: Its keywords; `task_id` is taken out as the id of the task, unless ids are
                counted.

        Returns:
            The id; None where ids are counted.

        Raises:
            RuntimeError: The runner has died, was not initialized, or was destroyed.
            ValueError: A task of that id has no result yet.
            TaskQueueFullError: Too many tasks are on their way.
        """
        if self._contract.task_ids == "auto":
            self._submit(async_fn, args, kwargs, None)
            return None
        if "task_id" not in kwargs:
            raise TypeError("submit() missing 1 required keyword-only argument: 'task_id'")
        return self._submit(async_fn, args, kwargs, kwargs.pop("task_id"))

    def submit_batch(
        self,
        calls: Iterable[tuple[Callable[..., Awaitable[T]], tuple[Any, ...], Mapping[str, Any]]],
    ) -> list[int]:
        """Submit calls as (function, arguments, keywords); their ids are counted."""
        return [self._submit(fn, args, dict(kwargs), None) for fn, args, kwargs in calls]

    def _submit(
        self,
        fn: Callable[..., Awaitable[T]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        given_id: int | None,
    ) -> int:
        self._check_thread_health()
        runner = self._runner
        if runner is None:
            raise RuntimeError("AsyncTaskRunner takes no tasks before initialize() is called.")
        if self.exiting.is_set():
            raise RuntimeError("AsyncTaskRunner is exiting and takes no more tasks.")
        with self._lock:
            task_id = self._next_id if given_id is None else given_id
            if any(theirs in runner._kernel.live for theirs in self._theirs.get(task_id, ())):
                raise ValueError(
                    f"Duplicate task_id: {task_id}. A task of that id has no result yet."
                )
            is_bounded = self._contract.queue_bound == "unfinished"
            if is_bounded and len(runner._kernel.live) >= self.max_queue_size:
                raise self._full()
            options = _PLAIN
            if default.enabled():
                name = getattr(fn, "__qualname__", type(fn).__qualname__)
                options = TaskOptions(key=f"{name}/{task_id}")
            try:
                theirs = Submitter(runner, options).submit(self._run, task_id, fn, args, kwargs).id
            except InboxFull:
                raise self._full() from None
            if isinstance(task_id, Integral):  # AReaL's runner takes names of any kind
                self._next_id = max(self._next_id, int(task_id) + 1)
            self._ours[theirs] = task_id
            self._theirs.setdefault(task_id, []).append(theirs)
        return task_id

    def _full(self) -> TaskQueueFullError:
        return TaskQueueFullError(
            f"Input queue full. {self.max_queue_size} tasks are on their way already; "
            "wait for results first, or make max_queue_size larger."
        )

    async def _run(
        self,
        task_id: int,
        fn: Callable[..., Awaitable[T]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> T:
        if self.enable_tracing:
            self._tell("started", task_id)
        try:
            return await fn(*args, **kwargs)
        except asyncio.CancelledError:
            self.logger.warning("task %s was cancelled; its result is None", task_id)
            raise
        except BaseException:
            self.logger.exception("task %s failed; its result is None", task_id)
            raise
        finally:
            if self.enable_tracing:
                self._tell("ended", task_id)

    def _tell(self, what: str, task_id: int) -> None:
        assert self._runner is not None  # noqa: S101  (one of its tasks runs)
        running = self._runner.ledger().running
        self.logger.info("task %s %s, %d running", task_id, what, running)

    # --- out -------------------------------------------------------------------------------------

    @overload
    def wait(
        self, count: int, timeout: float | None = ..., with_timing: Literal[False] = ...
    ) -> list[T]: ...
    @overload
    def wait(
        self, count: int, timeout: float | None = ..., *, with_timing: Literal[True]
    ) -> list[TimedResult[T]]: ...
    @overload
    def wait(
        self, count: int, timeout: float | None, with_timing: Literal[True]
    ) -> list[TimedResult[T]]: ...
    def wait(
        self, count: int, timeout: float | None = None, with_timing: bool = False
    ) -> list[T] | list[TimedResult[T]]:
        """Wait for results; that of a task which failed or was cancelled is None.

        Args:
            count: How many.
            timeout: How many seconds; seven days if not given.
            with_timing: Whether to give each with its id and the time its coroutine started.

        Raises:
            TimeoutError: Too few came in time; none was taken.
            RuntimeError: The runner has died, or is exiting and too few are left.
        """
        if count <= 0:
            return []
        timed = self._timed(self._take(count, timeout))
        return timed if with_timing else [one.data for one in timed]

    def _take(self, count: int, timeout: float | None) -> list[Outcome]:
        runner = self._usable()
        timeout_s = 0.0 if self.exiting.is_set() else self._seconds(timeout)
        try:
            return runner.wait(count, timeout_s, self._contract.order)
        except WaitTimeout as error:
            if self.exiting.is_set():
                raise _exiting() from None
            raise TimeoutError(
                f"Timed out waiting for {count} results, only received {error.ready}."
            ) from None
        except (RunnerClosed, RunnerBroken):
            self._check_thread_health()
            raise _exiting() from None

    def wait_for_task(
        self, task_id: int, timeout: float | None = None, raise_timeout: bool = True
    ) -> T | None:
        """Wait for the result of one task, which no `wait` gets meanwhile.

        Args:
            task_id: Which one.
            timeout: How many seconds; seven days if not given.
            raise_timeout: Whether to raise when the time is up, or to give None.

        Raises:
            ValueError: There is no such task, or its result was taken.
            TimeoutError: It did not come in time; it can be asked for again.
            RuntimeError: The runner has died, or is exiting.
        """
        runner = self._usable()
        with self._lock:
            theirs = next(iter(self._theirs.get(task_id, ())), None)
        if theirs is None:
            raise _never_submitted(task_id)
        try:
            outcome = runner.wait_for(theirs, self._seconds(timeout))
        except (UnknownTask, OutcomeTaken):
            raise _never_submitted(task_id) from None
        except WaitTimeout:
            if not raise_timeout:
                return None
            raise TimeoutError(f"Timed out waiting for the result of task {task_id}.") from None
        except (RunnerClosed, RunnerBroken):
            self._check_thread_health()
            raise _exiting() from None
        result: T | None = self._timed([outcome])[0].data
        return result

    def _usable(self) -> Runner:
        self._check_thread_health()
        if self._runner is None:
            raise RuntimeError("AsyncTaskRunner has no results before initialize() is called.")
        return self._runner

    def _seconds(self, timeout: float | None) -> float:
        if timeout is None or (timeout == 0 and self._contract.zero_timeout == "forever"):
            return _SEVEN_DAYS_S
        return timeout

    def _timed(self, outcomes: list[Outcome]) -> list[TimedResult[Any]]:
        if any(outcome.reason is Reason.LOST for outcome in outcomes):
            self._check_thread_health()
        ids = self._fetched([outcome.id for outcome in outcomes])
        return [
            TimedResult(
                outcome.finished_ns if outcome.started_ns is None else outcome.started_ns,
                outcome.value if outcome.is_ok else None,
                task_id,
            )
            for outcome, task_id in zip(outcomes, ids, strict=True)
        ]

    # --- counts ----------------------------------------------------------------------------------

    def get_queue_sizes(self) -> tuple[int, int]:
        """Count the tasks that have not started, and the results that nobody has taken."""
        if self._runner is None:
            return 0, 0
        ledger = self._runner.ledger()
        return ledger.queued, ledger.outbox

    def get_input_queue_size(self) -> int:
        """Count the tasks that have not started."""
        return self.get_queue_sizes()[0]

    def get_output_queue_size(self) -> int:
        """Count the results that nobody has taken."""
        return self.get_queue_sizes()[1]


def _exiting() -> RuntimeError:
    return RuntimeError("AsyncTaskRunner is exiting, cannot wait for results.")


def _never_submitted(task_id: int) -> ValueError:
    return ValueError(f"task {task_id} was never submitted, or its result was taken already")
