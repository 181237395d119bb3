"""Runners whose hours take milliseconds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from rollscope.runner import Runner
from rollscope.testing import VirtualTimeLoop, run_virtual

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Stage:
    """A virtual loop with a runner on it."""

    def __init__(self, loop: VirtualTimeLoop, runner: Runner) -> None:
        self.loop = loop
        self.runner = runner
        self._began = loop.time()

    @property
    def passed_s(self) -> float:
        """How much time has gone by."""
        return self.loop.time() - self._began


async def turn_until(condition: Callable[[], object], delay_s: float = 0.0) -> None:
    """Let the loop turn until something is so."""
    while True:
        if condition():
            return
        await asyncio.sleep(delay_s)


def play(main: Callable[[Stage], Coroutine[Any, Any, T]], **settings: Any) -> T:
    """Run a coroutine beside a runner, both in virtual time."""

    async def with_runner(loop: VirtualTimeLoop) -> T:
        async with Runner(clock=loop.clock_ns, probe_s=None, **settings) as runner:
            return await main(Stage(loop, runner))

    return run_virtual(with_runner)
