"""The scraper: asks inference engines for their metrics, and writes them into the run they serve.

What is asked, and how often, is up to `ScrapeSettings`; where it goes is the run that a target
names, else the one that is being recorded. A run that is over gets nothing more: its log of scraped
metrics ends within half a minute of the last process.
"""

import asyncio
import logging
import os
import platform
import random
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from rollscope._version import __version__
from rollscope.collect.activity import RunChoice, is_recorded
from rollscope.collect.collector import Collector
from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.targets import MOST_TARGETS, Target, read_target_file
from rollscope.collect.watching import Watch
from rollscope.errors import IngestError
from rollscope.model.batch import Metric, ProcessHeader

__all__ = ["ScrapeSettings", "Scraper"]

_log = logging.getLogger("rollscope.scraping")
_KEY: Final = "scraper"
_END: Final = "exit"
_LOOK_EVERY_S: Final = 1.0
_LEAST_HEARTBEAT_S: Final = 5.0

TargetKey = tuple[str | None, str]


class ScrapeSettings(NamedTuple):
    """What is asked for metrics."""

    targets: tuple[Target, ...] = ()
    file: Path | None = None
    """Lists more, and is read again when it changes."""
    every_s: float = 2.0
    also: tuple[str, ...] = ()
    """Patterns of names that are kept beside those of engines."""


class Scraper:
    """Keeps asking; for the event loop of a server."""

    def __init__(self, collector: Collector, settings: ScrapeSettings | None = None) -> None:
        """Ask nobody yet."""
        self._collector = collector
        self._settings = settings or ScrapeSettings()
        self._choice = SeriesChoice(self._settings.also)
        self._runs = RunChoice(collector.directory, collector.only_run)
        self._chosen: str | None = None
        self._active: set[str] = set()
        self._written: set[str] = set()
        self._watches: dict[TargetKey, Watch] = {}
        self._tasks: dict[TargetKey, asyncio.Task[None]] = {}
        self._listed: set[TargetKey] = set()
        self._file_state: tuple[int, int] | None = None
        for target in self._settings.targets:
            self.add(target)

    def add(self, target: Target) -> None:
        """Ask a target from now on; one with the same run and address is replaced.

        Raises:
            ValueError: There are too many.
        """
        key = _key(target)
        if key not in self._watches and len(self._watches) >= MOST_TARGETS:
            raise ValueError(f"{MOST_TARGETS} targets are asked already")
        if key in self._watches and self._watches[key].target == target:
            return
        self.remove(target.run, target.address.url)
        self._watches[key] = Watch(target, self._choice, self._settings.every_s)

    def remove(self, run: str | None, url: str) -> bool:
        """Ask a target no more; False if it was not asked."""
        watch = self._watches.pop((run, url), None)
        task = self._tasks.pop((run, url), None)
        if task is not None:
            task.cancel()
        return watch is not None

    def watches(self, run: str) -> list[Watch]:
        """Give what is asked for a run, by address."""
        found = [one for one in self._watches.values() if one.target.run in (None, run)]
        return sorted(found, key=lambda one: one.target.address)

    async def run(self) -> None:
        """Ask for as long as the server runs."""
        while True:
            await self._look()
            for key, watch in self._watches.items():
                if key not in self._tasks:
                    self._tasks[key] = asyncio.create_task(self._keep_asking(watch))
            await asyncio.sleep(_LOOK_EVERY_S)

    async def close(self) -> None:
        """Hang up everywhere, and end what was written; before the collector is closed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        await self._end_logs(self._written)

    async def _look(self) -> None:
        """See which targets and runs there are now."""
        if self._settings.file is not None:
            await self._read_file(self._settings.file)
        if not self._watches and not self._written:
            return
        named = {watch.target.run for watch in self._watches.values()}
        self._chosen, self._active = await asyncio.to_thread(self._look_at_runs, named)
        await self._end_logs(self._written - self._active)

    def _look_at_runs(self, named: Iterable[str | None]) -> tuple[str | None, set[str]]:
        chosen = self._runs.choose()
        runs = {run or chosen for run in named}
        directory = self._collector.directory
        return chosen, {run for run in runs if run is not None and is_recorded(directory / run)}

    async def _read_file(self, path: Path) -> None:
        """Take over what a file lists, if it has changed; what it no longer lists is let go of."""
        state = None
        try:
            status = await asyncio.to_thread(path.stat)
            state = (status.st_mtime_ns, status.st_size)
            if state == self._file_state:
                return
            listed = {_key(one): one for one in await asyncio.to_thread(read_target_file, path)}
            for run, url in self._listed - listed.keys():
                self.remove(run, url)
            for target in listed.values():
                self.add(target)
            self._listed = set(listed)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            if state is None and self._file_state == (0, 0):
                return  # told already
            _log.warning("Targets stay as they are: %s cannot be used: %s", path, why)
            state = state or (0, 0)
        self._file_state = state

    async def _keep_asking(self, watch: Watch) -> None:
        await asyncio.sleep(random.uniform(0, min(self._settings.every_s, 1.0)))  # noqa: S311  (spread)
        try:
            while True:
                begun_s = time.monotonic()
                run = watch.target.run or self._chosen
                if run is None or run not in self._active:
                    watch.pause()
                else:
                    await self._ask(watch, run)
                taken_s = time.monotonic() - begun_s
                await asyncio.sleep(max(watch.wait_s - taken_s, watch.wait_s / 10))
        finally:
            watch.close()

    async def _ask(self, watch: Watch, run: str) -> None:
        metrics = await watch.ask(run)
        if watch.news:
            _log.warning("%s", watch.news)
        try:
            await self._collector.do(0, lambda: self._write(run, metrics))
        except IngestError:  # too much waits, or a full disk: the next reading holds this one
            return
        watch.accept()

    def _write(self, run: str, metrics: Sequence[Metric]) -> None:
        header = _header(max(self._settings.every_s * 2, _LEAST_HEARTBEAT_S))
        self._collector.author(run, _KEY, header).write(metrics=metrics)
        self._written.add(run)

    async def _end_logs(self, runs: Iterable[str]) -> None:
        for run in list(runs):
            with suppress(IngestError):
                await self._collector.do(0, lambda run=run: self._end(run))  # type: ignore[misc]
            self._written.discard(run)

    def _end(self, run: str) -> None:
        self._collector.author(run, _KEY, _header(_LEAST_HEARTBEAT_S)).write(end=_END)
        self._collector.forget(run, _KEY)


def _key(target: Target) -> TargetKey:
    return (target.run, target.address.url)


def _header(heartbeat_s: float) -> ProcessHeader:
    now_ns = time.time_ns()
    return ProcessHeader(
        host=os.uname().nodename,
        pid=os.getpid(),
        role=_KEY,
        started_ns=now_ns,
        started_mono_ns=now_ns,
        heartbeat_s=heartbeat_s,
        python=platform.python_version(),
        version=__version__,
    )
