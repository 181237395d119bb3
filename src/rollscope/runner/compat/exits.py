"""What is to be done when a task runner ends: callbacks of two generations of AReaL's."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable

__all__ = ["Exits", "register_loop_cleanup", "unregister_loop_cleanup"]

_of_loop: Final[weakref.WeakValueDictionary[int, Exits]] = weakref.WeakValueDictionary()
_RAISED: Final = (Exception, asyncio.CancelledError, SystemExit, KeyboardInterrupt)
"""What a callback may raise. A cancellation among it: who awaits what he cancelled gets that."""


class Exits:
    """The callbacks of one runner."""

    def __init__(self) -> None:
        self.cleanups: list[Callable[[], Any]] = []
        """Called after tasks were cancelled, the last one given first."""
        self.hooks: list[Callable[[], Awaitable[Any]]] = []
        """Called before."""

    def belong_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let code that runs on a loop find them."""
        _of_loop[id(loop)] = self

    def unregister(self, callback: Callable[[], Any]) -> None:
        """Forget a callback; nothing happens if there is none."""
        if callback in self.cleanups:
            self.cleanups.remove(callback)

    async def run_cleanups(self, logger: logging.Logger) -> None:
        """Call what is to be called last; an error does not stop the next one."""
        await _run_all(self.cleanups, logger)
        _of_loop.pop(id(asyncio.get_running_loop()), None)

    async def run_hooks(self, logger: logging.Logger) -> None:
        """Call what is to be called while tasks still run."""
        await _run_all(self.hooks, logger)


async def _run_all(callbacks: list[Callable[[], Any]], logger: logging.Logger) -> None:
    while callbacks:
        callback = callbacks.pop()
        try:
            given = callback()
            if inspect.isawaitable(given):
                await given
        except _RAISED:
            if _is_to_stop():
                raise
            logger.exception("%r, called at the end, raised an error", callback)


def _is_to_stop() -> bool:
    """Whether somebody has cancelled the calling itself: it takes too long."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def register_loop_cleanup(
    callback: Callable[[], Any], *, loop: asyncio.AbstractEventLoop | None = None
) -> None:
    """Have something called, sync or async, when the runner of a loop ends.

    Args:
        callback: Takes no arguments.
        loop: The loop of a task runner; the running one if not given.

    Raises:
        RuntimeError: There is no such loop, or it is not one of a task runner.
    """
    _find(loop).cleanups.append(callback)


def unregister_loop_cleanup(
    callback: Callable[[], Any], *, loop: asyncio.AbstractEventLoop | None = None
) -> None:
    """Take back what `register_loop_cleanup` was given."""
    _find(loop).unregister(callback)


def _find(loop: asyncio.AbstractEventLoop | None) -> Exits:
    exits = _of_loop.get(id(loop or asyncio.get_running_loop()))
    if exits is None:
        raise RuntimeError(
            "this loop does not belong to an AsyncTaskRunner, and is not ours to end"
        )
    return exits
