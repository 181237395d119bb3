"""What a runner counts about itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rollscope.runner.outcome import Reason, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.runner.outcome import Outcome

__all__ = ["Figures", "Histogram", "Stats"]

_BUCKETS: Final = 48
"""Powers of two of a microsecond, roughly; the last is nine years."""


class Histogram:
    """Durations by powers of two."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        """Begin empty."""
        self.counts = [0] * _BUCKETS

    def add(self, duration_ns: int) -> None:
        """Count a duration."""
        self.counts[(duration_ns >> 10).bit_length()] += 1

    def percentile_s(self, percent: float) -> float | None:
        """Give the upper bound of the bucket that a percentile lies in; None if it is empty."""
        total = sum(self.counts)
        if not total:
            return None
        wanted = total * percent / 100
        seen = 0
        for power, count in enumerate(self.counts):
            seen += count
            if seen >= wanted:
                return float((1 << power) * 1024) / 1e9
        return None


class Stats(msgspec.Struct, kw_only=True):
    """A runner at one moment."""

    queued: int
    running: int
    outbox: int
    slot_seconds: float
    """Sum over time of how many tasks ran."""
    outcomes: dict[str, int]
    """By `status/reason`."""
    retries: int
    cancels: int
    queued_p50_s: float | None
    queued_p99_s: float | None
    running_p50_s: float | None
    running_p99_s: float | None
    undelivered_p50_s: float | None
    undelivered_p99_s: float | None
    ages: dict[int, int]
    """Outcomes by age at delivery."""
    producer_blocked_s: float
    consumer_blocked_s: float
    loop_lag_s: float
    binding_gate: str | None
    """What holds the next task back."""
    binding_s: dict[str, float]
    """How long each gate did."""
    late_results: int
    doubled_results: int = 0


class Figures:
    """The counts, as they are kept."""

    def __init__(self, now_ns: int) -> None:
        self.queued, self.running, self.undelivered = Histogram(), Histogram(), Histogram()
        self._queued, self._running = self.queued.counts, self.running.counts
        self.outcomes: dict[tuple[Any, Any], int] = {}
        self.too_old = self.run_again = 0
        """Of those that were good: refused when they were handed over, or not handed over at all.
        Not taken off `outcomes`, which only the loop thread may change."""
        self.ages: Counter[int] = Counter()
        self.retries = self.cancels = 0
        self.slot_ns = 0
        self.producer_blocked_ns = self.consumer_blocked_ns = 0
        self._changed_ns = now_ns
        self.ended_ns = now_ns
        """When the last task ended."""

    def verdicts(self) -> dict[tuple[Any, Any], int]:
        """Count outcomes by what they say, or would say if they were handed over now."""
        counts = self.outcomes.copy()
        if self.too_old or self.run_again:
            good, stale = (Status.OK, Reason.ACCEPTED), (Status.STALE, Reason.TOO_OLD)
            counts[good] = counts.get(good, 0) - self.too_old - self.run_again
            counts[stale] = counts.get(stale, 0) + self.too_old
        return {verdict: count for verdict, count in counts.items() if count}

    def slot_ns_until(self, running: int, now_ns: int) -> int:
        """Give the sum over time of how many tasks ran, up to now."""
        return self.slot_ns + running * (now_ns - self._changed_ns)

    def running_changed(self, was: int, now_ns: int) -> None:
        """Add up what ran until now."""
        self.slot_ns += was * (now_ns - self._changed_ns)
        self._changed_ns = now_ns

    def ended(self, outcomes: Sequence[Outcome]) -> None:
        """Count tasks that have ended."""
        queued, running = self._queued, self._running
        status = reason = None
        alike = 0
        for outcome in outcomes:
            if outcome.status is not status or outcome.reason is not reason:
                if alike:
                    self._count(status, reason, alike)
                status, reason, alike = outcome.status, outcome.reason, 0
            alike += 1
            admitted_ns = outcome.admitted_ns
            if admitted_ns is not None:
                queued[(admitted_ns - outcome.submitted_ns >> 10).bit_length()] += 1
                running[(outcome.execution_ns >> 10).bit_length()] += 1
        if alike:
            self._count(status, reason, alike)
            self.ended_ns = outcomes[-1].finished_ns

    def _count(self, status: Status | None, reason: Reason | None, count: int) -> None:
        key = status, reason
        self.outcomes[key] = self.outcomes.get(key, 0) + count
