"""What the tasks of the benchmark do, for event loops and for threads."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IN_THREADS", "nap", "noop", "park"]


async def noop() -> None:
    """Do nothing."""


async def nap(seconds: float) -> tuple[float, float]:
    """Sleep; gives when it began and ended."""
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    return began, time.perf_counter()


async def park() -> None:
    """Wait for what never comes, as for an engine that does not answer."""
    await asyncio.get_running_loop().create_future()


def _noop_in_thread() -> None:
    """Do nothing."""


def _nap_in_thread(seconds: float) -> tuple[float, float]:
    began = time.perf_counter()
    time.sleep(seconds)
    return began, time.perf_counter()


IN_THREADS: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    noop: _noop_in_thread,
    nap: _nap_in_thread,
}
"""The same work for a thread; parked threads are not offered."""
