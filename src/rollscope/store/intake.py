"""Taking in a run: all of its logs, into rows that are final and rows that are not yet.

The intake follows every log from where it stopped the last time, gives each process its ledger,
and hands out tables. It writes nothing; `sealer` decides when rows become segments.
"""

import heapq
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from rollscope.errors import NotARunError
from rollscope.model.batch import SNAPSHOT, Batch, ClockReading
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
from rollscope.store.clocktracks import Track
from rollscope.store.followedlog import FollowedLog, LogState
from rollscope.store.hostclocks import RunClocks
from rollscope.store.ledger import Ledger, Taken
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.liveness import is_alive
from rollscope.store.openspan import Fate, OpenSpan, open_table
from rollscope.store.paths import PathTable
from rollscope.store.schema import empty_table

__all__ = ["Intake", "IntakeState"]

_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""Read from one log before the next one has its turn: enough to be quick, and little enough that
the rows of a segment are close in time."""


class IntakeState(msgspec.Struct, kw_only=True):
    """Everything that has to be stored so that another reader can go on."""

    logs: dict[str, LogState] = {}
    ledgers: list[LedgerState] = []
    tracks: dict[int, Track] = {}
    """What receivers say of the clocks of processes."""
    receivers: list[int] = []
    """The processes that say so."""


class Intake:
    """Follows all logs of a run, new ones included."""

    def __init__(self, run: Path, state: IntakeState | None = None) -> None:
        self.run = run
        self.paths = PathTable()
        state = state or IntakeState()
        folder = self._folder
        self._logs = {name: FollowedLog(folder / name, log) for name, log in state.logs.items()}
        self.ledgers = {each.process: Ledger(each, self.paths) for each in state.ledgers}
        self.tracks = state.tracks
        self.receivers = state.receivers
        self.is_behind = False
        """Whether the last `poll` ran out of time."""

    @property
    def _folder(self) -> Path:
        return self.run.parent if self.run.is_file() else self.run / LOG_DIR

    def to_state(self) -> IntakeState:
        """Give what has to be stored to go on from here."""
        return IntakeState(
            logs={name: log.to_state() for name, log in self._logs.items()},
            ledgers=[ledger.to_state() for ledger in self.ledgers.values()],
            tracks=self.tracks,
            receivers=self.receivers,
        )

    def covers(self, state: IntakeState) -> bool:
        """Say whether the logs that a state came from are all still there."""
        sizes = self._sizes()
        return all(sizes.get(name, -1) >= log.offset for name, log in state.logs.items())

    def is_foreign(self, state: IntakeState) -> bool:
        """Say whether a state came from logs of which none is here."""
        return bool(state.logs) and not state.logs.keys() & self._sizes().keys()

    def total_bytes(self) -> tuple[int, int]:
        """Give how many bytes of the logs have been taken in, and how many there are."""
        sizes = self._sizes()
        done = sum(min(self._offset(name), size) for name, size in sizes.items())
        return done, sum(sizes.values())

    def _sizes(self) -> dict[str, int]:
        sizes = {}
        for path in self._files():
            with suppress(OSError):  # deleted this instant, or a link to nowhere
                sizes[path.name] = path.stat().st_size
        return sizes

    def _offset(self, name: str) -> int:
        log = self._logs.get(name)
        return 0 if log is None else log.follower.offset

    def poll(self, max_s: float | None = None) -> Iterator[Taken]:
        """Take in everything that was added, a piece at a time, the piece furthest behind first.

        Args:
            max_s: Stop after so long, and a piece at least, even if there is more: a run may be
                written about as fast as it can be read.
        """
        until_s = math.inf if max_s is None else time.monotonic() + max_s
        turns: list[tuple[int, str]] = []
        for path in self._files():
            if self._has_more(path):
                heapq.heappush(turns, (self._logs[path.name].reached_ns, path.name))
        while turns:
            _, name = heapq.heappop(turns)
            log = self._logs[name]
            before = log.follower.offset
            try:
                yield from self._take(log)
            except (NotARunError, OSError) as error:
                log.follower.tell(str(error))
                continue
            if log.follower.offset > before or log.follower.has_more:
                heapq.heappush(turns, (log.reached_ns, name))
            if time.monotonic() >= until_s:
                break
        self.is_behind = bool(turns)
        for log in self._logs.values():
            if log.pending and (log.has_waited_long or self._has_ended(log)):
                yield from self._settle(log, log.give_up_waiting())

    def _take(self, log: FollowedLog) -> Iterator[Taken]:
        batches = list(log.follower.poll(max_bytes=_CHUNK_BYTES))
        if not batches and not log.follower.has_more and self._has_ended(log):
            # A length that was damaged hides what follows until nothing more can come.
            batches = list(log.follower.step_over())
        if batches:
            yield from self._settle(log, log.take(batches))

    def _settle(self, log: FollowedLog, batches: list[Batch]) -> Iterator[Taken]:
        if not batches:
            return
        ledger = self._ledger(log)
        try:
            taken, errors = ledger.take(batches)
        except (ArithmeticError, TypeError, ValueError, pa.ArrowException) as nonsense:
            # No writer of ours: frames that are whole and yet hold what cannot be.
            first, last = batches[0].number, batches[-1].number
            log.follower.tell(
                f"frames {first} to {last} of {log.follower.path} make no sense: {nonsense}"
            )
            return
        for error in errors:
            log.follower.tell_unreadable(0, error)
        if taken.readings:
            self._take_readings(ledger, taken.readings)
        yield taken

    def _take_readings(self, receiver: Ledger, readings: Iterable[ClockReading]) -> None:
        if receiver.process not in self.receivers:
            self.receivers.append(receiver.process)
        for reading in readings:
            self.tracks.setdefault(int.from_bytes(reading.process), Track()).add(reading)

    def _has_ended(self, log: FollowedLog) -> bool:
        ledger = self.ledgers.get(log.state.process or b"")
        return ledger is not None and not self.is_alive(ledger, time.time_ns())

    def _ledger(self, log: FollowedLog) -> Ledger:
        process = log.state.process or b""
        ledger = self.ledgers.get(process)
        if ledger is None:
            ledger = self.ledgers[process] = Ledger(LedgerState(process=process), self.paths)
        return ledger

    def _files(self) -> list[Path]:
        if self.run.is_file():
            return [self.run]
        return sorted((self.run / LOG_DIR).glob(f"*{LOG_SUFFIX}"))

    def _has_more(self, path: Path) -> bool:
        """Say whether a log has grown; one that was replaced is read from its beginning."""
        known = self._logs.get(path.name)
        try:
            size = path.stat().st_size
            log = FollowedLog.begin(path) if known is None else known.checked(size)
        except OSError as error:
            size, log = 0, known or FollowedLog(path, LogState())
            log.follower.tell(f"{path} cannot be read: {error.strerror}")
        self._logs[path.name] = log
        return size > log.follower.offset

    @property
    def host_of(self) -> dict[int, str]:
        """Which host each process ran on."""
        return {
            ledger.process: ledger.state.header.host
            for ledger in self.ledgers.values()
            if ledger.state.header is not None
        }

    def hosts(self) -> list[str]:
        """Give all hosts; the first is the trainer's, if it says so, else the first to start."""
        headers = [one.state.header for one in self.ledgers.values() if one.state.header]
        headers.sort(key=lambda one: (one.role != "trainer", one.started_ns, one.host))
        return list(dict.fromkeys(header.host for header in headers))

    @property
    def problems(self) -> list[str]:
        """What is wrong with the logs, in sentences."""
        return [problem for log in self._logs.values() for problem in log.follower.problems]

    def damage(self) -> dict[str, tuple[int, int]]:
        """Give the damaged bytes of each log, and those of a frame its process never finished."""
        counts = {
            name: (log.follower.damaged_bytes, log.follower.waiting_bytes)
            for name, log in self._logs.items()
        }
        return {name: count for name, count in counts.items() if any(count)}

    def is_alive(self, ledger: Ledger, now_ns: int, offset_ns: int = 0) -> bool:
        """Say whether a process may still write.

        Args:
            ledger: Its account.
            now_ns: The time that counts as now.
            offset_ns: How far its clock is known to be behind.
        """
        state = ledger.state
        if state.end is not None or state.header is None:
            return state.end is None
        seen_ns = state.last_seen_ns + max(state.jumped_ns, offset_ns)
        return is_alive(state.header, seen_ns, now_ns)

    def is_over(self) -> bool:
        """Say whether all processes of the run have ended or died."""
        now_ns = time.time_ns()
        return not any(self.is_alive(ledger, now_ns) for ledger in self.ledgers.values())

    def snapshot_ns(self) -> int | None:
        """Give the moment at which a run stands still that is known only up to there, if it is."""
        states = [ledger.state for ledger in self.ledgers.values()]
        ends = {state.end for state in states}
        is_still = SNAPSHOT in ends and None not in ends
        return max(state.last_seen_ns for state in states) if is_still else None

    def open_rows(self, now_ns: int | None = None, clocks: RunClocks | None = None) -> pa.Table:
        """Give every span without an end as it looks now.

        Args:
            now_ns: The time that counts as now; the clock's if not given.
            clocks: How the times of processes are going to be moved.
        """
        now = time.time_ns() if now_ns is None else now_ns
        known = clocks or RunClocks()
        processes: list[int] = []
        spans: list[OpenSpan] = []
        fates: list[Fate] = []
        for ledger in self.ledgers.values():
            if ledger.open:
                clock = known.of(ledger.process)
                behind_ns = clock.at(ledger.last_seen_ns)
                # The rows are on the clock of their process, and so is the time they last to.
                own, shown = ledger.open_spans(
                    clock.undo(now), is_alive=self.is_alive(ledger, now, behind_ns)
                )
                processes += [ledger.process] * len(own)
                spans += own
                fates += shown
        return open_table(processes, spans, fates) if spans else empty_table("spans")

    def open_causes(self) -> list[pa.Table]:
        """Give of every span without an end what tells causes from effects."""
        now_ns = time.time_ns()
        tables = [
            ledger.open_causes(is_alive=self.is_alive(ledger, now_ns))
            for ledger in self.ledgers.values()
            if ledger.open
        ]
        return [pa.concat_tables(tables)] if tables else []
