"""The gate that episodes pass: bounded in number and in age, a whole group counted once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.rollout.capacity import EngineVersion
    from rollscope.rollout.samples import Episode
    from rollscope.runner import TaskView

__all__ = ["EpisodeGate"]

_RECHECK_S: Final = 0.2
"""How often a version is read that nobody announces."""


class _HeldByEpisode:
    """What an attempt holds of a permit that belongs to its episode: nothing to give back."""

    def release(self) -> None:
        """Do nothing."""


class EpisodeGate:
    """Lets episodes start as the staleness manager says; it counts on nothing but that manager.

    Episodes for evaluation are not trained on, so the manager does not see them; as many of them
    as slots may run beside the others.

    Args:
        manager: A `StalenessManager`, ours or somebody else's.
        version: Looked at with every admission.
        on_version: Told of the version at every look.
        eval_limit: How many episodes for evaluation may run at a time.
    """

    name = "staleness"
    recheck_s = _RECHECK_S

    def __init__(
        self,
        manager: Any,  # noqa: ANN401  (ours, or one with the same calls)
        version: EngineVersion,
        on_version: Callable[[int], None],
        eval_limit: int,
    ) -> None:
        self.manager = manager
        self._version = version
        self._on_version = on_version
        self._eval_limit = max(1, eval_limit)
        self._eval_running = 0
        self._queued = {False: 0, True: 0}
        """Episodes that have not started, by whether they are for evaluation."""
        self._changed = threading.Condition()

    # --- for the runner --------------------------------------------------------------------------

    def available(self) -> int | None:
        """Give no number: it depends on the task."""
        return None

    def subscribe(self, wake: Callable[[], None]) -> None:
        """Have `wake` called when more may start."""
        subscribe = getattr(self.manager, "subscribe", None)
        if subscribe is not None:
            subscribe(wake)

    def admits(self, task: TaskView) -> bool:
        """Whether a sample may start: its episode has a place, or there is one for it."""
        episode = _episode_of(task)
        if episode.is_admitted:
            return True
        if episode.is_eval:
            return self._eval_running < self._eval_limit
        self._on_version(self._version.get_version())
        return int(self.manager.get_capacity()) > 0

    def acquire(self, task: TaskView) -> _HeldByEpisode:
        """Give an episode its place with its first sample."""
        episode = _episode_of(task)
        if not episode.is_admitted:
            self._leave_queue(episode)
        return _HeldByEpisode()

    def set_version(self, version: int) -> None:
        """Tell the version now in force."""
        tell = getattr(self.manager, "set_version", None)
        if tell is not None:
            tell(version)

    def numbers(self) -> dict[str, float | None]:
        """Give what capacity is made of."""
        numbers = getattr(self.manager, "numbers", None)
        known: dict[str, float | None] = (
            {"capacity": self.manager.get_capacity()} if numbers is None else numbers()
        )
        return known

    # --- for the executor ------------------------------------------------------------------------

    def queued(self, *, is_eval: bool = False) -> int:
        """Count the episodes that have not started."""
        return self._queued[is_eval]

    def enter(self, episode: Episode) -> None:
        """Count an episode as waiting. It may have started already: only sums matter."""
        with self._changed:
            self._queued[episode.is_eval] += 1
        if not episode.is_eval:
            self.manager.on_rollout_enqueued()

    def end(self, episode: Episode, *, accepted: bool) -> None:
        """Count an episode as accepted or rejected, whichever way it ended, and free its place."""
        if not episode.is_admitted:
            self._leave_queue(episode)
        if episode.is_eval:
            self._eval_running -= 1
        elif accepted:
            self.manager.on_rollout_accepted()
        else:
            self.manager.on_rollout_rejected()

    def wait_for_room(self, limit: int, timeout_s: float) -> bool:
        """Wait until fewer than `limit` episodes wait; false if that is not so in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._queued[False] < limit, timeout_s)

    def _leave_queue(self, episode: Episode) -> None:
        episode.is_admitted = True
        with self._changed:
            self._queued[episode.is_eval] -= 1
            self._changed.notify_all()
        if episode.is_eval:
            self._eval_running += 1
        else:
            self.manager.on_rollout_submitted()


def _episode_of(task: TaskView) -> Episode:
    episode: Episode = task.args[0]
    return episode
