"""The runs of a directory at a glance, without opening them."""

import time
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from rollscope.errors import RollscopeError
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
from rollscope.store.glance import glance_at
from rollscope.store.manifest import Shelf
from rollscope.store.run import read_run_file
from rollscope.store.sealer import SEGMENT_DIR

__all__ = ["RunEntry", "RunsAnswer", "describe_run", "has_living_process"]

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
    is_crashed: bool = False
    """Whether one of the last processes to write, none of which is left, died."""
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
    entry.is_crashed = not entry.is_alive and not entry.is_imported and _has_died(path)
    shelf = Shelf(path / SEGMENT_DIR)
    if not entry.is_alive and shelf.newest():
        segments = shelf.load().manifest.segments
        entry.spans = sum(segment.rows for segment in segments if segment.table == "spans")


def has_living_process(run: Path) -> bool:
    """Say whether any process may still write to a run, by the ends of its newest logs."""
    now_ns = time.time_ns()
    recent = [log for log, at_ns in _newest_logs(run) if now_ns - at_ns < _RECENT_NS]
    # One that was written to a moment ago, and not far enough to tell, belongs to a process.
    return any(glance_at(log, now_ns).status in ("alive", "begun") for log in recent)


def _newest_logs(run: Path) -> list[tuple[Path, int]]:
    """Give the logs that were written to last, and when."""
    dated = [(log, log.stat().st_mtime_ns) for log in (run / LOG_DIR).glob(f"*{LOG_SUFFIX}")]
    return sorted(dated, key=lambda each: each[1], reverse=True)[:_MOST_PEEKED]


def _has_died(run: Path) -> bool:
    """Say whether one of the last processes to write to a run, which all are gone, died."""
    return any(_is_dead(log, at_ns) for log, at_ns in _newest_logs(run))


@lru_cache(maxsize=4096)
def _is_dead(log: Path, written_ns: int) -> bool:
    """Say whether the process of a log died: asked often, and the same until it writes again."""
    return glance_at(log, time.time_ns()).status == "dead"
