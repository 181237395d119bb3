"""What an actor has to tell the head, gathered into few messages.

Every message costs both sides about a millisecond of a core, so at full rate one goes out every
few milliseconds with all that has happened; when little happens an end is told at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from rollscope.runner.ray.wire import Report, encode

if TYPE_CHECKING:
    from rollscope.runner.ray.wire import Done, Quiet, Saved, Start

__all__ = ["Mailbox"]

_PACE_S: Final = 0.008
"""Least time between two reports."""
_START_S: Final = 0.05
"""How long a start or a checkpoint may wait for company."""
_PATIENCE_S: Final = 10.0
"""After so long the head gets an empty answer."""


class Mailbox:
    """Keeps what has happened until the head has confirmed that it knows; belongs to the loop."""

    def __init__(self) -> None:
        self._starts: dict[int, Start] = {}
        self._saved: dict[int, Saved] = {}
        self._done: list[Done] = []
        self._returned: list[int] = []
        self._quiet: Quiet | None = None
        self._number = 0
        self._unconfirmed: deque[tuple[int, bytes]] = deque()
        self._news = asyncio.Event()
        self._due: asyncio.TimerHandle | None = None
        self._sent_s = 0.0
        self._readers = 0

    def started(self, start: Start) -> None:
        """Tell that an attempt has begun."""
        self._starts[start.lease] = start
        self._wake_soon()

    def saved(self, saved: Saved) -> None:
        """Tell of a checkpoint; only the last one counts."""
        self._saved[saved.lease] = saved
        self._wake_soon()

    def done(self, done: Done) -> None:
        """Tell that an attempt has ended."""
        self._starts.pop(done.lease, None)  # the end tells when it began, too
        self._done.append(done)
        self._news.set()

    def returned(self, lease: int) -> None:
        """Hand a lease back."""
        self._returned.append(lease)
        self._news.set()

    def quiet(self, quiet: Quiet) -> None:
        """Tell that nothing touches the engine."""
        self._quiet = quiet
        self._news.set()

    async def read(self, confirmed: int) -> bytes:
        """Give the next report, or nothing if there is none for long.

        Args:
            confirmed: The last report that the head has; a later one that got lost is given again.
        """
        while self._unconfirmed and self._unconfirmed[0][0] <= confirmed:
            self._unconfirmed.popleft()
        if self._unconfirmed:
            return self._unconfirmed[0][1]
        self._readers += 1
        reader = self._readers
        if not await self._wait_for_news() or reader != self._readers:
            return b""  # a reader that came later, because this one was given up, gets the news
        return self._write()

    async def _wait_for_news(self) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._news.wait()
        except TimeoutError:
            return False
        early_s = self._sent_s + _PACE_S - time.monotonic()
        if early_s > 0:
            await asyncio.sleep(early_s)
        return True

    def _write(self) -> bytes:
        self._number += 1
        data = encode(
            Report(
                self._number,
                list(self._starts.values()),
                list(self._saved.values()),
                self._done,
                self._returned,
                self._quiet,
            )
        )
        self._starts, self._saved, self._done, self._returned = {}, {}, [], []
        self._quiet = None
        self._news.clear()
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._unconfirmed.append((self._number, data))
        self._sent_s = time.monotonic()
        return data

    def _wake_soon(self) -> None:
        if self._due is None and not self._news.is_set():
            self._due = asyncio.get_running_loop().call_later(_START_S, self._news.set)
