"""AReaL's staleness manager, name for name, over the counters that the gate uses too."""

from dataclasses import replace

from rollscope.runner.gates.accounting import RolloutStat, StalenessCounters, VersionProvider

__all__ = ["RolloutStat", "StalenessManager", "VersionProvider"]


class StalenessManager(StalenessCounters):
    """Keeps count of rollouts, and of how many more may start.

    Nothing is guarded: endings may be counted before their starts, and only sums matter. Beyond
    AReaL's calls it takes the reports of `StalenessCounters`; without them it counts as AReaL's
    does.

    Args:
        version_provider: Asked with every call of `get_capacity`. None: the version is the
            argument of that call or, without one, what `set_version` said last.
        max_concurrent_rollouts: How many may run at a time, taken as at least 1.
        consumer_batch_size: How many a version consumes, taken as at least 1.
        max_staleness: How many versions old one may be when it is consumed.
    """

    max_concurrent_rollouts: int

    def __init__(
        self,
        version_provider: VersionProvider | None,
        max_concurrent_rollouts: int,
        consumer_batch_size: int,
        max_staleness: int,
    ) -> None:
        super().__init__(
            version_provider, max_concurrent_rollouts, consumer_batch_size, max_staleness
        )

    def get_capacity(self, current_version: int | None = None) -> int:
        """Count the rollouts that may start now; may be below zero.

        Args:
            current_version: The version, where there is no provider; counts as `set_version`.
        """
        if current_version is not None:
            with self.lock:
                self._enter_version(current_version)
        return self.capacity()

    def get_pending_limit(self) -> int:
        """Count the inputs worth keeping ready."""
        return (self.max_staleness + 1) * self.consumer_batch_size

    def get_stats(self) -> RolloutStat:
        """Copy the counts."""
        with self.lock:
            return replace(self.rollout_stat)

    def on_rollout_enqueued(self) -> None:
        """Count one more as waiting."""
        self.count(enqueued=1)

    def on_rollout_submitted(self) -> None:
        """Move one from waiting to running."""
        self.count(enqueued=-1, running=1)

    def on_rollout_accepted(self) -> None:
        """Move one from running to accepted."""
        self.count(running=-1, accepted=1)
        self.subscribers.wake_all()

    def on_rollout_rejected(self) -> None:
        """Move one from running to rejected, which gives its room back."""
        self.count(running=-1, rejected=1)
        self.subscribers.wake_all()
