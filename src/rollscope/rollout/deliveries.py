"""Which items are out, for whom each is, and which of them the trainer has but has not used."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from rollscope.errors import DuplicateTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rollscope.instrument.spans import Span
    from rollscope.rollout.loader import Drawn
    from rollscope.rollout.samples import Episode
    from rollscope.runner import Outcome

__all__ = ["Deliveries", "Settled", "Unused", "unused"]

_MOST_UNUSED: Final = 65_536
"""So many items are kept for one who never says that they were used."""


class Settled(NamedTuple):
    """An item and how it ended."""

    episode: Episode
    outcome: Outcome


class Unused(NamedTuple):
    """An item that was handed over and not used yet."""

    step: int | None
    """The step it was handed to."""
    spans: list[Span]
    """The sessions that are to be charged to it."""
    drawn: Drawn | None
    """Where in a data loader it was drawn."""


def unused(settled: Iterable[Settled], step: int | None) -> list[Unused]:
    """Note what is left to do for items once they are used; no trajectory is kept alive."""
    return [Unused(step, _spans(one.outcome), one.episode.drawn) for one in settled]


def _spans(outcome: Outcome) -> list[Span]:
    parts = outcome.parts if outcome.is_ok else ()
    return [part.span for part in parts if part.is_ok and part.span is not None]


class Deliveries:
    """Keeps items from their submit until their outcome is fetched, and then until it is used."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._episodes: dict[int, Episode] = {}
        """What was not fetched, by the runner's id."""
        self._theirs: dict[int, int] = {}
        """The runner's id by ours."""
        self._unused: list[Unused] = []

    def check(self, task_id: int) -> None:
        """Refuse an id that is taken.

        Raises:
            DuplicateTask: The outcome of that task was not fetched yet.
        """
        if task_id in self._theirs:
            raise DuplicateTask(
                f"Duplicate task_id: {task_id}. The outcome of that task was not fetched yet."
            )

    def add(self, theirs: int, episode: Episode) -> None:
        """Keep an item."""
        with self._lock:
            self._episodes[theirs], self._theirs[episode.task_id] = episode, theirs

    def forget(self, theirs: int) -> Episode:
        """Keep an item no more."""
        with self._lock:
            return self._forget(theirs)

    def _forget(self, theirs: int) -> Episode:
        episode = self._episodes.pop(theirs)
        del self._theirs[episode.task_id]
        return episode

    def find(self, task_id: int) -> int | None:
        """Give the runner's id of a task whose outcome was not fetched."""
        return self._theirs.get(task_id)

    def missing(self, is_there: Callable[[int], bool]) -> list[int]:
        """Give our ids of what has no outcome, by what says so of the runner's ids."""
        with self._lock:
            return [one.task_id for theirs, one in self._episodes.items() if not is_there(theirs)]

    # --- for whom --------------------------------------------------------------------------------

    def are_for(self, owner: object | None) -> Callable[[Outcome], bool]:
        """Give what picks the outcomes that are for one call; None for those of anybody."""
        return lambda outcome: self._episodes[outcome.id].owner is owner

    def has_any(self, owner: object) -> bool:
        """Whether anything that is for one call was not fetched."""
        with self._lock:
            return any(episode.owner is owner for episode in self._episodes.values())

    def leave_to_anybody(self, owner: object) -> None:
        """Let anybody have what was for a call that has failed."""
        with self._lock:
            for episode in self._episodes.values():
                if episode.owner is owner:
                    episode.owner = None

    # --- handed over -----------------------------------------------------------------------------

    def hand_over(self, outcomes: Iterable[Outcome]) -> list[Settled]:
        """Find the items of outcomes that were taken, and name these as their caller does."""
        settled = []
        with self._lock:
            for outcome in outcomes:
                episode = self._forget(outcome.id)
                settled.append(Settled(episode, replace(outcome, id=episode.task_id)))
        return settled

    def keep_unused(self, got: Iterable[Unused]) -> bool:
        """Note what the trainer has got; true if so much waits that it had better be taken."""
        with self._lock:
            self._unused += [one for one in got if one.spans or one.drawn is not None]
            return len(self._unused) >= _MOST_UNUSED

    def take_unused(self) -> list[Unused]:
        """Give what the trainer has got since the last time."""
        with self._lock:
            unused, self._unused = self._unused, []
        return unused
