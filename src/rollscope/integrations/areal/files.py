"""One file of JSON lines: what waits for it, writing it, and what happens when that fails."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import pass_over, tell_once
from rollscope.integrations.areal.lines import encode_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LineFile"]

_BATCH_BYTES: Final = 2**20
_LOCK_TIMEOUT_S: Final = 5.0


class LineFile:
    """Appends records to a file, in their order; those that it cannot write wait, up to a bound.

    Args:
        path: Of the file; its folders are made when there is something to write.
        max_bytes: How much may wait while the disk takes nothing. Then the oldest goes first.
    """

    def __init__(self, path: str, max_bytes: int) -> None:
        self.path = path
        self.dropped = 0
        """Lines that were given up."""
        self._max_bytes = max_bytes
        self._records: deque[Callable[[], Iterable[dict[str, Any]]]] = deque()
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._is_torn = False
        """Whether the first line that waits was begun by a write that the disk cut short."""
        self._lock = threading.Lock()

    def put(self, make: Callable[[], Iterable[dict[str, Any]]]) -> None:
        """Take records that are made when they are written."""
        self._records.append(make)

    def restart(self, path: str) -> None:
        """Forget what waits and go on with another file: this is a forked child."""
        self.__init__(path, self._max_bytes)  # type: ignore[misc]  # all of it anew

    def is_written(self) -> bool:
        """Say whether nothing waits."""
        return not self._records and not self._lines

    def write(self) -> bool:
        """Write what waits; false if the disk does not take it."""
        # Whoever holds it may have been interrupted by the signal that brings us here.
        if not self._lock.acquire(timeout=_LOCK_TIMEOUT_S):
            return False
        try:
            self._encode()
            return not self._lines or self._append()
        finally:
            self._lock.release()

    def _encode(self) -> None:
        while self._records:
            for record in self._records.popleft()():
                try:
                    line = encode_line(record)
                except Exception as error:  # one record must not cost the others
                    self.dropped += 1
                    pass_over("writing a line for AReaL", error)
                    continue
                self._lines.append(line)
                self._bytes += len(line)
        # The first line may stand half in the file, so that one has to stay.
        while self._bytes > self._max_bytes and len(self._lines) > 1:
            first = self._lines.popleft() if self._is_torn else b""
            self._bytes -= len(self._lines.popleft())
            self.dropped += 1
            if first:
                self._lines.appendleft(first)

    def _append(self) -> bool:
        try:
            file = self._open()
        except OSError as error:
            self._tell(error)
            return False
        try:
            while self._lines:
                self._append_some(file)
            os.fsync(file)
        except OSError as error:
            self._tell(error)
            return False
        finally:
            os.close(file)
        return True

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            return os.open(self.path, flags, 0o666)

    def _append_some(self, file: int) -> None:
        """Write a megabyte or so with one call; of a line that went in part the rest waits."""
        batch, size = [], 0
        for line in self._lines:
            batch.append(line)
            size += len(line)
            if size >= _BATCH_BYTES:
                break
        written = os.write(file, b"".join(batch))
        self._bytes -= written
        while written:
            line = self._lines.popleft()
            self._is_torn = written < len(line)
            if self._is_torn:
                self._lines.appendleft(line[written:])
                break
            written -= len(line)

    def _tell(self, error: OSError) -> None:
        tell_once(
            f"areal-file:{self.path}",
            "Rollscope cannot write %s now and keeps trying: %s",
            self.path,
            error,
        )
