"""Calling a plain function of the host without holding up the event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

__all__ = ["call_in_thread", "is_async"]

P = ParamSpec("P")
R = TypeVar("R")


async def call_in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in a thread, under the current span.

    If the waiting is cancelled, the thread runs on and its result is thrown away.

    Raises:
        RuntimeError: The function raised `StopIteration`, which no future can carry: before Python
            3.12 whoever waits for one would wait for ever.
    """

    def call() -> R:
        try:
            return function(*args, **kwargs)
        except StopIteration as error:
            raise RuntimeError(f"{function!r:.200} raised StopIteration") from error

    return await asyncio.to_thread(call)


def is_async(function: Any) -> bool:  # noqa: ANN401  (an object of any type may be callable)
    """Say whether calling something gives a coroutine: an async function, or an object like one."""
    call = getattr(function, "__call__", None)  # noqa: B004  (what the object's class defines)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
