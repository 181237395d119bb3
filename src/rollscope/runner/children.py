"""The asyncio tasks that a task's code starts: whose they are, and how they end with it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from rollscope.runner.context import current_task
from rollscope.runner.task import DONE

ATTEMPT: Final = "run_rollscope_task"
"""The name of the coroutine that runs an attempt."""

if TYPE_CHECKING:
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task

__all__ = ["ATTEMPT", "child_factory", "end_children", "find_children", "find_orphans"]


def child_factory(
    loop: asyncio.AbstractEventLoop,
    coroutine: Any,  # noqa: ANN401  (what asyncio hands a task factory)
    **options: Any,
) -> asyncio.Task[Any]:
    """Make an asyncio task, and note whose child it is."""
    child: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    owner = current_task.get()
    if owner is not None:
        children = owner.more().children
        children.add(child)
        child.add_done_callback(children.discard)
    return child


def find_children(loop: asyncio.AbstractEventLoop, owner: Task) -> None:
    """Find the children of a task on a loop that makes its tasks without us, by their context."""
    for child in asyncio.all_tasks(loop):
        if _is_attempt(child) or _owner_of(child) is not owner:
            continue
        children = owner.more().children
        if child not in children:
            children.add(child)
            child.add_done_callback(children.discard)


def find_orphans(loop: asyncio.AbstractEventLoop, kernel: Kernel) -> set[asyncio.Task[Any]]:
    """Find the children of tasks that have ended."""
    orphans = set()
    for child in asyncio.all_tasks(loop):
        owner = None if _is_attempt(child) else _owner_of(child)
        if owner is not None and owner.kernel is kernel and owner.state == DONE:
            orphans.add(child)
    return orphans


def _is_attempt(child: asyncio.Task[Any]) -> bool:
    """Whether it runs a task, also one that was given up, and is no child of one."""
    return getattr(child.get_coro(), "__name__", "") == ATTEMPT


def _owner_of(child: asyncio.Task[Any]) -> Task | None:
    context = _context_of(child)
    return None if context is None else context.get(current_task)


def _context_of(task: asyncio.Task[Any]) -> Any:  # noqa: ANN401
    if hasattr(task, "get_context"):  # from 3.12 on
        return task.get_context()
    import gc
    from contextvars import Context

    return next((held for held in gc.get_referents(task) if type(held) is Context), None)


async def end_children(children: set[Any]) -> None:
    """Cancel asyncio tasks and wait until they have ended."""
    myself = asyncio.current_task()
    while pending := {child for child in children if child is not myself and not child.done()}:
        for child in pending:
            if not child.cancelling():  # a second time would end its own cleaning up
                child.cancel()
        await asyncio.wait(pending)
