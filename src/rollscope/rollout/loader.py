"""Drawing items from a data loader without end, and knowing which of them were used.

Positions count items from the beginning of the run, over all rounds through the loader.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

__all__ = ["DataLoader", "Drawn", "LoaderCursor", "LoaderState"]

_NOTHING: Final = object()

LoaderState = dict[str, Any]
"""`position`: the first item that was not used; `used`: positions after it that were."""


class DataLoader(Protocol):
    """Whatever gives batches of items, again and again."""

    @property
    def batch_size(self) -> int | None:
        """How many items training takes at a time."""

    def __iter__(self) -> Iterator[Any]:
        """Begin a round."""


class Drawn(NamedTuple):
    """Where an item comes from."""

    cursor: LoaderCursor
    position: int


class LoaderCursor:
    """A place in a data loader; items are drawn by one thread, and marked as used by any."""

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
        self._round: Iterator[Any] | None = None
        self._batch: Iterator[Any] = iter(())
        self._is_empty = True
        """Whether the round through the loader has given nothing so far."""
        self._returned: deque[tuple[int, Any]] = deque()
        self._drawn = 0
        self._begins_at: int = 0 if state is None else state["position"]
        self._skipped = set() if state is None else set(state["used"])
        self._lock = threading.Lock()
        self._used: set[int] = set(self._skipped)
        self._first_unused = self._begins_at

    def draw(self) -> tuple[int, Any]:
        """Give the next item and its position.

        What the loader raises is let through; the next call asks the loader again.

        Raises:
            RuntimeError: The loader gives none.
        """
        if self._returned:
            return self._returned.popleft()
        while True:
            item = self._next_item()
            position = self._drawn
            self._drawn += 1
            if position >= self._begins_at and position not in self._skipped:
                return position, item

    def put_back(self, position: int, item: Any) -> None:  # noqa: ANN401  (the host's)
        """Take back an item for which there was no room; it is the next to be drawn."""
        self._returned.appendleft((position, item))

    def mark_used(self, positions: Iterable[int]) -> None:
        """Note items that the trainer is done with, trained on or not."""
        with self._lock:
            self._used.update(positions)
            while self._first_unused in self._used:
                self._used.remove(self._first_unused)
                self._first_unused += 1

    def state_dict(self) -> LoaderState:
        """Say where to begin so that nothing drawn and not used is skipped, nor used twice."""
        with self._lock:
            return {"position": self._first_unused, "used": sorted(self._used)}

    def _next_item(self) -> Any:  # noqa: ANN401  (the host's)
        while (item := next(self._batch, _NOTHING)) is _NOTHING:
            self._batch = iter(self._next_batch())
        self._is_empty = False
        return item

    def _next_batch(self) -> Iterable[Any]:
        """Give the items that come next; none where a round ends."""
        if self._round is None:
            self._round, self._is_empty = iter(self.loader), True
        try:
            batch = next(self._round)
        except StopIteration:
            self._round = None
            if self._is_empty:
                raise RuntimeError("the data loader gives no items") from None
            return ()
        except Exception:
            self._is_empty = False  # it broke off; that says nothing of what it has
            raise
        return batch if isinstance(batch, list | tuple) else [batch]
