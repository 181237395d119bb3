"""Where spools lie, how much room is left there, and which of them nobody looks after.

All processes of a user on a host share one directory of spools. A spool whose lock is free belongs
to a process that died, and whoever next records to the same address may deliver it.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spooldir import Destination, read_destination, spooled_bytes

__all__ = [
    "Room",
    "SpoolFull",
    "default_home",
    "find_spools",
    "is_abandoned",
    "prepare_home",
    "say_bytes",
]

_QUIET_S: Final = 900.0
"""A spool of another host, whose lock may not reach us, is taken for left after such a silence."""
_PROBE: Final = ".lockable"
_LEAST_STEP_BYTES: Final = 64 * 1024
_STEPS: Final = 64
"""The others are measured again after this part of the room that was left; so up to so many
processes may write at once and not outgrow the bound."""


class SpoolFull(OSError):
    """There is no room for a frame in the spool; the message says how much it may hold."""


def default_home() -> str:
    """Say where spools lie if nobody says otherwise."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    home = os.path.join(state, "rollscope", "spool")
    if os.path.isabs(home) and _is_usable(home):
        return home
    return os.path.join(tempfile.gettempdir(), f"rollscope-spool-{os.geteuid()}")


def _is_usable(home: str) -> bool:
    """Say whether files can be made and locked there; some shared file systems know no locks."""
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        probe = os.open(os.path.join(home, _PROBE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        finally:
            os.close(probe)
    except OSError:
        return False
    return True


def prepare_home(path: str) -> str:
    """Make the directory that spools lie in, and see that nobody else has made it for us.

    Raises:
        OSError: It cannot be made, or belongs to somebody else.
    """
    path = os.path.abspath(path)
    os.makedirs(path, mode=0o700, exist_ok=True)
    if os.stat(path).st_uid not in (os.geteuid(), 0):
        raise PermissionError(f"the spool directory {path} belongs to another user")
    return path


def find_spools(home: str) -> Iterator[tuple[str, Destination]]:
    """Find every spool, of the living and the dead, the oldest first."""
    found: list[tuple[float, str]] = []
    with suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.stat().st_mtime, entry.path))
    for _, path in sorted(found):
        to = read_destination(path)
        if to is not None:
            yield path, to


def is_abandoned(path: str, to: Destination) -> bool:
    """Say whether a spool may be taken over, if its lock is free.

    A lock on a shared file system may not be seen from other hosts; but a living process writes.
    """
    if to.host == os.uname().nodename:
        return True
    newest = 0.0
    with suppress(OSError), os.scandir(path) as entries:
        newest = max((entry.stat().st_mtime for entry in entries), default=0.0)
    return time.time() - newest > _QUIET_S


def say_bytes(size: int) -> str:
    """Write how much a spool holds: `1.1 KiB`, `4.2 MiB`."""
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 2**10:.1f} KiB"


class Room:
    """The bound on all spools to one address, as one of the processes that share it sees it."""

    def __init__(self, home: str, spool: Spool, limit_bytes: int) -> None:
        self._home = home
        self._spool = spool
        self._limit_bytes = limit_bytes
        self._others_bytes = 0
        self._due_bytes = 0
        self._addresses: dict[str, str] = {}

    def check(self, size: int) -> None:
        """See that there is room for a frame.

        Raises:
            SpoolFull: There is none.
        """
        spool = self._spool
        if spool.written_bytes < self._due_bytes and self._left(size) >= 0:
            return
        self._others_bytes = self._measure_others()
        left = self._left(size)
        self._due_bytes = spool.written_bytes + max(left // _STEPS, _LEAST_STEP_BYTES)
        # A frame that is too large for the bound alone must not stop all others behind it.
        is_stuck = size > self._limit_bytes // 2 and spool.waiting_bytes == 0
        if left < 0 and not is_stuck:
            raise SpoolFull(
                f"the spool in {self._home} has reached its bound of "
                f"{self._limit_bytes / 2**20:g} MiB (setting spool_mb)"
            )

    def _left(self, size: int) -> int:
        return self._limit_bytes - self._others_bytes - self._spool.disk_bytes - size

    def _measure_others(self) -> int:
        total, known = 0, self._addresses
        with suppress(OSError), os.scandir(self._home) as entries:
            for entry in entries:
                if entry.path == self._spool.path:
                    continue
                if entry.name not in known and (to := read_destination(entry.path)) is not None:
                    known[entry.name] = to.address
                if known.get(entry.name) == self._spool.to.address:
                    total += spooled_bytes(entry.path)
        return total
