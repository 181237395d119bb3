"""Starting the live page beside a training program: as a process of its own, once per host.

The program only spawns `python -m rollscope view` and goes on; the viewer finds its port and
prints its address itself. Two things tie them together. A lock on a file of the run directory,
taken here and inherited there, keeps other processes of the host from starting a second one. And a
pipe whose far end is the viewer's standard input: when the program stops recording, or dies, the
kernel closes it, and the viewer ends when nobody else records into the run.
"""

import fcntl
import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from rollscope.config import Settings
from rollscope.instrument.guard import tell_once

__all__ = ["LOCK_FD", "Viewer", "start_viewer"]

_NEEDED: Final = ("duckdb", "numpy", "pyarrow", "rich", "starlette", "uvicorn")
_RANKS: Final = ("RANK", "LOCAL_RANK")
"""As torchrun and its kin set them."""
LOCK_FD: Final = 15
"""The viewer's number for the locked file, which is also what it writes its faults to."""

_started: list[int] = []
"""Viewers whose end nobody has taken note of yet."""


class Viewer:
    """A viewer that was started here."""

    def __init__(self, pid: int, pipe: int | None) -> None:
        self.pid = pid
        self._pipe = pipe

    def let_go(self) -> None:
        """Let the viewer end with the run; safe to call in a forked child, and again."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)


def start_viewer(settings: Settings, run: str, more: Sequence[str] = ()) -> Viewer | None:
    """Start a viewer, unless another process of this host has, or is the one to.

    Args:
        settings: Where the run is, and whether the viewer stays.
        run: Its name.
        more: Further arguments of `rollscope view`.
    """
    _bury_ended()
    if not _is_first(settings.rank):
        return None
    if settings.sink != "file":
        _tell_no_files(settings.sink)
        return None
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing or not sys.executable:
        tell_once(
            "viewer",
            "Rollscope cannot start its viewer, %s is missing: pip install 'rollscope[server]'",
            ", ".join(missing) or "the interpreter",
        )
        return None
    place = os.path.join(os.path.abspath(settings.dir), run)
    lock = _take_lock(place)
    if lock is None:
        return None
    try:
        return _spawn(place, settings.viewer, lock, more)
    finally:
        os.close(lock)


def _tell_no_files(sink: object) -> None:
    """Say why no viewer is started; an address may hold a token, so it is not repeated."""
    if isinstance(sink, str) and sink not in ("none", "ray"):
        tell_once(
            "viewer", "Rollscope starts no viewer: the page is on the server that records go to"
        )
    else:
        tell_once("viewer", "Rollscope has no files to view with sink %r", sink)


def _bury_ended() -> None:
    """Take note of viewers that have ended, so that they do not stay as zombies."""
    for pid in list(_started):
        try:
            is_over = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:  # somebody else has waited for all children
            is_over = True
        if is_over:
            _started.remove(pid)


def _is_first(rank: int | None) -> bool:
    """Say whether this is the process among its like that starts what is needed once."""
    if rank is not None:
        return rank == 0
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def _take_lock(place: str) -> int | None:
    """Lock the file that stands for this host's viewer of the run; None if another has it."""
    os.makedirs(place, exist_ok=True)
    host = re.sub(r"[^A-Za-z0-9.]+", "_", os.uname().nodename) or "host"
    path = os.path.join(place, f"viewer-{host}.log")
    opened = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    # Out of the way of the numbers that are given to the viewer's files one after another.
    lock = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, LOCK_FD + 1)
    os.close(opened)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _spawn(place: str, viewer: bool | int | str, lock: int, more: Sequence[str]) -> Viewer:
    command = [sys.executable, "-m", "rollscope", "view", place, *more]
    if type(viewer) is int:
        command += ["--port", str(viewer)]
    environ = {name: item for name, item in os.environ.items() if name != "ROLLSCOPE_VIEWER"}
    if viewer == "stay":
        return Viewer(_start([*command, "--until", "stopped"], environ, None, lock), None)
    reading, writing = os.pipe()
    try:
        pid = _start([*command, "--until", "run"], environ, reading, lock)
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Viewer(pid, writing)


def _start(command: list[str], environ: dict[str, str], stdin: int | None, lock: int) -> int:
    """Start a process in a session of its own, which the terminal's Ctrl+C does not reach.

    Spawned rather than forked: no hook of the program runs, and none of its memory is copied.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        pid = os.posix_spawn(
            command[0],
            command,
            environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, nothing if stdin is None else stdin, 0),
                (os.POSIX_SPAWN_DUP2, nothing, 1),
                (os.POSIX_SPAWN_DUP2, lock, LOCK_FD),
            ],
            setsid=True,
            setsigmask=(),
        )
    finally:
        os.close(nothing)
    _started.append(pid)
    return pid
