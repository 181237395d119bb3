"""Keeping frames that others send: into the logs that their own file sinks would have written.

A frame goes byte for byte to `runs/<run>/log/<host>-<pid>-<boot>.rsl`, or to `payloads/`, once,
however often it is sent. What a sender says is checked before it becomes a name on disk.
"""

import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from rollscope.collect.frameheads import PROCESS_BYTES, FramePlace, read_frames
from rollscope.collect.logfile import LogFile, write_trouble
from rollscope.config import resolve
from rollscope.errors import FramesRefused, NoRoom, SettingError, WrongRun
from rollscope.instrument.sinks.file import log_name, write_run_file
from rollscope.model.batch import ProcessHeader
from rollscope.model.clockline import ClockLine
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX, PAYLOAD_DIR, RUN_FILE

__all__ = ["Keeper", "Kept"]

_MOST_OPEN: Final = 256
"""Many more descriptors than that a process may not have; opening a log again costs little."""
_MOST_KNOWN: Final = 100_000
"""Logs that are remembered; of others it is learned anew what they hold."""
_MOST_RUNS: Final = 10_000
_MOST_LOGS: Final = 100_000
"""Made in one run, each by a process of its own."""

LogKey = tuple[str, bytes, bool]


class Kept(NamedTuple):
    """What became of the frames of one request."""

    frames: int
    doubled: int = 0
    """Those among them that had been kept before."""
    has_ended: bool = False
    """Whether their process said that it ends."""


