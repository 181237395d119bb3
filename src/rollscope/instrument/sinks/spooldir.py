"""The directory of a spool: its files, its lock, and what it says about itself.

<spools>/<process>/
  lock          held, by flock, by the process that lives or by whoever takes over from a dead one
  to.json       where the frames belong
  *.rsl         frames one after another, in segments that count up
  taken         how far the collector has them: segment and place in it
  refused/      what a collector has refused for good
"""

import fcntl
import os
import re
from contextlib import suppress
from typing import Final

import msgspec

from rollscope.instrument.sinks.ownfile import OwnFile
from rollscope.model.rundir import LOG_SUFFIX
from rollscope.model.undecodable import UNDECODABLE

__all__ = [
    "Destination",
    "SpoolDirectory",
    "lock_spool",
    "make_spool",
    "read_destination",
    "spooled_bytes",
]

_REFUSED_BYTES: Final = 64 * 1024 * 1024
"""Of one process; what is refused beyond it is gone."""
_SEGMENT: Final = re.compile(r"(\d{8})\.rsl")
_LOCK, _TO, _TAKEN, _REFUSED = "lock", "to.json", "taken", "refused"


class Destination(msgspec.Struct):
    """Where the frames of a spool belong, and who wrote them; no token, which is a secret."""

    address: str
    run: str
    process: str
    """In hex."""
    host: str
    pid: int
    tags: dict[str, str] = {}


class SpoolDirectory:
    """Names and small files of one spool."""

    def __init__(self, path: str) -> None:
        self.path = path

    def segment(self, number: int) -> str:
        """Name a segment."""
        return os.path.join(self.path, f"{number:08d}{LOG_SUFFIX}")

    def segments(self) -> list[int]:
        """List the segments, the oldest first."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return sorted(int(found[1]) for found in map(_SEGMENT.fullmatch, names) if found)

    def read_taken(self) -> tuple[int, int]:
        """Give how far the collector has the frames: number of the segment, place in it."""
        try:
            with open(os.path.join(self.path, _TAKEN)) as file:
                number, offset = map(int, file.read().split())
        except (OSError, ValueError):
            return -1, 0
        return number, offset

    def write_taken(self, number: int, offset: int) -> None:
        """Note how far the collector has the frames, as well as that can be done."""
        with suppress(OSError):  # what is delivered again is known over there
            taken = os.open(os.path.join(self.path, _TAKEN), os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(taken, b"%08d %020d\n" % (number, offset), 0)
            finally:
                os.close(taken)

    def keep_refused(self, name: str, data: bytes) -> str | None:
        """Keep frames that were refused; gives the file, or None if there is no room for it."""
        folder = os.path.join(self.path, _REFUSED)
        path = os.path.join(folder, f"{name}{LOG_SUFFIX}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if _folder_bytes(folder) + len(data) > _REFUSED_BYTES:
                return None
            with open(path, "wb") as file:
                file.write(data)
        except OSError:
            return None
        return path

    def has_refused(self) -> bool:
        """Say whether anything was refused."""
        return os.path.isdir(os.path.join(self.path, _REFUSED))

    def remove(self) -> None:
        """Remove everything; the lock last, so that nobody takes it for free before."""
        for name in (_TAKEN, _TO, _LOCK):
            with suppress(OSError):
                os.unlink(os.path.join(self.path, name))
        with suppress(OSError):
            os.rmdir(self.path)


def make_spool(path: str, to: Destination) -> OwnFile:
    """Make the directory and give its lock, held; who reads `to.json` finds it locked."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    lock = OwnFile(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock.descriptor(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft = os.path.join(path, f"{_TO}.tmp")
        with open(draft, "wb") as file:
            file.write(msgspec.json.encode(to) + b"\n")
        os.replace(draft, os.path.join(path, _TO))
    except BaseException:
        lock.close()
        raise
    return lock


def lock_spool(path: str) -> OwnFile | None:
    """Give the lock of a spool, held; None if somebody else holds it, or it is gone."""
    try:
        lock = OwnFile(os.path.join(path, _LOCK), os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock.descriptor(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    if lock.is_removed:  # by who held it when we opened it
        lock.close()
        return None
    return lock


def read_destination(path: str) -> Destination | None:
    """Read where the frames of a spool belong; None if there is no spool, or it is damaged."""
    try:
        with open(os.path.join(path, _TO), "rb") as file:
            return msgspec.json.decode(file.read(), type=Destination)
    except (OSError, *UNDECODABLE):
        return None


def spooled_bytes(path: str) -> int:
    """Say how much a spool takes on the disk."""
    return _folder_bytes(path) + _folder_bytes(os.path.join(path, _REFUSED))


def _folder_bytes(path: str) -> int:
    total = 0
    with suppress(OSError), os.scandir(path) as entries:
        for entry in entries:
            if entry.name.endswith(LOG_SUFFIX):
                with suppress(OSError):  # delivered at this moment
                    total += entry.stat().st_size
    return total
