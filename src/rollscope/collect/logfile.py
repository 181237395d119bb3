"""One log that a receiver appends to, under a lock, wholly or not at all.

What it knows of a log (which frames it holds, where the last whole one ends) can always be learned
again from the file, so the file may be let go of at any time and taken up again.
"""

import errno
import fcntl
import os
from contextlib import closing, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, NoReturn

from rollscope.collect.frameheads import FrameHead, frames_in_log
from rollscope.errors import CollectorAway, FramesRefused, NoRoom
from rollscope.model.clockline import ClockLine
from rollscope.model.framenumbers import FrameNumbers

__all__ = ["LogFile", "write_trouble"]

_CLOSED: Final = -1
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class LogFile:
    """The log of one process, or its twin with payloads."""

    def __init__(self, path: Path, process: bytes) -> None:
        self.path = path
        self.process = process
        self.numbers = FrameNumbers()
        self.line: ClockLine | None = None
        """The newest clock line of the process."""
        self._line_number = -1
        self._size = 0
        self._file = _CLOSED

    def hold(self) -> None:
        """Have the file open and locked, and know what it holds.

        Raises:
            CollectorAway: Another receiver has it, or it cannot be opened.
            FramesRefused: It is the log of another process.
        """
        try:
            if not self._is_ours():
                self._open()
            size = os.fstat(self._file).st_size
            if size != self._size:
                self._learn(size)
        except OSError as error:
            self.release()
            raise write_trouble(error, self.path.name) from error

    def append(self, data: bytes | memoryview, heads: list[FrameHead]) -> None:
        """Write frames that the log does not hold yet; call `hold` before.

        Raises:
            NoRoom: The disk is full; the log is as it was.
            CollectorAway: It cannot be written for another reason.
        """
        written = 0
        try:
            with memoryview(data) as view:
                while written < len(view):
                    written += os.write(self._file, view[written:])
        except OSError as error:
            if written:
                with suppress(OSError):
                    os.ftruncate(self._file, self._size)
            raise write_trouble(error, self.path.name) from error
        self._size += written
        for head in heads:
            self._note(head)

    def release(self) -> None:
        """Close the file, and with it let go of the lock."""
        if self._file != _CLOSED:
            os.close(self._file)
            self._file = _CLOSED

    def _is_ours(self) -> bool:
        """Say whether the open file is still what lies at the path: a run may be deleted."""
        if self._file == _CLOSED:
            return False
        if os.fstat(self._file).st_nlink:
            return True
        self.release()
        self._forget()
        return False

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise CollectorAway(
                f"another server holds {self.path.name}; let only one take this run"
            ) from None

    def _learn(self, size: int) -> None:
        """Find out what was added to the file, and cut off a frame that nobody finished."""
        if size < self._size:
            self._forget()
        end = self._size
        if size > end:
            with (
                mmap(self._file, size, access=ACCESS_READ) as log,
                closing(frames_in_log(log, end)) as places,
            ):
                for place in places:
                    if place.head.process == self.process:
                        self._note(place.head)
                    elif not end:
                        self._refuse_foreign()
                    end = place.end
        if end < size:
            os.ftruncate(self._file, end)
        self._size = end

    def _refuse_foreign(self) -> NoReturn:
        self.release()
        self._forget()
        raise FramesRefused(f"{self.path.name} is the log of another process already")

    def _note(self, head: FrameHead) -> None:
        self.numbers.take(head.number)
        if head.number > self._line_number:
            self.line, self._line_number = head.clock, head.number

    def _forget(self) -> None:
        self.numbers = FrameNumbers()
        self.line, self._line_number, self._size = None, -1, 0


def write_trouble(error: OSError, what: str) -> NoRoom | CollectorAway:
    """Say in our words why something could not be written."""
    if error.errno in _FULL:
        return NoRoom(f"there is no room for {what}: {error.strerror}")
    return CollectorAway(f"cannot keep {what}: {error.strerror}")
