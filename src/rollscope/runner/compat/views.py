"""What code for AReaL's task runner reads and sets directly: its queues, and its pause flag."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PauseFlag", "QueueView"]


class QueueView:
    """A queue to look at; nothing can be put into it."""

    def __init__(self, maxsize: int, qsize: Callable[[], int]) -> None:
        self.maxsize = maxsize
        self._qsize = qsize

    def qsize(self) -> int:
        """Count what is in it."""
        return self._qsize()

    def empty(self) -> bool:
        """Whether nothing is in it."""
        return self._qsize() == 0

    def full(self) -> bool:
        """Whether it holds as much as it should."""
        return self._qsize() >= self.maxsize


class PauseFlag(threading.Event):
    """An event that pauses while it is set."""

    def __init__(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        super().__init__()
        self._pause = pause
        self._resume = resume

    def set(self) -> None:
        """Pause."""
        super().set()
        self._pause()

    def clear(self) -> None:
        """Resume."""
        super().clear()
        self._resume()
