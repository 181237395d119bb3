"""Batches for training: how many outcomes make one, and when to give up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from rollscope.errors import RunnerError, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.rollout.deliveries import Settled
    from rollscope.runner import Outcome, Runner

__all__ = ["Batch", "BatchBudgetExceeded", "BatchCollector"]

_ATTEMPTS_PER_ITEM: Final = 100


class BatchBudgetExceeded(RunnerError):
    """Too many items were tried for one batch; what was accepted is kept for the next one."""

    def __init__(self, wanted: int, accepted: int, reasons: Counter[str]) -> None:
        """Keep how far it got, and what became of the rest."""
        said = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        super().__init__(
            f"{reasons.total()} outcomes gave {accepted} of the {wanted} wanted for a batch: {said}"
        )
        self.wanted = wanted
        self.accepted = accepted
        self.reasons = dict(reasons)
        """How many outcomes there were, by `status/reason`."""


class Batch(NamedTuple):
    """What was taken for one batch."""

    accepted: list[Settled]
    rejected: list[Settled]


class BatchCollector:
    """Collects the outcomes of items that were drawn from a loader, batch by batch.

    Args:
        runner: Where outcomes come from.
        is_ours: Which of them are ours.
        hand_over: Gives the items of outcomes that were taken.
    """

    def __init__(
        self,
        runner: Runner,
        is_ours: Callable[[Outcome], bool],
        hand_over: Callable[[list[Outcome]], list[Settled]],
    ) -> None:
        self._runner = runner
        self._is_ours = is_ours
        self._hand_over = hand_over
        self._batch = Batch([], [])
        """What there is of the next batch; a call that fails leaves it to the one after it."""

    def collect(
        self, size: int, feed: Callable[[], None], *, dynamic: bool, max_attempts: int | None
    ) -> Batch:
        """Wait for a whole batch.

        Args:
            size: Accepted items wanted, or with `dynamic` items that have ended in any way.
            feed: Keeps inputs queued; called whenever some may have started.
            dynamic: Whether rejected items count.
            max_attempts: Outcomes that one batch may cost; 100 per item if not given.

        Raises:
            BatchBudgetExceeded: It would cost more.
        """
        limit = _ATTEMPTS_PER_ITEM * size if max_attempts is None else max_attempts
        reasons: Counter[str] = Counter()
        while (missing := self._missing(size, dynamic=dynamic)) > 0:
            if reasons.total() >= limit:
                raise self._exceeded(size, reasons)
            feed()
            for settled in self._take(min(missing, limit - reasons.total())):
                outcome = settled.outcome
                reasons[f"{outcome.status}/{outcome.reason}"] += 1
                self._batch[not outcome.is_ok].append(settled)
        batch, self._batch = self._batch, Batch([], [])
        return self._cut(batch, size)

    def _missing(self, size: int, *, dynamic: bool) -> int:
        accepted, rejected = map(len, self._batch)
        return size - accepted - (rejected if dynamic else 0)

    def _cut(self, batch: Batch, size: int) -> Batch:
        """Keep for later what a call with a larger batch has left."""
        self._batch.accepted.extend(batch.accepted[size:])
        return Batch(batch.accepted[:size], batch.rejected)

    def _exceeded(self, size: int, reasons: Counter[str]) -> BatchBudgetExceeded:
        return BatchBudgetExceeded(size, len(self._batch.accepted), reasons)

    def _take(self, at_most: int) -> list[Settled]:
        """Take what is there, those that started first before others; wait for one at least."""
        wait = self._runner.wait
        try:
            taken = wait(at_most, 0, "started", self._is_ours)
        except WaitTimeout as error:
            if error.ready:
                taken = wait(error.ready, 0, "started", self._is_ours)
            else:
                taken = wait(1, None, "started", self._is_ours)
        return self._hand_over(taken)
