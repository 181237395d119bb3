"""Pauses: who holds the runner back, how, and since when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.runner.task import Task

__all__ = ["PauseMode", "Pauses"]

PauseMode = Literal["finish", "hold", "abort"]


class Pauses:
    """Keeps the owners of pauses. The runner's lock guards changes; reads need none."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self.owners: dict[object, PauseMode] = {}
        self.is_paused = False
        self.is_holding = False
        self.held: dict[Task, int] = {}
        """Tasks that wait at a pause point, with how many of their coroutines."""
        self._resumed: asyncio.Event | None = None
        self._since_ns = 0
        self._paused_ns = 0

    def add(self, owner: object, mode: PauseMode) -> bool:
        """Let an owner hold the runner; false, and nothing changes, if it does already."""
        if owner in self.owners:
            return False
        if not self.owners:
            self._since_ns = self._clock()
        self.owners[owner] = mode
        self._look()
        return True

    def named_owners(self) -> str:
        """Name those who hold the runner and have a name."""
        return ", ".join(owner for owner in self.owners if isinstance(owner, str))

    def remove(self, owner: object) -> bool:
        """Let an owner go; false if it held nothing."""
        if owner not in self.owners:
            return False
        del self.owners[owner]
        if not self.owners:
            self._paused_ns += self._clock() - self._since_ns
        self._look()
        return True

    def clear(self) -> None:
        """Let all go."""
        for owner in list(self.owners):
            self.remove(owner)

    def _look(self) -> None:
        self.is_paused = bool(self.owners)
        self.is_holding = "hold" in self.owners.values()

    def paused_ns(self) -> int:
        """Say how long pauses took in sum, up to now."""
        current_ns = self._clock() - self._since_ns if self.owners else 0
        return self._paused_ns + current_ns

    async def hold(self, task: Task) -> None:
        """Wait with a task until nobody holds; on the loop thread."""
        self.held[task] = self.held.get(task, 0) + 1
        try:
            while self.is_holding:
                if self._resumed is None:
                    self._resumed = asyncio.Event()
                await self._resumed.wait()
        finally:
            self.held[task] -= 1
            if not self.held[task]:
                del self.held[task]

    def is_held(self, task: Task) -> bool:
        """Say whether a task waits at a pause point, with all that it runs."""
        wanted = 1 if task.rare is None else task.rare.holders
        return self.held.get(task, 0) >= wanted

    def let_go(self) -> None:
        """Wake the tasks that wait, if nobody holds any more; on the loop thread."""
        if not self.is_holding and self._resumed is not None:
            self._resumed.set()
            self._resumed = None
