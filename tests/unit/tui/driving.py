"""Driving `rollscope top` without a terminal: what it shows, and waiting until it does."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from textual.events import Key

from rollscope.store.run import find_run
from rollscope.tui.app import TopApp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from pathlib import Path
    from typing import Any

    from textual.pilot import Pilot

SMALL = (80, 24)
LARGE = (200, 60)
_PATIENCE_S = 30.0


class Driver:
    """An app at work."""

    def __init__(self, app: TopApp, pilot: Pilot[Exception | None]) -> None:
        self.app = app
        self._pilot = pilot

    @property
    def text(self) -> str:
        """What the terminal shows, line by line."""
        strips = self.app.screen._compositor.render_strips()  # there is no public way to text
        return "\n".join("".join(part.text for part in strip).rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    def burst(self, *keys: str) -> None:
        """Have keys arrive at once, as over a slow line."""
        for key in keys:
            self.app.post_message(Key(key, key))

    async def resize(self, width: int, height: int) -> None:
        await self._pilot.resize_terminal(width, height)

    async def see(self, *words: str, no: str = "\0") -> str:
        """Wait until all of the words are shown, and one is not; give the whole text."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while no in self.text or not all(word in self.text for word in words):
            assert time.monotonic() < deadline_s, f"{words} never came:\n{self.text}"
            await self._pilot.pause(0.02)
        return self.text

    async def end(self) -> None:
        """Wait until the app ends by itself."""
        while self.app.is_running and self.app.return_value is None:
            await self._pilot.pause(0.02)


@asynccontextmanager
async def top(run: Path, size: tuple[int, int] = SMALL) -> AsyncIterator[Driver]:
    """Run the app on a run, which need not be there."""
    app = TopApp(lambda: find_run(str(run)), every_s=0.1, threads=1)
    async with app.run_test(size=size, notifications=True) as pilot:
        yield Driver(app, pilot)


def drive(story: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine to its end."""
    asyncio.run(story)
