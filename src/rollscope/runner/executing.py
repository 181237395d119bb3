"""The code of a task at work, in an asyncio task of the runner's own loop."""

from __future__ import annotations

import asyncio
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from rollscope.errors import RollscopeError
from rollscope.runner.children import end_children
from rollscope.runner.context import current_task
from rollscope.runner.guard import log
from rollscope.runner.outcome import Reason, Status, describe_failure
from rollscope.runner.retry import classify_failure
from rollscope.runner.task import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Rare, Task

__all__ = ["run_rollscope_task"]

_REASONS: Final = {str(reason): reason for reason in Reason}


async def run_rollscope_task(task: Task) -> None:
    """Run an attempt; by this name it is told from what user code starts.

    Thousands wait in here: what it keeps and how deep it calls is memory of each of them.
    """
    try:
        _note_value(task, await _begin(task))
    except BaseException as error:
        _note_error(task, error)
    if (
        task.rare is not None
        or task.status is not Status.OK
        or task.kernel.finds_children_by_context
    ):
        await _end(task)
    else:  # the only attempt, with nothing left behind
        task.finished_ns = task.kernel.clock()
        task.kernel.ended(task)


def _begin(task: Task) -> Awaitable[Any]:
    """Call the function of a task, in the context of its own; gives what is to be awaited."""
    kernel: Kernel = task.kernel
    task.attempt_ns = kernel.clock()
    current_task.set(task)
    kernel.started(task, kernel.version)
    awaitable: Awaitable[Any] = task.fn(*task.args, **task.kwargs)
    if type(awaitable) is CoroutineType or hasattr(awaitable, "__await__"):
        return awaitable
    raise _cannot_be_awaited(task, awaitable)


def _runs_in() -> asyncio.Task[Any] | None:
    """Give what this code runs in; None where it is destroyed, after the end of its loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _is_given_up(task: Task) -> bool:
    """Whether the attempt that this code belongs to is followed by another already."""
    return task.runs_in is not _runs_in()


def _note_value(task: Task, value: Any) -> None:  # noqa: ANN401
    """Note what an attempt has returned, unless it was given up."""
    if task.rare is not None and _is_given_up(task):
        return
    if type(value) is Verdict:
        task.end(value.status, value.reason, value.value, detail=value.detail)
    elif value is None and task.options.none_is is not None:
        task.end(Status.REJECTED, task.options.none_is)
    else:
        task.value = value


def _note_error(task: Task, error: BaseException) -> None:
    """Note what an attempt has raised, unless it was given up."""
    if task.rare is not None and _is_given_up(task):
        return
    if isinstance(error, asyncio.CancelledError):
        task.end(Status.CANCELLED, Reason.SELF_CANCELLED)
        return
    if not isinstance(error, Exception):
        reason = Reason.BASE_EXCEPTION
    elif isinstance(error, _NotAwaitable) or _is_bad_call(error):
        reason = Reason.BAD_CALL
    elif isinstance(error, RollscopeError):  # ours may say themselves what they mean
        reason = _REASONS.get(str(getattr(error, "reason", "")), Reason.EXCEPTION)
    else:
        reason = Reason.EXCEPTION
    kind = classify_failure(error, task.kernel.retry.rules_of(task).rules)
    task.end(Status.FAILED, reason, failure=describe_failure(error, kind))


async def _end(task: Task) -> None:
    """End an attempt that may have left something behind, or was given up."""
    kernel: Kernel = task.kernel
    if not _is_given_up(task):
        await _clean_up(task)
    if _is_given_up(task):  # another attempt runs by now
        kernel.leftovers.attempt_returned(_runs_in())
    else:
        task.finished_ns = kernel.clock()
        kernel.ended(task)


async def _clean_up(task: Task) -> None:
    """End what a task leaves behind, if it was stopped or failed; `cleanup_s` is all it has."""
    while True:
        try:
            await _end_rest(task)
        except asyncio.CancelledError:
            continue  # it was told to stop only now; what is done is not done again
        except BaseException:
            log.exception("cleaning up after task %d", task.id)
        break
    stop = task.stop
    if stop is not None:
        if task.status is Status.FAILED:
            task.status, task.reason = stop
        else:
            task.end(*stop, value=task.value)


async def _end_rest(task: Task) -> None:
    rare, kernel = task.rare, task.kernel
    is_ordinary = task.stop is None and task.status in (Status.OK, Status.REJECTED)
    ends_children = not is_ordinary or task.options.children == "cancel"
    if not ends_children:
        if rare is not None and rare.children:
            kernel.leftovers.add_orphans(task, rare.children)
        return
    if kernel.finds_children_by_context:
        await kernel.children.find(task)
        rare = task.rare
    has_hooks = rare is not None and bool(rare.cancel_hooks or rare.hooks)
    if rare is None or not (rare.children or (has_hooks and not is_ordinary)):
        return
    if task.stop is None and not rare.hooks:
        kernel.limits.watch_clean_up(task)
    if not is_ordinary:
        await _run_hooks(task, rare)
    await end_children(rare.children)


async def _run_hooks(task: Task, rare: Rare) -> None:
    """Do what a task wanted done on a cancel; one that comes meanwhile does not stop it."""
    acts, rare.cancel_hooks = rare.cancel_hooks, []
    loop = asyncio.get_running_loop()
    rare.hooks |= {asyncio.Task(_as_coroutine(act), loop=loop) for act in acts}
    while rare.hooks:
        done, rare.hooks = await asyncio.wait(rare.hooks)
        for hook in done:
            error = None if hook.cancelled() else hook.exception()
            if error is not None:
                log.error("what task %d wanted done on a cancel failed", task.id, exc_info=error)


async def _as_coroutine(act: Callable[[], Awaitable[object]]) -> None:
    await act()


class _NotAwaitable(TypeError):
    """A function gave something that cannot be awaited."""


def _is_bad_call(error: BaseException) -> bool:
    """Whether calling the function was the mistake, not something that happened inside of it."""
    if not isinstance(error, TypeError):
        return False
    trace = error.__traceback__
    last = None if trace is None else trace.tb_next  # the first is of who awaits what is begun
    return last is not None and last.tb_next is None and last.tb_frame.f_code is _begin.__code__


def _cannot_be_awaited(task: Task, given: object) -> _NotAwaitable:
    name = getattr(task.fn, "__qualname__", type(task.fn).__qualname__)
    return _NotAwaitable(
        f"{name} gave {type(given).__qualname__}, which cannot be awaited; submit an async function"
    )
