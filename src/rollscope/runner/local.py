"""Runs tasks as asyncio tasks of the runner's own loop."""

from __future__ import annotations

import asyncio
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import RollscopeError
from rollscope.runner.children import end_children, find_children
from rollscope.runner.context import current_task
from rollscope.runner.guard import log
from rollscope.runner.outcome import Reason, Status, describe_failure
from rollscope.runner.retry import classify_failure
from rollscope.runner.task import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Rare, Task

__all__ = ["LocalLauncher"]

_REASONS: Final = {str(reason): reason for reason in Reason}


class LocalLauncher:
    """Starts tasks on the loop that the kernel runs on."""

    def __init__(self, kernel: Kernel, clock: Callable[[], int]) -> None:
        self._kernel = kernel
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this loop."""
        self._loop = loop

    def launch(self, task: Task) -> None:
        """Start an attempt."""
        task.context = context = task.origin.copy()  # each attempt begins with what was submitted
        # Not `loop.create_task`, which asks the task factory: that is for the children of tasks.
        coroutine = self.run_rollscope_task(task)
        task.runs_in = asyncio.Task(coroutine, loop=self._loop, context=context)

    def stop(self, task: Task) -> None:
        """Raise `CancelledError` in it; the kernel has noted why."""
        running = task.runs_in
        if task.attempt_ns is None:
            # Its first line has not run, and now never will; so it cannot tell us its end.
            running.cancel()
            task.end(*(task.stop or (Status.CANCELLED, Reason.REQUESTED)))
            self._kernel.ended(task)
        else:
            running.cancel(str(task.stop[1]) if task.stop else None)

    async def run_rollscope_task(self, task: Task) -> None:
        """Run an attempt; by this name it is told from what user code starts.

        Thousands wait in here: what it keeps and how deep it calls is memory of each of them.
        """
        task.attempt_ns = self._clock()
        attempt = task.attempt
        current_task.set(task)
        self._kernel.started(task)
        awaitable = None
        try:
            awaitable = task.fn(*task.args, **task.kwargs)
            if type(awaitable) is CoroutineType or hasattr(awaitable, "__await__"):
                self._note_value(task, attempt, await awaitable)
            else:
                self._note_error(task, attempt, _cannot_be_awaited(task, awaitable), True)
        except BaseException as error:
            self._note_error(task, attempt, error, awaitable is not None)
        is_plain = task.rare is None and task.status is Status.OK  # and so the only attempt
        if not is_plain or (self._kernel.finds_children_by_context and _ends_children(task)):
            if task.attempt == attempt:
                await self._clean_up(task)
            if task.attempt != attempt:  # it was given up, and another attempt runs by now
                self._kernel.leftovers.attempt_returned(task, attempt)
                return
        task.finished_ns = self._clock()
        self._kernel.ended(task)

    def _note_value(self, task: Task, attempt: int, value: Any) -> None:  # noqa: ANN401
        """Note what an attempt has returned, unless it was given up."""
        if task.attempt != attempt:
            return
        if type(value) is Verdict:
            task.end(value.status, value.reason, value.value, detail=value.detail)
        elif value is None and task.options.none_is is not None:
            task.end(Status.REJECTED, task.options.none_is)
        else:
            task.value = value

    def _note_error(self, task: Task, attempt: int, error: BaseException, was_called: bool) -> None:
        """Note what an attempt has raised, unless it was given up."""
        if task.attempt != attempt:
            return
        if isinstance(error, asyncio.CancelledError):
            task.end(Status.CANCELLED, Reason.SELF_CANCELLED)
            return
        if not isinstance(error, Exception):
            reason = Reason.BASE_EXCEPTION
        elif isinstance(error, _NotAwaitable) or (not was_called and _is_bad_call(error)):
            reason = Reason.BAD_CALL
        elif isinstance(error, RollscopeError):  # ours may say themselves what they mean
            reason = _REASONS.get(str(getattr(error, "reason", "")), Reason.EXCEPTION)
        else:
            reason = Reason.EXCEPTION
        kind = classify_failure(error, self._kernel.retry.rules_of(task).rules)
        task.end(Status.FAILED, reason, failure=describe_failure(error, kind))

    async def _clean_up(self, task: Task) -> None:
        """End what a task leaves behind, if it was stopped or failed; `cleanup_s` is all it has."""
        while True:
            try:
                await self._end_rest(task)
            except asyncio.CancelledError:
                continue  # it was told to stop only now; what is done is not done again
            except BaseException:
                log.exception("cleaning up after task %d", task.id)
            break
        if task.stop is not None:
            if task.status is Status.FAILED:
                task.status, task.reason = task.stop
            else:
                task.end(*task.stop, value=task.value)

    async def _end_rest(self, task: Task) -> None:
        rare, kernel = task.rare, self._kernel
        is_ordinary = task.stop is None and task.status in (Status.OK, Status.REJECTED)
        ends_children = not is_ordinary or _ends_children(task)
        if not ends_children:
            if rare is not None and rare.children:
                kernel.leftovers.add_orphans(rare.children)
            return
        if kernel.finds_children_by_context:
            find_children(asyncio.get_running_loop(), task)
            rare = task.rare
        has_hooks = rare is not None and bool(rare.cancel_hooks or rare.hooks)
        if rare is None or not (rare.children or (has_hooks and not is_ordinary)):
            return
        if task.stop is None and not rare.hooks:
            kernel.limits.watch_clean_up(task)
        if not is_ordinary:
            await self._run_hooks(task, rare)
        await end_children(rare.children)

    async def _run_hooks(self, task: Task, rare: Rare) -> None:
        """Do what a task wanted done on a cancel; one that comes meanwhile does not stop it."""
        acts, rare.cancel_hooks = rare.cancel_hooks, []
        rare.hooks |= {asyncio.Task(_as_coroutine(act), loop=self._loop) for act in acts}
        while rare.hooks:
            done, rare.hooks = await asyncio.wait(rare.hooks)
            for hook in done:
                error = None if hook.cancelled() else hook.exception()
                if error is not None:
                    log.error(
                        "what task %d wanted done on a cancel failed", task.id, exc_info=error
                    )


def _ends_children(task: Task) -> bool:
    """Whether a task's children end with it, however it ends."""
    return task.options.children == "cancel"


async def _as_coroutine(act: Callable[[], Awaitable[object]]) -> None:
    await act()


class _NotAwaitable(TypeError):
    """A function gave something that cannot be awaited."""


def _is_bad_call(error: BaseException) -> bool:
    """Whether calling the function was the mistake, not something that happened inside of it."""
    trace = error.__traceback__
    return isinstance(error, TypeError) and (trace is None or trace.tb_next is None)


def _cannot_be_awaited(task: Task, given: object) -> _NotAwaitable:
    name = getattr(task.fn, "__qualname__", type(task.fn).__qualname__)
    return _NotAwaitable(
        f"{name} gave {type(given).__qualname__}, which cannot be awaited; submit an async function"
    )
