"""Targets that were registered by request, in a file beside the runs: they outlive the server.

Several servers may look at one directory, and an engine that two of them ask would be counted
twice. So one of them, which holds a lock, keeps the file; another takes over when that one is gone.
"""

import fcntl
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from rollscope.collect.targets import MOST_TARGETS, Target, make_target
from rollscope.instrument.wholefile import replace_file, write_private
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["TargetStore"]

_NAME: Final = ".rollscope-targets"
_MOST_BYTES: Final = 4 * 1024 * 1024
_log = logging.getLogger("rollscope.scraping")


class _Kept(msgspec.Struct):
    url: str
    replica: str | None = None
    labels: dict[str, str] = {}
    run: str | None = None


class _File(msgspec.Struct):
    targets: list[msgspec.Raw]


class TargetStore:
    """The file; for one thread at a time."""

    def __init__(self, directory: Path, only_run: str | None = None) -> None:
        """Touch nothing yet.

        Args:
            directory: Where the runs are.
            only_run: The only run that is looked at; such a server has a file of its own.
        """
        name = _NAME if only_run is None else f"{_NAME}-{only_run}"
        self.path = directory / f"{name}.json"
        self.problem = ""
        """Why targets are not kept, if they are not."""
        self._lock: int | None = None

    def claim(self, *, make: bool = False) -> list[Target]:
        """Take charge of the file, if nobody else has, and give what it holds that is news.

        Args:
            make: Also if there is no file.
        """
        if self._lock is not None or not (make or os.path.exists(self.path)):
            return []
        try:
            self._lock = self._take_lock()
        except BlockingIOError:
            self.problem = f"another server keeps the targets in {self.path}"
            return []
        except OSError as error:
            self.problem = f"{self.path} cannot be locked: {error.strerror or error}"
            return []
        self.problem = ""
        return self._read()

    def save(self, targets: Iterable[Target]) -> None:
        """Replace what the file holds; whoever reads it sees the old or the new."""
        if self._lock is None:
            return
        kept = [_Kept(one.address.url, one.replica, one.labels, one.run) for one in targets]
        data = msgspec.json.format(msgspec.json.encode({"targets": kept})) + b"\n"
        try:
            if not kept:
                self.path.unlink(missing_ok=True)
                return
            replace_file(self.path, data, is_synced=True)  # an address may hold a token
        except OSError as error:
            self.problem = f"{self.path} cannot be written: {error.strerror or error}"
            _log.warning("Targets are forgotten when the server ends: %s", self.problem)
        else:
            self.problem = ""

    def close(self) -> None:
        """Let another server have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(self.path.with_suffix(".lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise
        return lock

    def _read(self) -> list[Target]:
        """Read what can be read; a file with damage is also put aside as it is."""
        try:
            with self.path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            _log.warning("%s cannot be read: %s", self.path, error.strerror or error)
            return []
        targets, problem = _decoded(data)
        if problem:
            aside = self.path.with_suffix(".damaged")
            with suppress(OSError):
                write_private(aside, data)
            _log.warning(
                "%s is damaged (%s); %d targets are taken from it, the rest stays in %s",
                self.path,
                problem,
                len(targets),
                aside.name,
            )
        return targets


def _decoded(data: bytes) -> tuple[list[Target], str]:
    if len(data) > _MOST_BYTES:
        return [], "it is larger than 4 MiB"
    try:
        entries = msgspec.json.decode(data, type=_File).targets
    except UNDECODABLE as error:
        return [], str(error)
    targets, problem = [], ""
    for entry in entries[:MOST_TARGETS]:
        try:
            one = msgspec.json.decode(entry, type=_Kept)
            targets.append(
                make_target(one.url, replica=one.replica, labels=one.labels, run=one.run)
            )
        except (*UNDECODABLE, ValueError) as error:
            problem = str(error)
    if len(entries) > MOST_TARGETS:
        problem = f"it has more than {MOST_TARGETS} targets"
    return targets, problem
