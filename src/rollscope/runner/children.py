"""The asyncio tasks that a task's code starts: whose they are, and how they end with it."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from rollscope.runner.context import current_task
from rollscope.runner.task import DONE

ATTEMPT: Final = "run_rollscope_task"
"""The name of the coroutine that runs an attempt."""

if TYPE_CHECKING:
    from collections.abc import Collection

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task

__all__ = ["ATTEMPT", "ChildSearch", "child_factory", "end_children", "find_orphans", "owner_of"]


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
        if owner.finished_ns is not None:  # what it left behind goes on starting others
            owner.kernel.leftovers.add_orphans(owner, [child])
    return child


class ChildSearch:
    """Finds the children of tasks on a loop that makes its tasks without us, by their context.

    That takes a look at all that the loop runs. One task has it at once; thousands may end in the
    same round of the loop, and share another.
    """

    def __init__(self) -> None:
        self._has_looked = False
        """In this round of the loop."""
        self._asked: dict[Task, asyncio.Future[None]] = {}

    async def find(self, owner: Task) -> None:
        """Note the children of a task whose own code has ended."""
        loop = asyncio.get_running_loop()
        if self._has_looked:
            found = self._asked[owner] = loop.create_future()
            await found
        else:
            self._has_looked = True
            loop.call_soon(self._begin_round, loop, context=Context())
            _note_children(loop, {owner})

    def _begin_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._has_looked = False
        asked, self._asked = self._asked, {}
        if asked:
            _note_children(loop, asked.keys())
        for found in asked.values():
            if not found.done():  # who asked may have been cancelled meanwhile
                found.set_result(None)


def _note_children(loop: asyncio.AbstractEventLoop, owners: Collection[Task]) -> None:
    for child in asyncio.all_tasks(loop):
        owner = None if _is_attempt(child) else owner_of(child)
        if owner is None or owner not in owners:
            continue
        children = owner.more().children
        if child not in children:
            children.add(child)
            child.add_done_callback(children.discard)


def find_orphans(loop: asyncio.AbstractEventLoop, kernel: Kernel) -> dict[asyncio.Task[Any], Task]:
    """Find the children of tasks that have ended, with those tasks."""
    orphans = {}
    for child in asyncio.all_tasks(loop):
        owner = None if _is_attempt(child) else owner_of(child)
        if owner is not None and owner.kernel is kernel and owner.state == DONE:
            orphans[child] = owner
    return orphans


def _is_attempt(child: asyncio.Task[Any]) -> bool:
    """Whether it runs a task, also one that was given up, and is no child of one."""
    return getattr(child.get_coro(), "__name__", "") == ATTEMPT


def owner_of(child: asyncio.Task[Any]) -> Task | None:
    """Give the task whose code an asyncio task runs."""
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
