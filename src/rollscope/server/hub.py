"""Who listens to which run: threads say how far runs have come, streams of events pass it on.

News are not queued. A stream that was busy sees the newest state when it looks again, with all
that changed since, so a slow reader costs nothing and misses nothing that matters.
"""

import asyncio

import msgspec

from rollscope.server.progress import RunProgress

__all__ = ["Hub", "Listener"]


class Listener:
    """One stream of events."""

    def __init__(self, run: str | None) -> None:
        self._run = run
        self._news: dict[str, RunProgress] = {}
        self._has_news = asyncio.Event()

    def put(self, progress: RunProgress) -> None:
        """Note how far a run has come."""
        if self._run is not None and progress.run != self._run:
            return
        waiting = self._news.get(progress.run)
        if waiting is not None:
            both = list(dict.fromkeys([*waiting.changed, *progress.changed]))
            progress = msgspec.structs.replace(progress, changed=both)
        self._news[progress.run] = progress
        self._has_news.set()

    def wake(self) -> None:
        """Let `wait` return."""
        self._has_news.set()

    async def wait(self, timeout_s: float) -> list[RunProgress]:
        """Give what is new; nothing if nothing came in time."""
        try:
            await asyncio.wait_for(self._has_news.wait(), timeout_s)
        except TimeoutError:
            return []
        self._has_news.clear()
        news, self._news = list(self._news.values()), {}
        return news


class Hub:
    """Passes news from threads to streams."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: set[Listener] = set()
        self.is_closing = False

    def start(self) -> None:
        """Belong to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self.is_closing = False

    def publish(self, progress: RunProgress) -> None:
        """Tell everybody who listens; from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._pass_on, progress)

    def _pass_on(self, progress: RunProgress) -> None:
        for listener in self._listeners:
            listener.put(progress)

    def join(self, run: str | None) -> Listener:
        """Listen to one run, or to all that are open."""
        listener = Listener(run)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Listen no more."""
        self._listeners.discard(listener)

    def close(self) -> None:
        """Let every stream end."""
        self.is_closing = True
        for listener in self._listeners:
            listener.wake()
