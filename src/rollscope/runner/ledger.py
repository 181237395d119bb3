"""Where all accepted tasks are: counts that always add up."""

from dataclasses import dataclass

__all__ = ["Ledger"]


@dataclass(slots=True)
class Ledger:
    """How many tasks are where; `submitted` is the sum of all others."""

    submitted: int = 0
    queued: int = 0
    backoff: int = 0
    running: int = 0
    outbox: int = 0
    delivered: int = 0

    @property
    def unfinished(self) -> int:
        """How many have no outcome yet."""
        return self.queued + self.backoff + self.running

    def adds_up(self) -> bool:
        """Whether every task is in exactly one place."""
        return self.submitted == self.unfinished + self.outbox + self.delivered