class _Run:
    """A run that something was kept in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs_made = 0
        self._names: dict[str, dict[str, str]] = {}
        """By folder and ending, what logs there were when somebody asked."""

    def path_for(self, process: bytes, header: ProcessHeader | None, *, is_payload: bool) -> Path:
        """Find the log of a process, or name one as its file sink would have.

        Raises:
            NoRoom: Too many were made.
        """
        folder = PAYLOAD_DIR if is_payload else LOG_DIR
        place = self.path / folder
        unnamed = log_name("unknown", 0, process)
        usual = unnamed if header is None else log_name(header.host, header.pid, process)
        for name in (usual, unnamed):
            if (place / name).exists():
                return place / name
        known = None if header is not None else self._known(folder, process)
        if known is None:
            if self.logs_made >= _MOST_LOGS:
                raise NoRoom(f"{_MOST_LOGS} processes have sent to this run; start another run")
            self.logs_made += 1
        return place / (known or usual)

    def _known(self, folder: str, process: bytes) -> str | None:
        """Find a log whose name only the header, which came long ago, could tell."""
        if folder not in self._names:
            place = self.path / folder
            names = os.listdir(place) if place.is_dir() else []
            self._names[folder] = {name.rpartition("-")[2]: name for name in names}
        return self._names[folder].get(f"{process.hex()[-8:]}{LOG_SUFFIX}")


class Keeper:
    """Keeps frames in a directory of runs; for one thread at a time."""

    def __init__(self, directory: Path, *, only_run: str | None = None) -> None:
        """Keep nothing yet.

        Args:
            directory: Where the runs are; made when the first frame comes.
            only_run: The only run that is taken.
        """
        self.directory = directory
        self.only_run = only_run
        self.runs_made = 0
        self._runs: dict[str, _Run] = {}
        self._logs: OrderedDict[LogKey, LogFile] = OrderedDict()
        self._open: OrderedDict[LogKey, LogFile] = OrderedDict()

    def keep(self, run: str, tags: Mapping[str, str], process: bytes, data: bytes) -> Kept:
        """Keep the frames of one process; when it returns, they survive this one.

        Raises:
            IngestError: They were not kept, or not all; sending all of them again is right.
        """
        self.check_run(run)
        if len(process) != PROCESS_BYTES:
            raise FramesRefused(f"a process id has {PROCESS_BYTES} bytes, this one {len(process)}")
        frames = read_frames(data, process)
        if not frames:
            return Kept(0)
        first = frames[0].head
        header = next((frame.head.header for frame in frames if frame.head.header), None)
        created_ns = first.clock.wall_at(first.mono_ns) if header is None else header.started_ns
        self.make_run(run, tags, created_ns, process)
        doubled = 0
        for is_payload in (True, False):
            part = [frame for frame in frames if frame.head.is_payload is is_payload]
            if part:
                log = self._log(run, process, header, is_payload=is_payload)
                doubled += len(part) - self._append(log, part, data)
        has_ended = any(frame.head.end is not None for frame in frames)
        return Kept(len(frames), doubled, has_ended)

    def line_of(self, run: str, process: bytes) -> ClockLine | None:
        """Give the newest clock line of a process, as far as its frames were kept here."""
        log = self._logs.get((run, process, False))
        return None if log is None else log.line

    def check_run(self, run: str) -> None:
        """Make sure that a run may be kept here.

        Raises:
            FramesRefused: No run may be called so.
            WrongRun: Another run is taken only.
        """
        if self.only_run is not None and run != self.only_run:
            raise WrongRun(f"this server takes the run {self.only_run!r} only")
        if run in self._runs:
            return
        if not run:  # which means "not given" to a setting
            raise FramesRefused("no run is named")
        try:
            resolve({"run": run}, {})
        except SettingError as error:
            raise FramesRefused(str(error)) from None

    def make_run(self, run: str, tags: Mapping[str, str], created_ns: int, writer: bytes) -> Path:
        """Have a run directory, with its run.json; the name has to be checked before.

        Args:
            run: Its name.
            tags: Its labels, if it is new.
            created_ns: When it began, if it is new.
            writer: The process it is made for.

        Raises:
            NoRoom: Too many were made, or the disk is full.
            CollectorAway: It cannot be made.
        """
        path = self.directory / run
        file = path / RUN_FILE
        try:
            if run in self._runs and file.exists():
                return path
            if not path.is_dir():
                if self.runs_made >= _MOST_RUNS:
                    raise NoRoom(f"this server has made {_MOST_RUNS} runs; start it again for more")
                (path / LOG_DIR).mkdir(parents=True)
                self.runs_made += 1
            write_run_file(str(file), run, created_ns, dict(tags), writer)
        except OSError as error:
            raise write_trouble(error, f"the run {run}") from error
        self._runs.setdefault(run, _Run(path))
        return path

    def close(self) -> None:
        """Let go of every log."""
        for log in self._open.values():
            log.release()
        self._open.clear()
        self._logs.clear()

    def _log(
        self, run: str, process: bytes, header: ProcessHeader | None, *, is_payload: bool
    ) -> LogFile:
        """Give a log, locked and known."""
        key = (run, process, is_payload)
        log = self._logs.get(key)
        if log is None:
            path = self._runs[run].path_for(process, header, is_payload=is_payload)
            log = LogFile(path, process)
        log.hold()
        for ordered, most in ((self._logs, _MOST_KNOWN), (self._open, _MOST_OPEN)):
            ordered[key] = log
            ordered.move_to_end(key)
            if len(ordered) > most:
                ordered.popitem(last=False)[1].release()
        return log

    def _append(self, log: LogFile, frames: list[FramePlace], data: bytes) -> int:
        """Write those that are new, all with one write, and give how many they are."""
        new = {f.head.number: f for f in frames if f.head.number not in log.numbers}
        if not new:
            return 0
        places = list(new.values())
        with memoryview(data) as view:
            log.append(_joined(view, places), [place.head for place in places])
        return len(places)


def _joined(view: memoryview, places: list[FramePlace]) -> bytes | memoryview:
    """Put frames together, without a copy if they stand together already."""
    start, end = places[0].start, places[-1].end
    if sum(place.end - place.start for place in places) == end - start:
        return view[start:end]
    return b"".join(view[place.start : place.end] for place in places)
