"""Where events of a Chrome trace stand: the clock domain of their process, and their lane."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from rollscope.importing.chrome_events import Key
from rollscope.importing.chrome_survey import Survey, TraceFile, TraceProcess
from rollscope.importing.chrome_writers import Writer
from rollscope.importing.values import stable_bytes
from rollscope.importing.writing import ZERO_NS, Domain, RunWriter

__all__ = ["Track", "Tracks"]

_OWN_TITLE: Final = re.compile(r"(?:\[(.*)\] )?(?:Rank (\d{1,9}), )?Process (\d{1,9}|[0-9a-f]+)")
_ENDINGS: Final = (".gz", ".zst", ".json", ".jsonl", ".trace", ".pt")
_LATEST_NS: Final = 2**62
_WORKER_CHARACTERS: Final = len("worker:") + 8
"""Enough of the id of a worker of Ray to tell it from others."""
_MOST_TRACKS: Final = 100_000
"""That are kept at hand."""


class Track(NamedTuple):
    """One track of a viewer."""

    file: TraceFile
    process: TraceProcess
    domain: Domain
    tid: Key
    thread: str
    lane: str
    trace_id: bytes
    """Of what belongs to nothing else."""
    is_unsorted: bool

    def holds(self, start_ns: int, end_ns: int) -> bool:
        """Say whether times are such as its clock gives."""
        if self.process.is_wall:
            return start_ns >= ZERO_NS and 0 < end_ns < _LATEST_NS
        # Without an anchor, the zero of a clock stands here or later.
        shift = self.domain.shift_ns or ZERO_NS
        return 0 < start_ns + shift < _LATEST_NS and 0 < end_ns + shift < _LATEST_NS


class Tracks:
    """Gives every process its domain, and every track its lane."""

    def __init__(self, writer: RunWriter, survey: Survey) -> None:
        self._writer, self._survey = writer, survey
        self._tracks: dict[tuple[int, Key, Key], Track] = {}
        self._owners: dict[str, object] = {}

    def settle(self) -> None:
        """Make the domains, once everything was looked at."""
        for number, file in self._survey.files.items():
            for process in sorted(file.processes.values(), key=lambda process: process.order):
                self._settle(number, file, process)

    def find(self, file_number: int, pid: Key, tid: Key) -> Track | None:
        """Give a track; None if its file was not looked at."""
        key = (file_number, pid, tid)
        found = self._tracks.get(key)
        if found is None:
            file = self._survey.files.get(file_number)
            process = None if file is None else file.process(pid)
            if file is None or process is None or process.domain is None:
                return None
            found = _track(file, process, process.domain, pid, tid)
            if len(self._tracks) >= _MOST_TRACKS:
                self._tracks.clear()
            self._tracks[key] = found
        return found

    def _settle(self, number: int, file: TraceFile, process: TraceProcess) -> None:
        role, rank, host, pid = _about(file, process)
        owner: object = (process.title, process.pid) if process.is_wall else (number, process.pid)
        if file.writer == Writer.TORCH:
            owner = (process.title, file.base_ns or number)
        name, copy = process.title, 1
        while self._owners.setdefault(name, owner) != owner:
            copy += 1
            name = f"{process.title}.{copy}"
        is_wall = process.is_wall
        domain = self._writer.domain(
            name, role=role, rank=rank, host=host, pid=pid, is_wall=is_wall
        )
        if not is_wall and file.base_ns is not None:
            domain.anchor(file.base_ns)
            self._writer.note_wall(file.base_ns)
        elif is_wall:
            self._writer.note_wall(process.first_ns)
        process.domain = domain


def _about(file: TraceFile, process: TraceProcess) -> tuple[str, int | None, str, int]:
    """Name a process; give its role, rank, host and number."""
    pid = process.pid if isinstance(process.pid, int) else 0
    if file.writer == Writer.TORCH:
        stem = Path(file.place.file.path).name
        for ending in _ENDINGS:
            stem = stem.removesuffix(ending)
        process.title = f"torch {stem}" if file.rank is None else f"torch-r{file.rank}"
        return "torch", file.rank, "", 0
    if file.writer == Writer.RAY:
        host = process.name.removeprefix("Node ") or str(process.pid)
        process.title = f"Node {host}"
        return "ray", None, host, 0
    if file.writer == Writer.ROLLSCOPE:
        found = _OWN_TITLE.fullmatch(process.name)
        if found is not None:
            role, rank, number = found[1] or "", found[2], found[3]
            process.title = f"{role}-r{rank}/{number}" if rank else f"{role or 'process'}/{number}"
            own = int(number) if number.isdecimal() else 0
            return role, int(rank) if rank else None, process.labels, own
    process.title = process.name or (
        process.pid if isinstance(process.pid, str) and process.pid else f"process {process.pid}"
    )
    return process.title, None, "", pid


def _track(file: TraceFile, process: TraceProcess, domain: Domain, pid: Key, tid: Key) -> Track:
    thread = process.threads.get(tid)
    name = "" if thread is None else thread.name
    lane = process.title
    if file.writer == Writer.TORCH:
        is_device = process.labels.startswith("GPU")
        lane = f"{lane} {process.labels} {name or f'stream {tid}'}" if is_device else lane
    elif file.writer == Writer.RAY:
        lane = f"{lane.removeprefix('Node ')} {(name or str(tid))[:_WORKER_CHARACTERS]}"
    elif process.pid != pid:
        lane = f"process {pid}"
    elif name or len(process.threads) > 1:
        lane = f"{lane} {name or f'thread {tid}'}"
    is_unsorted = thread is not None and thread.is_unsorted
    trace_id = stable_bytes(16, domain.name)
    return Track(file, process, domain, tid, name, lane[:256], trace_id, is_unsorted)
