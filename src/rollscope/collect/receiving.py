"""What a receiver has to say itself of a run: how the clocks stand, and what it took in.

It says so in a log of its own in that run, every five seconds while something comes in. The log
ends when all who sent have ended, or nothing has come for a minute, so that a receiver that stays
up does not keep a run alive; whoever sends later gets a new one.
"""

import os
import platform
import time
from collections.abc import Callable
from typing import Final

from rollscope._version import __version__
from rollscope.collect.authored import AuthoredLog
from rollscope.collect.exchange import Exchange, bound_of, reading_of
from rollscope.collect.keeping import Kept
from rollscope.errors import IngestError
from rollscope.model.batch import ClockReading, Metric, ProcessHeader
from rollscope.model.clockline import ClockLine
from rollscope.model.kinds import MetricType
from rollscope.model.serverroles import RECEIVER

__all__ = ["EVERY_S", "Receiving", "receiver_header"]

EVERY_S: Final = 5.0
_QUIET_S: Final = 60.0
_END: Final = "exit"
_PREFIX: Final = "rollscope.ingest."
_COUNTED: Final = ("frames", "bytes", "doubled", "refused")


def receiver_header() -> ProcessHeader:
    """Describe the receiver; without what the kernel knows of it, so that silence tells its end."""
    now_ns = time.time_ns()
    return ProcessHeader(
        host=os.uname().nodename,
        pid=os.getpid(),
        role=RECEIVER,
        started_ns=now_ns,
        started_mono_ns=now_ns,
        heartbeat_s=EVERY_S,
        python=platform.python_version(),
        version=__version__,
    )


class _Clock:
    """What is known of the clock of one process."""

    def __init__(self, bound: ClockReading, now_s: float) -> None:
        self.bound: ClockReading | None = bound
        self.since_s = now_s
        self.best: ClockReading | None = None
        self._taken_ns = 0

    def take(self, reading: ClockReading) -> None:
        """Keep it if it is the best; senders repeat their last exchange until there is another."""
        self.bound = None
        if reading.mono_ns <= self._taken_ns:
            return
        self._taken_ns = reading.mono_ns
        if self.best is None or reading.error_ns < self.best.error_ns:
            self.best = reading

    def give(self, now_s: float) -> ClockReading | None:
        """Give what is to be written now."""
        reading, self.best = self.best, None
        if reading is None and self.bound is not None and now_s - self.since_s >= EVERY_S:
            reading, self.bound = self.bound, None
        return reading


class _RunNews:
    """What is to be said of one run."""

    def __init__(self, now_s: float) -> None:
        self.counts = dict.fromkeys(_COUNTED, 0)
        self.senders: set[bytes] = set()
        self.clocks: dict[bytes, _Clock] = {}
        self.written_s = now_s
        self.heard_s = now_s


class Receiving:
    """Gathers news of all runs, and writes them; for the collecting thread."""

    def __init__(
        self,
        open_log: Callable[[str], AuthoredLog],
        close_log: Callable[[str], None],
        waiting_bytes: Callable[[], int],
    ) -> None:
        """Know nothing yet.

        Args:
            open_log: Gives the receiver's own log in a run.
            close_log: Called when that has been ended; the next one will be another.
            waiting_bytes: Says how much waits to be kept.
        """
        self._open_log = open_log
        self._close_log = close_log
        self._waiting_bytes = waiting_bytes
        self._runs: dict[str, _RunNews] = {}

    def note_kept(self, run: str, process: bytes, kept: Kept, size: int) -> None:
        """Count what was kept."""
        if not kept.frames:
            return
        now_s = time.monotonic()
        news = self._runs.setdefault(run, _RunNews(now_s))
        news.heard_s = now_s
        news.counts["frames"] += kept.frames
        news.counts["bytes"] += size
        news.counts["doubled"] += kept.doubled
        news.senders.add(process)
        if kept.has_ended:
            news.senders.discard(process)

    def note_refused(self, run: str) -> None:
        """Count a request that was refused."""
        if run in self._runs:
            self._runs[run].counts["refused"] += 1

    def note_clock(
        self, run: str, process: bytes, line: ClockLine, exchange: Exchange, received_ns: int
    ) -> None:
        """Read a process's clock against ours."""
        news = self._runs.get(run)
        if news is None:
            return
        clock = news.clocks.get(process)
        if clock is None:
            bound = bound_of(exchange, process, line, received_ns)
            clock = news.clocks[process] = _Clock(bound, time.monotonic())
        reading = reading_of(exchange, process, line)
        if reading is not None:
            clock.take(reading)

    def tick(self) -> None:
        """Write what is due; what cannot be written now is tried again at the next call."""
        now_s = time.monotonic()
        for run, news in list(self._runs.items()):
            is_over = not news.senders or now_s - news.heard_s > _QUIET_S
            if is_over or now_s - news.written_s >= EVERY_S:
                self._write(run, news, now_s, is_over=is_over)

    def close(self) -> None:
        """Write everything, and end every log."""
        now_s = time.monotonic()
        for run, news in list(self._runs.items()):
            self._write(run, news, now_s, is_over=True)

    def _write(self, run: str, news: _RunNews, now_s: float, *, is_over: bool) -> None:
        given = [clock.give(now_s) for clock in news.clocks.values()]
        readings = [reading for reading in given if reading is not None]
        metrics = self._metrics(news) if any(news.counts.values()) else []
        end = _END if is_over else None
        try:
            if metrics or readings or end:
                log = self._open_log(run)
                log.write(metrics=metrics, readings=readings, end=end)
        except IngestError:  # a full disk: senders are told, and the next readings are as good
            return
        news.counts = dict.fromkeys(_COUNTED, 0)
        news.written_s = now_s
        if is_over:
            del self._runs[run]
            self._close_log(run)

    def _metrics(self, news: _RunNews) -> list[Metric]:
        waiting = float(self._waiting_bytes())
        return [
            *(
                Metric(MetricType.COUNTER, f"{_PREFIX}{name}", {}, float(count), 1)
                for name, count in news.counts.items()
            ),
            Metric(MetricType.GAUGE, f"{_PREFIX}waiting_bytes", {}, waiting, 1),
        ]
