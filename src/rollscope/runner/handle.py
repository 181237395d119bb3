"""A task as the one who submitted it sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Generator

    from rollscope.runner.outcome import Outcome

__all__ = ["Handle"]


class Handle(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Names a task; its outcome can be waited for by a thread or awaited."""

    runner: Any
    id: int

    def result(self, timeout_s: float | None = None) -> Outcome:
        """Wait for the outcome, which nobody else gets meanwhile.

        Raises:
            WaitTimeout: It did not come in time; it can be asked for again.
            OutcomeTaken: Somebody else has fetched it already.
        """
        outcome: Outcome = self.runner.wait_for(self.id, timeout_s)
        return outcome

    def __await__(self) -> Generator[Any, Any, Outcome]:
        """Wait for the outcome, which nobody else gets meanwhile."""
        waiting: Generator[Any, Any, Outcome] = self.runner.await_for(self.id).__await__()
        return waiting

    def __repr__(self) -> str:
        return f"Handle({self.id})"
