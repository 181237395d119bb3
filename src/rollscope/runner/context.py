"""What a running task can learn and say, from anywhere in its code: `ctx`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from rollscope.runner.task import Task

__all__ = ["TaskContext", "ctx", "current_task"]

current_task: ContextVar[Task | None] = ContextVar("rollscope_task", default=None)
"""The task whose code runs."""


class TaskContext:
    """The running task, as its own code sees it; outside of one it knows and does nothing."""

    __slots__ = ()

    @property
    def id(self) -> int | None:
        """Its id."""
        task = current_task.get()
        return None if task is None else task.id

    @property
    def attempt(self) -> int | None:
        """Which execution of the task this is, from 1."""
        task = current_task.get()
        return None if task is None else task.attempt

    @property
    def version(self) -> int | None:
        """The weight version as it is now."""
        task = current_task.get()
        version: int | None = None if task is None else task.kernel.version
        return version

    @property
    def deadline(self) -> int | None:
        """When its time limit ends, on the runner's clock; None if it has none."""
        task = current_task.get()
        if task is None or task.options.timeout_s is None or task.started_ns is None:
            return None
        return task.started_ns + int(task.options.timeout_s * 1e9)

    @property
    def tags(self) -> Mapping[str, Any]:
        """Labels it was submitted with."""
        task = current_task.get()
        return {} if task is None else task.options.tags

    @property
    def partial(self) -> Any:  # noqa: ANN401  (whatever was checkpointed)
        """The last checkpoint of an earlier attempt."""
        task = current_task.get()
        return None if task is None or task.rare is None else task.rare.partial

    def progress(self) -> None:
        """Say that it gets on, for its no-progress limit."""
        task = current_task.get()
        if task is not None:
            task.kernel.note_progress(task)

    def checkpoint(self, state: Any) -> None:  # noqa: ANN401
        """Keep what a later attempt can go on from; says that it gets on, too."""
        task = current_task.get()
        if task is not None:
            task.more().partial = state
            task.kernel.note_progress(task)
            task.kernel.checkpointed(task)

    async def pause_point(self) -> None:
        """Wait here while the runner is paused with `hold`; a place where that does no harm."""
        task = current_task.get()
        if task is not None and task.kernel.is_holding:
            await task.kernel.hold(task)

    def on_cancel(self, act: Callable[[], Awaitable[object]]) -> None:
        """Have something done if the task is told to stop, such as aborting a request."""
        task = current_task.get()
        if task is not None:
            task.more().cancel_hooks.append(act)


ctx = TaskContext()
"""The running task."""
