"""Drawing items from a data loader without end, and knowing which of them were used.

Positions count items from the beginning of the run, over all rounds through the loader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

__all__ = ["DataLoader", "LoaderCursor", "LoaderState"]

LoaderState = dict[str, Any]
"""`position`: the first item that was not used; `used`: positions after it that were."""


class DataLoader(Protocol):
    """Whatever gives batches of items, again and again."""

    @property
    def batch_size(self) -> int | None:
        """How many items training takes at a time."""

    def __iter__(self) -> Iterator[Any]:
        """Begin a round."""


class LoaderCursor:
    """A place in a data loader."""

    def __init__(self, loader: DataLoader, state: LoaderState | None = None) -> None:
        """Begin at the start, or where `state` says.

        Raises:
            ValueError: The loader does not say how large its batches are.
        """
        batch_size = getattr(loader, "batch_size", None)
        if not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"the data loader needs a batch_size above zero; it is {batch_size!r}")
        self.loader = loader
        self.batch_size = batch_size
        self._items = self._cycle()
        self._drawn = 0
        self._begins_at: int = 0 if state is None else state["position"]
        self._skipped = set() if state is None else set(state["used"])
        self._unused: set[int] = set()
        self._used: set[int] = set(self._skipped)
        self._first_unused = self._begins_at

    def draw(self) -> tuple[int, Any]:
        """Give the next item and its position.

        Raises:
            RuntimeError: The loader gives none.
        """
        while True:
            item = next(self._items)
            position = self._drawn
            self._drawn += 1
            if position >= self._begins_at and position not in self._skipped:
                self._unused.add(position)
                return position, item

    def mark_used(self, positions: Iterable[int]) -> None:
        """Note items that the trainer is done with, trained on or not."""
        for position in positions:
            self._unused.discard(position)
            self._used.add(position)
        while self._first_unused in self._used:
            self._used.remove(self._first_unused)
            self._first_unused += 1

    def state_dict(self) -> LoaderState:
        """Say where to begin so that nothing drawn and not used is skipped, nor used twice."""
        return {"position": self._first_unused, "used": sorted(self._used)}

    def _cycle(self) -> Iterator[Any]:
        while True:
            is_empty = True
            for batch in self.loader:
                items = batch if isinstance(batch, list | tuple) else [batch]
                for item in items:
                    is_empty = False
                    yield item
            if is_empty:
                raise RuntimeError("the data loader gives no items")
