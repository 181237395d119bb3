"""The runs that this server shows: looked up by name, opened when asked for, closed when idle."""

import asyncio
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import msgspec

from rollscope.server.failures import Failure
from rollscope.server.hub import Hub
from rollscope.server.listing import RunEntry, RunsAnswer, describe_run
from rollscope.server.opened import LIMIT_S, OpenRun
from rollscope.server.timelines import prepare_timeline
from rollscope.store.embedded import RunStore
from rollscope.store.run import list_runs, read_run_file

__all__ = ["Library"]

_LOOK_EVERY_S: Final = 1.0
_DESCRIBE_EVERY_S: Final = 5.0
_IDLE_S: Final = 120.0
_SWEEP_EVERY_S: Final = 5.0
_MOST_OPEN: Final = 8
"""Each may take several hundred megabytes."""
_MOST_NAMED: Final = 20
_CLOSE_S: Final = 10.0


class Library:
    """A directory of runs, or a single one. Used by the event loop."""

    def __init__(
        self, place: Path, hub: Hub, *, is_single: bool = False, threads: int | None = None
    ) -> None:
        self.place = place
        self.hub = hub
        self._is_single = is_single
        self._threads = threads
        self._paths: dict[str, Path] = {}
        self._looked_s: float | None = None
        self._opened: dict[str, OpenRun] = {}
        self._described: dict[str, tuple[float, RunEntry]] = {}
        self._looking = asyncio.Lock()

    @property
    def only_run(self) -> str | None:
        """The name of the run, if there can be only one."""
        return self.place.resolve().name if self._is_single else None

    def look_again(self) -> None:
        """Have runs found at once that were just made."""
        self._looked_s = None

    async def names(self) -> list[str]:
        """Name the runs there are now, the oldest first."""
        async with self._looking:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s > _LOOK_EVERY_S:
                self._paths = await asyncio.to_thread(self._look)
                self._looked_s = time.monotonic()
        return list(self._paths)

    def _look(self) -> dict[str, Path]:
        if self._is_single:
            return {self.place.resolve().name: self.place}
        return {name: self.place / name for name in list_runs(self.place)}

    async def open(self, name: str) -> OpenRun:
        """Give a run that is open, or being opened.

        Raises:
            Failure: There is no run of that name; the message says which there are.
        """
        known = self._opened.get(name)
        if known is not None:
            return known
        names = await self.names()
        if name not in names:
            raise _unknown(names)
        # Another request may have been faster while this one waited.
        if name not in self._opened:
            self._make_room()
            path = self._paths[name]
            self._opened[name] = OpenRun(name, path, self.hub.publish, threads=self._threads)
        return self._opened[name]

    async def open_early(self) -> None:
        """Open the run that the server was started for before anybody asks for it."""
        if self._is_single and await asyncio.to_thread(read_run_file, self.place) is not None:
            for name in await self.names():
                prepare_timeline(await self.open(name))

    def open_from_thread(self, name: str, loop: asyncio.AbstractEventLoop) -> RunStore:
        """Give the store of another run to the thread of one, which may only query it."""
        run = asyncio.run_coroutine_threadsafe(self.open(name), loop).result(LIMIT_S)
        run.asked_s = time.monotonic()
        store: Future[RunStore] = run.store
        return store.result(LIMIT_S)

    def opened(self) -> list[OpenRun]:
        """Give the runs that are open."""
        return list(self._opened.values())

    async def outline(self) -> list[RunEntry]:
        """Give what can be seen of each run from outside, open or not."""
        names = await self.names()
        return await asyncio.to_thread(self._describe_all, {n: self._paths[n] for n in names})

    async def describe(self) -> RunsAnswer:
        """List the runs, the newest first."""
        entries = await self.outline()
        for entry in entries:
            run = self._opened.get(entry.name)
            if run is not None:
                await _add_known(entry, run)
        entries.sort(key=lambda entry: (entry.created_ns, entry.name), reverse=True)
        return RunsAnswer(runs=entries, now_ns=time.time_ns(), dir=str(self.place))

    def _describe_all(self, paths: dict[str, Path]) -> list[RunEntry]:
        entries = []
        for name, path in paths.items():
            at_s, entry = self._described.get(name, (0.0, None))
            if entry is None or time.monotonic() - at_s > _DESCRIBE_EVERY_S:
                entry = describe_run(name, path)
                self._described[name] = (time.monotonic(), entry)
            entries.append(msgspec.structs.replace(entry))
        return entries

    def _make_room(self) -> None:
        idle = [run for run in self._opened.values() if not run.watchers]
        for run in sorted(idle, key=lambda run: run.asked_s):
            if len(self._opened) < _MOST_OPEN:
                return
            self._close(run)

    def _close(self, run: OpenRun, *, at_once: bool = False) -> None:
        del self._opened[run.name]
        run.close(at_once=at_once)

    async def sweep(self) -> None:
        """Close runs that nobody looks at, for as long as the server runs."""
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S)
            for run in self.opened():
                if run.is_idle_for(_IDLE_S):
                    self._close(run)

    async def close(self) -> None:
        """Close every run, and wait until their files are let go of."""
        runs = self.opened()
        for run in runs:
            self._close(run, at_once=True)
        for run in runs:
            await asyncio.to_thread(run.join, _CLOSE_S)


async def _add_known(entry: RunEntry, run: OpenRun) -> None:
    """Add what is known of a run because it is open; one that is still being read says so."""
    entry.read_share = run.read_share
    if run.read_share is not None:
        return
    try:
        counts = await run.ask(_count, limit_s=2.0)
    except Exception as error:
        entry.problem = str(error)
        return
    entry.spans, entry.open_sessions, entry.steps = counts
    if run.progress is not None:
        entry.is_alive, entry.last_ns = run.progress.is_alive, run.progress.last_ns


def _count(store: RunStore) -> tuple[int, int, int]:
    sql = """
        SELECT count(*) AS spans,
            count(*) FILTER (WHERE kind = 'session' AND status = 'open') AS open_sessions,
            count(*) FILTER (WHERE kind = 'step') AS steps
        FROM spans"""
    (row,) = store.query(sql).to_pylist()
    return row["spans"], row["open_sessions"], row["steps"]


def _unknown(names: list[str]) -> Failure:
    if not names:
        return Failure(
            404, "There is no run yet.", "Record one: `rollscope demo` makes a small one."
        )
    newest = names[::-1][:_MOST_NAMED]
    more = f" and {len(names) - len(newest)} more" if len(names) > len(newest) else ""
    return Failure(404, "There is no run of that name.", f"There are: {', '.join(newest)}{more}.")
