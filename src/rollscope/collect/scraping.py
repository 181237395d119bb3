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

import msgspec

from rollscope._version import __version__
from rollscope.collect.activity import RunChoice, is_recorded
from rollscope.collect.collector import Collector
from rollscope.collect.discovery import DiscoveryFile, DiscoveryGroup, discovery_groups
from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.expiry import Expiry
from rollscope.collect.targets import ListedTargets, Target
from rollscope.collect.targetstore import TargetStore
from rollscope.collect.watching import Watch
from rollscope.collect.watchlist import Source, TargetKey, Watched, WatchList, key_of
from rollscope.errors import IngestError
from rollscope.model.batch import Metric, ProcessHeader
from rollscope.model.serverroles import SCRAPER

__all__ = ["ScrapeSettings", "Scraper"]

_log = logging.getLogger("rollscope.scraping")
_END: Final = "exit"
_LOOK_EVERY_S: Final = 1.0
_LEAST_HEARTBEAT_S: Final = 5.0


class ScrapeSettings(NamedTuple):
    """What is asked for metrics."""

    targets: tuple[Target, ...] = ()
    file: Path | None = None
    """Lists more, and is read again when it changes."""
    every_s: float = 2.0
    also: tuple[str, ...] = ()
    """Patterns of names that are kept beside those of engines."""
    sd_dir: Path | None = None
    """Where all targets are written for a Prometheus that asks them too."""


