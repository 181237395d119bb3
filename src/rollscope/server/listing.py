"""The runs of a directory at a glance, without opening them."""

import time
from pathlib import Path
from typing import Final

import msgspec

from rollscope.errors import RollscopeError
from rollscope.model.batch import decode_batch
from rollscope.model.frames import scan_frames
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
from rollscope.store.liveness import is_alive
from rollscope.store.manifest import Shelf
from rollscope.store.run import read_run_file
from rollscope.store.sealer import SEGMENT_DIR

__all__ = ["RunEntry", "RunsAnswer", "describe_run", "has_living_process"]

_PEEK_BYTES: Final = 65_536
_RECENT_NS: Final = 60_000_000_000
"""A log that nobody has written to for that long belongs to no living process: they beat at least
every few seconds."""
_MOST_PEEKED: Final = 16


class RunEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One run of the list."""

    name: str
    path_label: str
    is_alive: bool
    created_ns: int
    last_ns: int
    spans: int | None
    """None where nobody has counted them yet; so are the next two."""
    open_sessions: int | None
    steps: int | None
    size_bytes: int
    is_imported: bool = False
    """Whether another tool's files tell of it."""
    problem: str = ""
    """Why it cannot be read."""
    read_share: float | None = None
    """How much of it has been read, while it is being opened."""


class RunsAnswer(msgspec.Struct, kw_only=True):
    """The list of runs."""

    runs: list[RunEntry]
    """The newest first."""
    now_ns: int
    dir: str


def describe_run(name: str, path: Path) -> RunEntry:
    """Say what can be seen of a run from outside."""
    entry = RunEntry(
        name=name,
        path_label=str(path),
        is_alive=False,
        created_ns=0,
        last_ns=0,
        spans=None,
        open_sessions=None,
        steps=None,
        size_bytes=0,
    )
    try:
        _fill(entry, path)
    except (RollscopeError, OSError) as error:
        entry.problem = str(error)
    return entry


def _fill(entry: RunEntry, path: Path) -> None:
    file = read_run_file(path)
    entry.created_ns = path.stat().st_mtime_ns if file is None else file.created_ns
    entry.is_imported = file is not None and file.tags.get("source") == "import"
    for each in path.rglob("*"):
        status = each.stat()
        if each.is_file():
            entry.size_bytes += status.st_size
        if each.suffix == LOG_SUFFIX:
            entry.last_ns = max(entry.last_ns, status.st_mtime_ns)
    entry.is_alive = has_living_process(path)
    shelf = Shelf(path / SEGMENT_DIR)
    if not entry.is_alive and shelf.newest():
        segments = shelf.load().manifest.segments
        entry.spans = sum(segment.rows for segment in segments if segment.table == "spans")


def has_living_process(run: Path) -> bool:
    """Say whether any process may still write to a run, by the ends of its newest logs."""
    now_ns = time.time_ns()
    dated = [(log.stat().st_mtime_ns, log) for log in (run / LOG_DIR).glob(f"*{LOG_SUFFIX}")]
    recent = sorted((each for each in dated if now_ns - each[0] < _RECENT_NS), reverse=True)
    return any(_is_alive(log, now_ns) for _, log in recent[:_MOST_PEEKED])


def _is_alive(log: Path, now_ns: int) -> bool:
    with log.open("rb") as file:
        first = scan_frames(file.read(_PEEK_BYTES)).bodies
        file.seek(max(file.seek(0, 2) - _PEEK_BYTES, 0))
        last = scan_frames(file.read(), final=True).bodies
    header = decode_batch(first[0]).header if first else None
    if header is None or not last:
        return True  # written to a moment ago, and not far enough to tell
    batch = decode_batch(last[-1])
    seen_ns = batch.clock.wall_at(batch.mono_ns) + batch.clock.jumped_ns
    return batch.end is None and is_alive(header, seen_ns, now_ns)
