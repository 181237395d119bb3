"""The files of somebody's Prometheus: changed under a lock, checked first, put back if refused."""

import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from rollscope.instrument.wholefile import replace_file, write_private
from rollscope.stack.filelocks import wait_for_lock
from rollscope.stack.prometheusconfig import TARGETS_DIR, has_job, targets_name, with_job
from rollscope.stack.yamledges import UnsafeEdit

__all__ = ["ConfigFile"]

_LOCK: Final = ".lock"
_LOCK_S: Final = 10.0
_CHECK_S: Final = 30.0
_MOST_BYTES: Final = 16 * 1024 * 1024
_FOR_ALL: Final = 0o644
"""Prometheus is often another user."""


class ConfigFile:
    """A configuration, and the files of targets beside it."""

    def __init__(self, path: Path) -> None:
        """Find it; a link is followed, so that what it leads to is changed.

        Raises:
            OSError: It is not there.
        """
        self.path = path.resolve(strict=True)
        # Prometheus looks for them beside the path that it was given.
        self._beside = path.absolute().parent
        self._targets = self._beside / TARGETS_DIR

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others of us out while the block runs.

        Raises:
            OSError: Another one does not let go of it.
        """
        self._targets.mkdir(exist_ok=True)
        with suppress(OSError):
            self._targets.chmod(0o755)
        lock = os.open(self._targets / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if not wait_for_lock(lock, _LOCK_S):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            yield
        finally:
            os.close(lock)

    def read(self) -> str:
        """Read it.

        Raises:
            UnsafeEdit: It is no text of a sensible size.
            OSError: It cannot be read.
        """
        with self.path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UnsafeEdit("it is larger than 16 MiB")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise UnsafeEdit("it is no UTF-8") from None

    def changed(self, job_name: str) -> str | None:
        """Give the text with the job; None if it has it.

        Raises:
            UnsafeEdit: It cannot be changed safely.
            OSError: It cannot be read.
        """
        text = self.read()
        return None if has_job(text, job_name) else with_job(text, job_name)

    def targets_file(self, job_name: str) -> Path:
        """Say where the targets of a job stand."""
        return self._beside / targets_name(job_name)

    def write_targets(self, job_name: str, data: bytes) -> None:
        """Replace the targets of a job; Prometheus sees the old ones or the new ones."""
        replace_file(self.targets_file(job_name), data, mode=_FOR_ALL)

    def replace(self, text: str) -> Path:
        """Write a new text if it is valid, and give the copy of the old one.

        Raises:
            UnsafeEdit: Prometheus' own checker refuses it; nothing has changed.
            OSError: It cannot be written.
        """
        draft = self.path.with_name(f".{self.path.name}.rollscope-draft")
        try:
            # As it may hold passwords, no copy of it is readable for more than it is, ever.
            write_private(draft, text.encode())
            _check(draft)
            backup = self._free_name()
            write_private(backup, self.path.read_bytes())
            shutil.copystat(self.path, backup)
            self._put(draft)
        finally:
            draft.unlink(missing_ok=True)
        return backup

    def restore(self, backup: Path) -> None:
        """Put the old text back."""
        draft = self.path.with_name(f".{self.path.name}.rollscope-draft")
        write_private(draft, backup.read_bytes())
        self._put(draft)

    def _free_name(self) -> Path:
        """Name a copy, and never that of an earlier one."""
        stamp = time.strftime("%Y%m%dT%H%M%S")
        names = (f"{self.path.name}.{stamp}-{number}.rollscope-backup" for number in count(1))
        return next(path for path in map(self.path.with_name, names) if not path.exists())

    def _put(self, draft: Path) -> None:
        status = self.path.stat()
        draft.chmod(status.st_mode & 0o7777)
        with suppress(OSError):  # only root may
            os.chown(draft, status.st_uid, status.st_gid)
        try:
            draft.replace(self.path)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            # Mounted into a container as a single file, which cannot be exchanged.
            self.path.write_bytes(draft.read_bytes())
            draft.unlink()


def _check(draft: Path) -> None:
    """Have promtool look at it, if it is there; else Prometheus itself does when it reloads."""
    promtool = shutil.which("promtool")
    if promtool is None:
        return
    # Without that option a file that only Prometheus may read would count as a fault.
    command = [promtool, "check", "config", "--syntax-only", str(draft)]
    try:
        checked = subprocess.run(  # noqa: S603  (a program on PATH, without a shell)
            command, capture_output=True, text=True, errors="replace", timeout=_CHECK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    said = f"{checked.stdout}\n{checked.stderr}"
    if checked.returncode and "unknown long flag" not in said:
        why = " ".join(said.partition("FAILED:")[2].split()).replace(str(draft), "it")[:500]
        raise UnsafeEdit(f"promtool refuses what it would become: {why}")
