"""Handing tasks to a runner."""

from __future__ import annotations

import time
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from rollscope.errors import DuplicateTask, InboxFull, RunnerError, SettingError
from rollscope.runner.base import RunnerBase
from rollscope.runner.handle import Handle
from rollscope.runner.task import NO_TAGS, Task, TaskOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["Submitter", "Submitting"]

_NOTHING_SET: Final = Context()
"""Stands for every context in which nothing is set: tasks run in copies, and 80 bytes are saved."""


class Submitting(RunnerBase):
    """The side of a runner that takes tasks."""

    _inbox_size: int
    _options: TaskOptions
    _next_id: int
    _clock: Callable[[], int]

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handle:
        """Have an async function called, soon, with these arguments; never blocks.

        Raises:
            InboxFull: Too many tasks wait already.
            RunnerClosed: The runner has not started, or takes no more.
        """
        return self._submit_one(fn, args, kwargs, self._options)

    def options(self, **changes: Any) -> Submitter:
        """Give something to submit with that has other settings.

        Args:
            **changes: Fields of `TaskOptions`.

        Raises:
            SettingError: There is no such setting or tier.
        """
        return Submitter(self, self._options).options(**changes)

    def submit_many(
        self, calls: Iterable[tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]]
    ) -> list[Handle]:
        """Submit many calls at once, all or none."""
        return Submitter(self, self._options).submit_many(calls)

    def submit_blocking(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handle:
        """Submit, and wait for room if there is none."""
        return Submitter(self, self._options).submit_blocking(fn, *args, **kwargs)

    async def asubmit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handle:
        """Submit, and await room if there is none."""
        return await Submitter(self, self._options).asubmit(fn, *args, **kwargs)

    def _submit_one(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        options: TaskOptions,
    ) -> Handle:
        context = copy_context()
        task = Task(fn, args, kwargs or NO_TAGS, context or _NOTHING_SET, options, self._clock())
        kernel = self._kernel
        if kernel.keeper is not None:
            return self._accept([task])[0]
        lock, given = kernel.lock, options.id
        if not lock.try_acquire(False):
            lock.acquire()
        try:
            ledger = kernel.ledger
            if self._refusal is not None or kernel.error is not None:
                raise self._refused()
            if ledger.queued >= self._inbox_size:
                raise self._is_full()
            if given is None:
                task.id = task_id = self._next_id
                self._next_id = task_id + 1
            else:
                task_id = self._take_id(task, given)
            kernel.live[task_id] = task
            kernel.inbox.append(task)
            ledger.submitted += 1
            ledger.queued += 1
            is_first = not kernel.wake_pending
            kernel.wake_pending = True
        finally:
            lock.release()
        if is_first:
            kernel.call_loop(kernel.turn)
        return Handle(self, task_id)

    def _refused(self) -> RunnerError:
        error = self._kernel.error
        return self._closed() if error is None else self._kernel.broken()

    def _is_full(self) -> InboxFull:
        return InboxFull(
            f"{self._kernel.ledger.queued} tasks wait already and the inbox holds "
            f"{self._inbox_size}; fetch outcomes first, or use submit_blocking"
        )

    def _accept(self, tasks: Sequence[Task]) -> list[Handle]:
        """Take tasks, all or none."""
        kernel = self._kernel
        packed = None if kernel.keeper is None else kernel.keeper.pack(tasks)
        with kernel.lock:
            if self._refusal is not None or kernel.error is not None:
                raise self._refused()
            if kernel.ledger.queued + len(tasks) > self._inbox_size:
                raise self._is_full()
            given = tasks[0].options.id
            if given is not None:
                if len(tasks) > 1:
                    raise DuplicateTask("an id names one task; submit them one by one")
                self._take_id(tasks[0], given)
            is_first = self._enlist(tasks)
            if packed is not None:
                kernel.keeper.accepted(tasks, packed)
        if is_first:
            kernel.call_loop(kernel.turn)
        return [Handle(self, task.id) for task in tasks]

    def _enlist(self, tasks: Sequence[Task]) -> bool:
        """Put tasks into the inbox, whether or not there is room; say whether to call the loop.

        The caller holds the lock. Tasks that have an id keep it.
        """
        self._count_in(tasks)
        self._kernel.inbox.extend(tasks)
        return self._kernel.mark_wake()

    def _count_in(self, tasks: Sequence[Task]) -> None:
        """Give tasks ids if they have none, and count them; under the lock."""
        kernel = self._kernel
        for task in tasks:
            if task.id < 0:
                task.id = self._next_id
                self._next_id += 1
            kernel.live[task.id] = task
        kernel.ledger.submitted += len(tasks)
        kernel.ledger.queued += len(tasks)

    def _take_id(self, task: Task, given: int) -> int:
        kernel = self._kernel
        if given in kernel.live or given in kernel.outbox or given in kernel.groups:
            raise DuplicateTask(
                f"Duplicate task_id: {given}. A task of that id is not finished and fetched yet."
            )
        task.id = given
        self._next_id = max(self._next_id, given + 1)
        return given


class Submitter:
    """Submits with settings of its own."""

    __slots__ = ("_options", "_room_s", "_runner")

    def __init__(
        self, runner: Submitting, options: TaskOptions, room_s: float | None = None
    ) -> None:
        self._runner = runner
        self._options = options
        self._room_s = room_s

    def options(self, *, room_s: float | None = None, **changes: Any) -> Submitter:
        """Change settings further.

        Args:
            room_s: How long `submit_blocking` and `asubmit` wait for room; for ever if not given.
            **changes: Fields of `TaskOptions`.
        """
        unknown = changes.keys() - set(TaskOptions.__struct_fields__)
        if unknown:
            known = ", ".join(TaskOptions.__struct_fields__)
            raise SettingError(f"there is no setting {', '.join(unknown)}; there are {known}")
        options = replace(self._options, **changes)
        self._runner._kernel.queues.check(options.tier)
        return Submitter(self._runner, options, room_s if room_s is not None else self._room_s)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handle:
        """As `Runner.submit`."""
        return self._runner._submit_one(fn, args, kwargs, self._options)

    def submit_many(
        self, calls: Iterable[tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]]
    ) -> list[Handle]:
        """As `Runner.submit_many`."""
        now_ns = self._runner._clock()
        tasks = [
            Task(fn, args, dict(kwargs), copy_context() or _NOTHING_SET, self._options, now_ns)
            for fn, args, kwargs in calls
        ]
        return self._runner._accept(tasks) if tasks else []

    def submit_blocking(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handle:
        """As `Runner.submit_blocking`."""
        runner = self._runner
        runner._check_may_block()
        began = time.monotonic()
        while True:
            try:
                return self.submit(fn, *args, **kwargs)
            except InboxFull:
                left_s = self._left_s(began)
                if (left_s is not None and left_s <= 0) or self._runner._kernel.is_abandoned:
                    raise
                blocked_ns = time.monotonic_ns()
                runner._until(self._has_room, left_s)
                waited_ns = time.monotonic_ns() - blocked_ns
                runner._kernel.figures.producer_blocked_ns += waited_ns

    async def asubmit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Handle:
        """As `Runner.asubmit`."""
        began = time.monotonic()
        while True:
            try:
                return self.submit(fn, *args, **kwargs)
            except InboxFull:
                left_s = self._left_s(began)
                if (left_s is not None and left_s <= 0) or self._runner._kernel.is_abandoned:
                    raise
                await self._runner._auntil(self._has_room, left_s)

    def _left_s(self, began: float) -> float | None:
        return None if self._room_s is None else self._room_s - (time.monotonic() - began)

    def _has_room(self) -> bool:
        runner = self._runner
        return runner._kernel.ledger.queued < runner._inbox_size or runner._refusal is not None
