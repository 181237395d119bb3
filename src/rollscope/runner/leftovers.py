"""What goes on after its task has ended: attempts that were given up, and children left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.runner.children import find_orphans

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from rollscope.runner.kernel import Kernel
    from rollscope.runner.task import Task

__all__ = ["Leftovers"]


class Leftovers:
    """Counts and shows them, and ends what can be ended."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.zombies: set[Task] = set()
        """Tasks that did not end when told to, with their outcome made."""
        self.late_results = 0
        """What zombies have returned, for nobody."""
        self._orphans: dict[asyncio.Task[Any], Task] = {}

    def returned(self, task: Task) -> None:
        """Note that a task has ended that was given up."""
        self.late_results += 1
        self.zombies.discard(task)

    def attempt_returned(self, runs_in: object) -> None:
        """Note that an attempt has ended that was given up and followed by another."""
        self.late_results += 1
        self.forget_attempt(runs_in)

    def forget_attempt(self, runs_in: object) -> None:
        """Count an attempt that was given up no more: what executed it is done with it."""
        self.zombies = {one for one in self.zombies if one.runs_in is not runs_in}

    def add_orphans(self, owner: Task, children: Iterable[asyncio.Task[Any]]) -> None:
        """Remember asyncio tasks that outlive the task they belong to."""
        for child in list(children):
            if child not in self._orphans:
                self._orphans[child] = owner
                child.add_done_callback(self._orphans.pop)

    def orphans(self) -> dict[asyncio.Task[Any], Task]:
        """Give the asyncio tasks that outlive the task they belong to, with that task."""
        kernel = self._kernel
        if kernel.finds_children_by_context and kernel.loop is not None:
            return self._orphans | find_orphans(kernel.loop, kernel)
        return self._orphans.copy()

    def cancel_orphans(self) -> None:
        """End asyncio tasks that outlive the task they belong to."""
        for orphan in self.orphans():
            if not orphan.cancelling():
                orphan.cancel()
