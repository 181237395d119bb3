"""The collector: one thread that keeps what comes in, behind a bound on what may wait for it."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from rollscope.collect.authored import AuthoredLog
from rollscope.collect.exchange import Exchange
from rollscope.collect.frameheads import PROCESS_BYTES
from rollscope.collect.keeping import Keeper, Kept
from rollscope.collect.receiving import Receiving, receiver_header
from rollscope.errors import CollectorAway, CollectorBusy, FramesRefused
from rollscope.model.batch import ProcessHeader
from rollscope.model.serverroles import RECEIVER

__all__ = ["MOST_WAITING_BYTES", "Collector", "Reservation"]

T = TypeVar("T")

MOST_WAITING_BYTES: Final = 256 * 1024 * 1024
_TEND_EVERY_S: Final = 1.0
_MOST_AUTHORED: Final = 20_000
_MOST_OPEN: Final = 64

LogKey = tuple[str, str]


class Reservation:
    """Room for bytes that are on their way to the collecting thread."""

    def __init__(self, collector: "Collector") -> None:
        self._collector = collector
        self.size = 0

    def add(self, size: int) -> None:
        """Take room for more.

        Raises:
            CollectorBusy: There is none.
        """
        if self._collector.waiting_bytes + size > MOST_WAITING_BYTES:
            waiting = self._collector.waiting_bytes >> 20
            raise CollectorBusy(f"{waiting} MiB wait to be kept; the most is 256")
        self.size += size
        self._collector.waiting_bytes += size


class Collector:
    """What a server holds to receive; made and used by an event loop, but for what `do` does."""

    def __init__(
        self,
        directory: Path,
        *,
        only_run: str | None = None,
        when_run_made: Callable[[], None] | None = None,
    ) -> None:
        """Receive nothing yet; no thread is started before something comes.

        Args:
            directory: Where runs are kept.
            only_run: The only run that is taken.
            when_run_made: Called by the event loop after runs were made.
        """
        self.directory = directory
        self.only_run = only_run
        self.keeper = Keeper(directory, only_run=only_run)
        self.waiting_bytes = 0
        self._when_run_made = when_run_made
        self._runs_told = 0
        self._is_stopping = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rollscope-collect")
        self._authored: OrderedDict[LogKey, AuthoredLog] = OrderedDict()
        self._receiving = Receiving(
            self.receiver_log,
            lambda run: self.forget(run, RECEIVER),
            lambda: self.waiting_bytes,
        )

    def check_open(self) -> None:
        """Make sure that a new request may begin.

        Raises:
            CollectorAway: The server stops.
        """
        if self._is_stopping:
            raise CollectorAway("the server stops")

    @contextmanager
    def reserve(self, size: int = 0) -> Iterator[Reservation]:
        """Have room for bytes while the block runs.

        Raises:
            CollectorBusy: There is none.
        """
        reservation = Reservation(self)
        try:
            reservation.add(size)
            yield reservation
        finally:
            self.waiting_bytes -= reservation.size

    async def do(self, size: int, work: Callable[[], T]) -> T:
        """Have the collecting thread do something.

        Args:
            size: How many bytes wait with it, unless room for them is reserved already.
            work: What to do.

        Raises:
            CollectorBusy: Too much waits.
            CollectorAway: The server has stopped.
        """
        with self.reserve(size):
            try:
                future = self._thread.submit(work)
            except RuntimeError:  # shut down
                raise CollectorAway("the server stops") from None
            try:
                return await asyncio.wrap_future(future)
            finally:
                self._tell_of_runs()

    def keep(
        self,
        run: str,
        tags: Mapping[str, str],
        process: bytes,
        data: bytes,
        *,
        exchange: Exchange | None = None,
        received_ns: int = 0,
    ) -> Kept:
        """Keep frames, and note what comes with them; inside of `do` only.

        Raises:
            IngestError: They were not kept.
        """
        try:
            kept = self.keeper.keep(run, tags, process, data)
        except FramesRefused:
            self._receiving.note_refused(run)
            raise
        self._receiving.note_kept(run, process, kept, len(data))
        line = self.keeper.line_of(run, process)
        if exchange is not None and line is not None:
            self._receiving.note_clock(run, process, line, exchange, received_ns)
        return kept

    def author(
        self, run: str, key: str, header: ProcessHeader, tags: Mapping[str, str] | None = None
    ) -> AuthoredLog:
        """Give the log that is written for somebody; inside of `do` only.

        Args:
            run: The run.
            key: Who it is written for; the same gets the same log for as long as it is used.
            header: What is said of them if the log is new.
            tags: Labels of the run, if it is new.

        Raises:
            IngestError: The run may not be kept here, or cannot be made.
        """
        log = self._authored.get((run, key))
        if log is None:
            self.keeper.check_run(run)
            process = os.urandom(PROCESS_BYTES)
            path = self.keeper.make_run(run, tags or {}, header.started_ns, process)
            log = AuthoredLog(path, process, header, tags)
        self._authored[run, key] = log
        self._authored.move_to_end((run, key))
        self._let_go()
        return log

    def receiver_log(self, run: str) -> AuthoredLog:
        """Give the receiver's own log in a run; inside of `do` only."""
        return self.author(run, RECEIVER, receiver_header())

    def forget(self, run: str, key: str) -> None:
        """Let go of a log that was ended: the next one will be another; inside of `do` only."""
        log = self._authored.pop((run, key), None)
        if log is not None:
            log.release()

    async def tend(self) -> None:
        """Have written, for as long as the server runs, what the receiver has to say."""
        while True:
            await asyncio.sleep(_TEND_EVERY_S)
            await self.do(0, self._receiving.tick)

    def stop(self) -> None:
        """Let no new request begin; those that have may finish."""
        self._is_stopping = True

    async def close(self) -> None:
        """Do what waits, end what was begun, let go of every file."""
        self.stop()
        await asyncio.wrap_future(self._thread.submit(self._close))
        await asyncio.to_thread(self._thread.shutdown)

    def _close(self) -> None:
        self._receiving.close()
        for log in self._authored.values():
            log.release()
        self._authored.clear()
        self.keeper.close()

    def _let_go(self) -> None:
        """Keep few files open: close the one whose turn has passed; forget the oldest."""
        if len(self._authored) > _MOST_OPEN:
            keys = reversed(self._authored)
            for _ in range(_MOST_OPEN):
                next(keys)
            self._authored[next(keys)].release()
        if len(self._authored) > _MOST_AUTHORED:
            self._authored.popitem(last=False)[1].release()

    def _tell_of_runs(self) -> None:
        if self.keeper.runs_made != self._runs_told:
            self._runs_told = self.keeper.runs_made
            if self._when_run_made is not None:
                self._when_run_made()
