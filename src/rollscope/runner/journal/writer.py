"""Writes a journal: in batches and synced, by a thread, so that no task waits for a disk.

A file that has grown too big is rewritten with only what is still needed.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.errors import StateError
from rollscope.runner.guard import log
from rollscope.runner.journal.records import fold_bytes, may_be_torn, pack_record, records_of

if TYPE_CHECKING:
    from rollscope.runner.journal.records import Record

__all__ = ["Journal"]

_MAX_BYTES: Final = 64 * 1024 * 1024
"""A file larger than this, and twice as large as when it was last rewritten, is rewritten."""
_MAX_PENDING: Final = 64 * 1024 * 1024
"""Bytes that may wait to be written before those who submit have to wait."""


class Journal:
    """A journal that is being written, by a thread of its own."""

    def __init__(self, path: str | os.PathLike[str], max_bytes: int | None = None) -> None:
        """Open a file, new or left by an earlier process, and cut off a torn end.

        Args:
            path: The file.
            max_bytes: It is rewritten when it is larger than this.

        Raises:
            StateError: Another process writes it, or it is a file of another kind.
        """
        self.path = Path(path)
        self.error: BaseException | None = None
        """Why nothing is written any more."""
        self.is_closed = False
        self._max_bytes = _MAX_BYTES if max_bytes is None else max_bytes
        self._changed = threading.Condition()
        self._queue: list[Record] = []
        self._pending_bytes = 0
        self._appended = self._synced = 0
        self._is_stopping = False
        self._thread: threading.Thread | None = None
        self._fd = _open_locked(self.path)
        data = self.path.read_bytes()
        self.found, self._size = fold_bytes(data)
        """What an earlier process left to be done."""
        if not self._size and not may_be_torn(data):
            os.close(self._fd)
            raise StateError(f"{path} is no journal of a runner; it is left as it is")
        if self._size < len(data):
            log.warning("%d torn bytes at the end of %s", len(data) - self._size, self.path)
            os.ftruncate(self._fd, self._size)
        self._rewrite_at = max(self._max_bytes, 2 * self._size)

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(
            target=self._write_on, name="rollscope-journal", daemon=True
        )
        self._thread.start()

    def append(self, record: Record, bulk: int = 0) -> None:
        """Have a record written soon; its order is that of the calls.

        Args:
            record: The record.
            bulk: About how many bytes it holds.
        """
        with self._changed:
            self._queue.append(record)
            self._pending_bytes += bulk
            self._appended += 1
            if self._thread is not None:
                self._changed.notify_all()
                return
            batch, self._queue = self._queue, []
            self._write_late(batch)

    def _write_late(self, batch: list[Record]) -> None:
        """Write what comes after the end, such as what is acknowledged when all is closed."""
        self._fd = _open_locked(self.path)
        try:
            self._write(batch)
        finally:
            os.close(self._fd)

    def wait_for_room(self) -> None:
        """Let those who submit wait while too much waits to be written."""
        if self._pending_bytes > _MAX_PENDING:
            self.sync()

    def sync(self, timeout_s: float | None = None) -> bool:
        """Wait until everything so far is on the disk; false if that is not so in time.

        Raises:
            StateError: It cannot be written.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            wanted = self._appended
            while self._synced < wanted and self.error is None:
                left_s = None if deadline is None else deadline - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return False
                self._changed.wait(left_s)
        self.check()
        return True

    def check(self) -> None:
        """Raise if nothing is written any more.

        Raises:
            StateError: The message says why.
        """
        if self.error is not None:
            raise StateError(f"the journal {self.path} cannot be written: {self.error!r}")

    def leave_to_parent(self) -> None:
        """In a forked child: let go of the file, which would stay locked after its writer died."""
        if not self.is_closed:
            os.close(self._fd)

    def close(self) -> None:
        """Write what waits and end the thread; records that still come are written at once."""
        thread = self._thread
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        if thread is not None:
            thread.join()
        if not self.is_closed:
            self.is_closed = True
            os.close(self._fd)

    # --- the thread ------------------------------------------------------------------------------

    def _write_on(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._is_stopping:
                    self._changed.wait()
                batch, self._queue, self._pending_bytes = self._queue, [], 0
                if not batch:
                    self._thread = None
                    return
            self._write(batch)
            with self._changed:
                self._changed.notify_all()

    def _write(self, batch: list[Record]) -> None:
        try:
            if self.error is None:
                data = b"".join(map(pack_record, batch))
                _write_all(self._fd, data)
                os.fdatasync(self._fd)
                self._size += len(data)
                if self._size > self._rewrite_at:
                    self._rewrite()
            self._synced += len(batch)
        except Exception as error:
            self.error = error
            log.exception("the journal %s is written no more", self.path)

    def _rewrite(self) -> None:
        """Keep only what is still needed, in a new file that takes the place of this one."""
        state, _ = fold_bytes(self.path.read_bytes())
        beside = self.path.with_name(self.path.name + ".new")
        fd = os.open(
            beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = sum(_write_all(fd, pack_record(record)) for record in records_of(state))
            os.fsync(fd)
            os.replace(beside, self.path)
        except BaseException:
            os.close(fd)
            raise
        _sync_folder(self.path.parent)
        old, self._fd, self._size = self._fd, fd, size
        os.close(old)
        self._rewrite_at = max(self._max_bytes, 2 * size)


def _open_locked(path: Path) -> int:
    """Open a file for this process alone."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_ino != path.stat().st_ino:  # rewritten between the two
            raise BlockingIOError
        _sync_folder(path.parent)
    except OSError as error:
        os.close(fd)
        if isinstance(error, BlockingIOError):
            raise StateError(f"the journal {path} is written by another process") from error
        raise
    return fd


def _write_all(fd: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    return len(data)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
