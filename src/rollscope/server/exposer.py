"""The runs of a server as monitoring systems see them: worked out once for all who ask at a time.

Each run is worked out by its own thread, and one that takes long keeps no other waiting: it is
shown as it was last known, while the work goes on. Runs that were never read are read in small
pieces, so that the questions of pages come in between.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from rollscope._version import __version__
from rollscope.errors import RollscopeError
from rollscope.exposing import catalogue as ours
from rollscope.exposing.labels import clean_value
from rollscope.exposing.merging import merge_families
from rollscope.exposing.runs import RunExposition
from rollscope.metrics.families import Exposed, Point
from rollscope.server.failures import Failure
from rollscope.server.library import Library
from rollscope.server.listing import RunEntry

__all__ = ["Exposer"]

_log = logging.getLogger("uvicorn.rollscope")
LIMIT_S: Final = 8.0
"""How long an answer waits for runs that are not done; Prometheus itself waits ten seconds."""
_SHOWN_NS: Final = 600 * 1_000_000_000
"""How long runs are shown after their end."""
_MOST_RUNS: Final = 8


class Exposer:
    """Looks at the runs of a library; used by the event loop."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._watched: dict[str, _Watched] = {}
        self.failures: Counter[str] = Counter()
        """Deliveries of metrics that failed, by where they go to; whoever delivers counts them."""

    async def look(self, limit_s: float = LIMIT_S) -> list[Exposed]:
        """Give what all runs stand at, each family once.

        Args:
            limit_s: Runs that take longer are shown as they were last known.
        """
        entries = await self._library.outline()
        shown = self._choose(entries)
        for name in self._watched.keys() - set(shown):
            self._watched.pop(name).stop()
        for name in shown:
            if name not in self._watched:
                self._watched[name] = _Watched(name, self._library)
        works = [self._watched[name].work() for name in shown]
        if works:
            await asyncio.wait(works, timeout=limit_s)
        # In the order in which they were first shown, so that names that clash stay told apart.
        exposed = [each for one in self._watched.values() for each in one.exposed]
        return merge_families([*self._own(entries), *exposed])

    async def close(self) -> None:
        """Stop working."""
        works = [work for one in self._watched.values() if (work := one.stop()) is not None]
        self._watched.clear()
        await asyncio.gather(*works, return_exceptions=True)

    def _choose(self, entries: Iterable[RunEntry]) -> list[str]:
        """Give the runs that are shown: those that live, the newest first, then the just ended."""
        since_ns = time.time_ns() - _SHOWN_NS
        recent = [one for one in entries if one.is_alive or one.last_ns >= since_ns]
        recent.sort(key=lambda one: (one.is_alive, one.created_ns, one.name), reverse=True)
        names = [one.name for one in recent]
        # Runs that pages look at stay open too, and opening one more must not close another.
        looked_at = {one.name for one in self._library.opened() if one.watchers}
        room = max(_MOST_RUNS - len(looked_at - set(names[:_MOST_RUNS])), 1)
        return names[:room]

    def _own(self, entries: Iterable[RunEntry]) -> list[Exposed]:
        states = Counter(self._state(one) for one in entries)
        took = [(one.name, one.took_s) for one in self._watched.values()]
        return [
            Exposed(ours.SERVER, [Point((__version__,), 1)]),
            Exposed(ours.RUNS, _points(states)),
            Exposed(ours.EXPORT_FAILURES, _points(self.failures)),
            Exposed(
                ours.EXPOSING_SECONDS,
                [Point((clean_value(name),), took_s) for name, took_s in took if took_s],
            ),
        ]

    def _state(self, entry: RunEntry) -> str:
        watched = self._watched.get(entry.name)
        if entry.problem or (watched is not None and watched.problem):
            return "damaged"
        if watched is not None and not watched.is_read:
            return "opening"
        return "live" if entry.is_alive else "ended"


def _points(values: Mapping[str, float]) -> list[Point]:
    return [Point((name,), value) for name, value in sorted(values.items())]


class _Watched:
    """One run that is shown."""

    def __init__(self, name: str, library: Library) -> None:
        self.name = name
        self.exposed: list[Exposed] = []
        self.problem = ""
        self.is_read = False
        """Whether it was ever worked out to the end."""
        self._library = library
        self._exposition = RunExposition(clean_value(name))
        self._began_s = 0.0
        self._took_s = 0.0
        self._work: asyncio.Task[None] | None = None

    @property
    def took_s(self) -> float:
        """How long it took; as long as it is not done, how long it has taken so far."""
        if self._work is not None and not self._work.done():
            return max(time.monotonic() - self._began_s, self._took_s)
        return self._took_s

    def work(self) -> "asyncio.Task[None]":
        """Work it out, or join those who wait for that."""
        if self._work is None or self._work.done():
            self._began_s = time.monotonic()
            self._work = asyncio.create_task(self._try())
        return self._work

    def stop(self) -> "asyncio.Task[None] | None":
        """Stop working; give what may still be on its way."""
        if self._work is not None:
            self._work.cancel()
        return self._work

    async def _try(self) -> None:
        try:
            run = await self._library.open(self.name)
            while await run.ask(self._exposition.catch_up, is_looking=False):
                pass
            self.exposed = await run.ask(self._exposition.look, is_looking=False)
        except Failure:
            pass  # it is still being opened, or was closed meanwhile; the next time will tell
        except Exception as error:
            # Whatever is wrong with one run, the others are shown.
            if str(error) != self.problem:
                is_ours = not isinstance(error, RollscopeError)
                text = "the metrics of the run %r cannot be shown: %s"
                _log.error(text, self.name, error, exc_info=is_ours)
            self.problem = str(error) or type(error).__name__
        else:
            self.problem, self.is_read = "", True
        finally:
            self._took_s = time.monotonic() - self._began_s