class Scraper:
    """Keeps asking; for the event loop of a server."""

    def __init__(
        self,
        collector: Collector,
        settings: ScrapeSettings | None = None,
        expiry: Expiry | None = None,
    ) -> None:
        """Ask nobody yet.

        Args:
            collector: Keeps what they answer.
            settings: Who is asked; nobody if not given.
            expiry: Says when targets that were registered go.
        """
        self._collector = collector
        self._settings = settings or ScrapeSettings()
        self.expiry = expiry or Expiry()
        self.store = TargetStore(collector.directory, collector.only_run)
        self._list = WatchList(SeriesChoice(self._settings.also), self._settings.every_s)
        file, sd_dir = self._settings.file, self._settings.sd_dir
        self._listed = None if file is None else ListedTargets(file)
        self._discovery = None if sd_dir is None else DiscoveryFile(sd_dir)
        self._runs = RunChoice(collector.directory, collector.only_run)
        self._chosen: str | None = None
        self._active: set[str] = set()
        self._written: set[str] = set()
        self._tasks: dict[Watch, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._saving = asyncio.Lock()
        for target in self._settings.targets:
            self._list.put(target, Source.OPTION)

    async def register(self, target: Target) -> None:
        """Ask a target from now on, and remember it; one with the same key is replaced.

        Raises:
            TargetFixed: Options or a file name it.
            ValueError: There are too many.
        """
        if target.run is None and self._collector.only_run is not None:
            target = msgspec.structs.replace(target, run=self._collector.only_run)
        self._list.put(target, Source.REQUEST)
        await self._save()

    async def unregister(self, key: TargetKey) -> bool:
        """Ask a target no more; False if it was not asked.

        Raises:
            TargetFixed: Options or a file name it.
        """
        if key[0] is None and self._collector.only_run is not None:
            key = (self._collector.only_run, key[1])
        was_there = self._list.drop(key)
        if was_there:
            await self._save()
        return was_there

    def watched(self, run: str | None = None) -> list[Watched]:
        """Give what is asked, by address: for a run, or for all of them."""
        found = [one for one in self._list if run is None or one.watch.target.run in (None, run)]
        return sorted(found, key=lambda one: (one.watch.target.address, one.watch.target.run or ""))

    @property
    def targets_file(self) -> Path | None:
        """Where a Prometheus reads all targets, if it was told to."""
        return None if self._discovery is None else self._discovery.path

    def discovery(self) -> list[DiscoveryGroup]:
        """Give all targets for a Prometheus."""
        return discovery_groups((one.watch.target for one in self._list), self._chosen)

    async def run(self) -> None:
        """Ask for as long as the server runs."""
        while True:
            self._changed.clear()
            await self._look()
            self._start_and_stop()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._changed.wait()

    async def close(self) -> None:
        """Hang up everywhere, and end what was written; before the collector is closed."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        await self._end_logs(self._written)
        async with self._saving:
            await asyncio.to_thread(self.store.close)

    def _start_and_stop(self) -> None:
        """Have asked exactly those on the list."""
        wanted = {one.watch for one in self._list}
        for watch in self._tasks.keys() - wanted:
            self._tasks.pop(watch).cancel()
        for watch in wanted - self._tasks.keys():
            self._tasks[watch] = asyncio.create_task(self._keep_asking(watch))

    async def _look(self) -> None:
        """See which targets and runs there are now."""
        async with self._saving:
            self._take_over(await asyncio.to_thread(self.store.claim))
        if self._listed is not None:
            await self._read_file(self._listed)
        if self._list or self._written:
            named = {one.watch.target.run for one in self._list}
            self._chosen, self._active = await asyncio.to_thread(self._look_at_runs, named)
            await self._end_logs(self._written - self._active)
            await self._let_go()
        if self._discovery is not None:
            await asyncio.to_thread(self._discovery.write, self.discovery())

    def _look_at_runs(self, named: Iterable[str | None]) -> tuple[str | None, set[str]]:
        chosen = self._runs.choose()
        runs = {run or chosen for run in named}
        directory = self._collector.directory
        return chosen, {run for run in runs if run is not None and is_recorded(directory / run)}

    async def _read_file(self, listed: ListedTargets) -> None:
        targets = await asyncio.to_thread(listed.read)
        if targets is not None:
            try:
                self._list.put_listed(targets)
            except ValueError as error:
                _log.warning("Not all targets of the file are asked: %s", error)

    async def _let_go(self) -> None:
        """Ask those no more that have been of no use for long."""
        requested = [one.watch for one in self._list if one.source is Source.REQUEST]
        going = self.expiry.look(requested, self._chosen, self._active)
        for target, why in going:
            _log.warning("%s is asked no more: %s", target.address.url, why)
            self._list.drop(key_of(target))
        if going:
            await self._save()

    async def _save(self) -> None:
        async with self._saving:
            self._take_over(await asyncio.to_thread(self.store.claim, make=True))
            await asyncio.to_thread(self.store.save, self._list.requested())
        self._changed.set()

    def _take_over(self, targets: Iterable[Target]) -> None:
        """Ask what an earlier server was told to; what was said to this one goes first."""
        there = {key_of(one.watch.target) for one in self._list}
        for target in targets:
            with suppress(IngestError, ValueError):
                if target.run is not None:
                    self._collector.keeper.check_run(target.run)
                if key_of(target) not in there:
                    self._list.put(target, Source.REQUEST)

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
        self._collector.author(run, SCRAPER, header).write(metrics=metrics)
        self._written.add(run)

    async def _end_logs(self, runs: Iterable[str]) -> None:
        for run in list(runs):
            with suppress(IngestError):
                await self._collector.do(0, lambda run=run: self._end(run))  # type: ignore[misc]
            self._written.discard(run)

    def _end(self, run: str) -> None:
        self._collector.author(run, SCRAPER, _header(_LEAST_HEARTBEAT_S)).write(end=_END)
        self._collector.forget(run, SCRAPER)


def _header(heartbeat_s: float) -> ProcessHeader:
    now_ns = time.time_ns()
    return ProcessHeader(
        host=os.uname().nodename,
        pid=os.getpid(),
        role=SCRAPER,
        started_ns=now_ns,
        started_mono_ns=now_ns,
        heartbeat_s=heartbeat_s,
        python=platform.python_version(),
        version=__version__,
    )
