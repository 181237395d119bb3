"""Processes that were started earlier, told apart from strangers that got the same number.

A number alone says little: the kernel gives it to another process later. So a process is known by
its number, the moment it started, and the boot that this counts from: no two processes share all
three. Its command line is written down for people to read, and not compared, since a script that
wraps a program becomes that program.
"""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["Identity", "end_group", "group_lives", "identify", "is_alive"]

_POLL_S: Final = 0.05
_PS_S: Final = 5.0


class Identity(msgspec.Struct, frozen=True):
    """What tells one process from all others, on any host and after any restart."""

    pid: int
    started: str
    """When, as the kernel counts: ticks since the boot, or a date where there is no /proc."""
    boot: str
    host: str
    command: tuple[str, ...]


def identify(pid: int) -> Identity | None:
    """Describe a living process; None if there is none, or only its remains."""
    found = _from_proc(pid) if os.path.isdir("/proc/self") else _from_ps(pid)
    if found is None:
        return None
    started, command = found
    return Identity(pid, started, _boot(), os.uname().nodename, command)


def is_alive(known: Identity) -> bool:
    """Say whether exactly this process still runs here."""
    found = identify(known.pid)
    return found is not None and msgspec.structs.replace(found, command=known.command) == known


def _from_proc(pid: int) -> tuple[str, tuple[str, ...]] | None:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return None
    # The name of the program stands in brackets and may hold anything, brackets too.
    fields = status.rpartition(")")[2].split()
    if fields[0] in ("Z", "X"):
        return None
    return fields[19], tuple(words[:-1])


def _from_ps(pid: int) -> tuple[str, tuple[str, ...]] | None:
    command = ["ps", "-ww", "-o", "stat=,lstart=,command=", "-p", str(pid)]
    try:
        answer = subprocess.run(  # noqa: S603  (a fixed command, and a number)
            command,
            capture_output=True,
            text=True,
            timeout=_PS_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = answer.stdout.split()
    if len(words) < 7 or words[0].startswith("Z"):
        return None
    return " ".join(words[1:6]), tuple(words[6:])


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def end_group(known: Identity, patience_s: float) -> bool:
    """End a process and those of its group: asked first, killed after a while.

    Whoever is not exactly the process that is meant is left alone.

    Returns:
        Whether there was anything to end.
    """
    if not is_alive(known):
        return False
    _signal_group(known.pid, signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while is_alive(known) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if is_alive(known):
        _signal_group(known.pid, signal.SIGKILL)
        while is_alive(known):
            time.sleep(_POLL_S)
    elif group_lives(known.pid):
        # The leader went first. Its number stays taken as long as its group lives.
        _signal_group(known.pid, signal.SIGKILL)
    return True


def group_lives(group: int) -> bool:
    """Say whether a group has a member that can still be sent signals."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(group) != group:  # never a group that the process merely belongs to
            os.kill(group, number)
            return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
