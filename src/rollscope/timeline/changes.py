"""What changed when: the memory from which a page that was away catches up."""

from collections import deque
from typing import Final

import msgspec

from rollscope.errors import RollscopeError
from rollscope.timeline.columns import Rows
from rollscope.timeline.growth import Placed

__all__ = ["Change", "Changes", "DeltaTooOld"]

_MOST_SPANS: Final = 200_000


class DeltaTooOld(RollscopeError):
    """What happened since then is not known any more; ask for the whole again."""


class Change(msgspec.Struct):
    """What one look at the run brought."""

    number: int
    settled: Rows
    """Spans that came with their end."""
    opened: list[Placed]
    changed: list[Placed]
    """Spans with a handle that have ended, or whose flags are others now."""

    def __len__(self) -> int:
        return len(self.settled) + len(self.opened) + len(self.changed)


class Changes:
    """The latest changes, numbered; old ones are forgotten when there are too many."""

    def __init__(self, number: int = 1) -> None:
        self.number = number
        """Of the latest change."""
        self._known: deque[Change] = deque()
        self._spans = 0

    def add(self, settled: Rows, opened: list[Placed], changed: list[Placed]) -> None:
        """Note a change."""
        self.number += 1
        self._known.append(Change(self.number, settled, opened, changed))
        self._spans += len(self._known[-1])
        while self._spans > _MOST_SPANS:
            self._spans -= len(self._known.popleft())

    def forget(self) -> None:
        """Start anew: numbers that were given out mean nothing any more."""
        self.number += 1
        self._known.clear()
        self._spans = 0

    def since(self, number: int) -> Change:
        """Give all that happened since a number, each span once, as it is now.

        Raises:
            DeltaTooOld: Some of that is forgotten, or the number is none of ours.
        """
        oldest = self._known[0].number - 1 if self._known else self.number
        if not oldest <= number <= self.number:
            raise DeltaTooOld(
                f"changes since {number} are not kept, only those since {oldest}; load anew"
            )
        settled = [Rows.none()]
        opened: dict[int, Placed] = {}
        changed: dict[int, Placed] = {}
        for change in self._known:
            if change.number > number:
                settled.append(change.settled)
                opened |= {span.handle: span for span in change.opened}
                changed |= {
                    span.handle: span for span in change.changed if span.handle not in opened
                }
        return Change(
            self.number, Rows.join(settled), list(opened.values()), list(changed.values())
        )
