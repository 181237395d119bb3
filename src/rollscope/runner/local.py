"""Runs tasks as asyncio tasks of the runner's own loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rollscope.runner.executing import run_rollscope_task
from rollscope.runner.outcome import Reason, Status

if TYPE_CHECKING:
    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task

__all__ = ["LocalLauncher"]


class LocalLauncher:
    """Starts tasks on the loop that the kernel runs on."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._loop: asyncio.AbstractEventLoop | None = None

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this loop."""
        self._loop = loop

    def launch(self, task: Task) -> None:
        """Start an attempt."""
        task.context = context = task.origin.copy()  # each attempt begins with what was submitted
        try:
            name = getattr(task.fn, "__name__", None)
        except Exception:  # code of the user's; the call itself will tell
            name = None
        # Not `loop.create_task`, which asks the task factory: that is for the children of tasks.
        # Named as its function is: it says more than a number, which would be a text for each.
        task.runs_in = asyncio.Task(
            run_rollscope_task(task),
            loop=self._loop,
            name=name,
            context=context,
        )

    def stop(self, task: Task) -> None:
        """Raise `CancelledError` in it; the kernel has noted why."""
        running, stop = task.runs_in, task.stop
        if task.attempt_ns is None:
            # Its first line has not run, and now never will; so it cannot tell us its end.
            running.cancel()
            task.end(*(stop or (Status.CANCELLED, Reason.REQUESTED)))
            self._kernel.ended(task)
        else:
            running.cancel(str(stop[1]) if stop else None)
