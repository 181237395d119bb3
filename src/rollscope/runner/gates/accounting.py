"""Counts how many items are out, and from it how many more may start at this version.

One set of counters with two ways to read it:

- `versions`: each version is taken to have consumed exactly one batch of accepted items. It needs
  nobody to report anything, and is wrong as soon as batches are smaller: the window then grows
  with every version.
- `events`: the consumer reports what its batches took. In force from the first report on, and
  seeded with what `versions` would have assumed, so that capacity does not jump.

Each item is reported once: as consumed, as filtered, or as discarded.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from rollscope.runner.gates.base import Subscribers

__all__ = ["RolloutStat", "StalenessCounters", "VersionProvider"]


class VersionProvider(Protocol):
    """Whoever knows the version of the weights."""

    def get_version(self) -> int:
        """Give the version in force."""


@dataclass
class RolloutStat:
    """How many items are where."""

    accepted: int = 0
    enqueued: int = 0
    rejected: int = 0
    running: int = 0

    @property
    def submitted(self) -> int:
        """Everything that was ever started."""
        return self.accepted + self.rejected + self.running


class StalenessCounters:
    """The counters of one run, safe to use from any thread.

    Args:
        version_provider: Asked whenever capacity is, outside of the lock. None: the version is
            what `set_version` said last.
        max_concurrent_rollouts: How many items may run at a time, at least 1; None for no limit.
        consumer_batch_size: Items of one batch, taken as at least 1.
        max_staleness: How many versions old an item may be when it is consumed.
        dynamic: Whether a batch counts rejected items too. Saying so, here or with `set_dynamic`,
            promises reports and puts `events` in force at once. None: batches are dynamic from
            the first `filtered` on. What was rejected before that gave its room back, so for a
            start the window may be too wide.
    """

    def __init__(
        self,
        version_provider: VersionProvider | None,
        max_concurrent_rollouts: int | None,
        consumer_batch_size: int,
        max_staleness: int,
        *,
        dynamic: bool | None = None,
    ) -> None:
        self.version_provider = version_provider
        self.max_concurrent_rollouts = max_concurrent_rollouts
        self.consumer_batch_size = consumer_batch_size
        self.max_staleness = max_staleness
        self.lock = threading.Lock()
        self.rollout_stat = RolloutStat()
        self.subscribers = Subscribers()
        self._version = 0
        self._provided: int | None = None
        self._version_changes = 0
        self._dynamic = dynamic
        self._settled: int | None = None if dynamic is None else 0
        """Items that versions have used up; None while `versions` is in force."""
        self._pending_accepted = 0
        self._pending_rejected = 0
        """Taken by a batch, and settled by the next version."""
        self._untaken_rejected = 0
        """Rejected, and not known to have been taken by a batch."""
        self._arrived_rejected = 0
        """Rejected that count as arrived."""

    @property
    def accounting(self) -> Literal["versions", "events"]:
        """Which way of counting is in force."""
        return "versions" if self._settled is None else "events"

    def capacity(self) -> int:
        """Count the items that may start now; may be below zero."""
        self._ask_provider()
        with self.lock:
            room = self._window() - self._outstanding()
            if self.max_concurrent_rollouts is None:
                return room
            return min(max(1, self.max_concurrent_rollouts) - self.rollout_stat.running, room)

    def numbers(self) -> dict[str, float | None]:
        """Give what capacity is made of."""
        with self.lock:
            return {
                "version": self._version,
                "window": self._window(),
                "outstanding": self._outstanding(),
                "running": self.rollout_stat.running,
                "concurrency": self.max_concurrent_rollouts,
            }

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, when capacity may have grown."""
        self.subscribers.add(wake)

    def count(
        self, *, enqueued: int = 0, running: int = 0, accepted: int = 0, rejected: int = 0
    ) -> None:
        """Add to the counters, all at once and without guards; wakes nobody."""
        with self.lock:
            stat = self.rollout_stat
            stat.enqueued += enqueued
            stat.running += running
            stat.accepted += accepted
            stat.rejected += rejected
            self._untaken_rejected += rejected
            if self._dynamic:
                self._arrived_rejected += rejected

    def consumed(self, count: int) -> None:
        """Report that a batch took `count` accepted items; the next version settles them."""
        self._report(accepted=count)

    def filtered(self, count: int) -> None:
        """Report that a batch took `count` rejected items; the next version settles them.

        Once a whole batch of rejected ones is there and not one accepted, all settle at once:
        nobody trains on such a batch, so no version would ever come for it.
        """
        self._report(rejected=count)

    def batch_taken(self, accepted: int, rejected: int) -> None:
        """Report a whole batch; one without any accepted item settles at once."""
        self._report(accepted=accepted, rejected=rejected, is_whole=True)

    def discarded(self, count: int, *, was_consumed: bool = False) -> None:
        """Report accepted items that will never be trained on; they settle at once.

        Args:
            count: How many.
            was_consumed: Whether they had been reported as consumed, as those of a batch that the
                trainer skips have.
        """
        self._ask_provider()
        with self.lock:
            self._switch_to_events()
            if was_consumed:
                count = min(count, self._pending_accepted)
                self._pending_accepted -= count
            self._settle(count)
        self.subscribers.wake_all()

    def set_version(self, version: int) -> None:
        """Tell the version now in force; repeating it settles nothing."""
        with self.lock:
            self._enter_version(version)
        self.subscribers.wake_all()

    def on_version_recovered(self, version: int) -> None:
        """Resume at `version` as if its batches had been consumed and nothing else were out."""
        with self.lock:
            if self.version_provider is None:
                self._version = version
            self.rollout_stat.accepted = version * self._batch()
            self._forget_reports()
            if self._settled is not None:
                self._settled = self.rollout_stat.accepted
        self.subscribers.wake_all()

    def set_dynamic(self, dynamic: bool) -> None:
        """Say whether batches count rejected items from now on.

        Exact at any time if `filtered` was always called for rejected items that were taken, by
        batches that do not count them too.
        """
        self._ask_provider()
        with self.lock:
            self._switch_to_events()
            if dynamic != bool(self._dynamic):
                self._arrived_rejected += self._untaken_rejected * (1 if dynamic else -1)
            self._dynamic = dynamic
        self.subscribers.wake_all()

    def _report(self, accepted: int = 0, rejected: int = 0, *, is_whole: bool = False) -> None:
        self._ask_provider()
        with self.lock:
            self._switch_to_events()
            if rejected and self._dynamic is None:
                self._dynamic = True
                self._arrived_rejected += self._untaken_rejected
            rejected = self._take_rejected(rejected)
            if is_whole and not accepted:
                self._settle(rejected)
                rejected = 0
            self._pending_accepted += accepted
            self._pending_rejected += rejected
            if not self._pending_accepted and self._pending_rejected >= self._batch():
                self._settle_pending()
        self.subscribers.wake_all()

    def _take_rejected(self, count: int) -> int:
        """Take rejected items from those that wait; gives how many of them had arrived."""
        taken = min(count, self._untaken_rejected)
        self._untaken_rejected -= taken
        return taken if self._dynamic else 0

    def _ask_provider(self) -> None:
        """Read the version anew; a change counts as `set_version`.

        Somebody else's code runs without our lock. Of two threads that ask across a change, the
        one with the older answer must not undo what the other has entered.
        """
        if self.version_provider is None:
            return
        changes = self._version_changes
        version = self.version_provider.get_version()
        with self.lock:
            if changes != self._version_changes or version == self._provided:
                return
            # A provider may lag behind `set_version`; only its own changes count.
            self._provided = version
            self._version_changes += 1
            self._enter_version(version)

    def _enter_version(self, version: int) -> None:
        if version == self._version:
            return
        self._version = version
        self._version_changes += 1
        self._settle_pending()
        if self._dynamic is None:
            # The batch of this version did not report rejected items: it passed them over.
            self._untaken_rejected = 0

    def _switch_to_events(self) -> None:
        if self._settled is None:
            self._settled = self._version * self._batch()

    def _settle(self, count: int) -> None:
        if self._settled is not None:
            self._settled += count

    def _settle_pending(self) -> None:
        self._settle(self._pending_accepted + self._pending_rejected)
        self._pending_accepted = self._pending_rejected = 0

    def _forget_reports(self) -> None:
        self._pending_accepted = self._pending_rejected = 0
        self._untaken_rejected = self._arrived_rejected = 0

    def _batch(self) -> int:
        return max(1, self.consumer_batch_size)

    def _window(self) -> int:
        """Count the items that may be out: for this version, or over all versions so far."""
        versions = self._version if self._settled is None else 0
        return (self.max_staleness + versions + 1) * self._batch()

    def _outstanding(self) -> int:
        stat = self.rollout_stat
        if self._settled is None:
            return stat.accepted + stat.running
        return stat.accepted + self._arrived_rejected - self._settled + stat.running
