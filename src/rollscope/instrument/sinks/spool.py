"""The spool of one process: frames on the local disk that a collector does not have for good yet.

One thread writes and another takes; they meet in the files, and hold a lock only while something is
appended or a segment is given up. What the files are called is left
to `spooldir`; where spools lie, and how those of dead processes are found, to `spoolhome`.
"""

import os
import struct
import threading
from contextlib import suppress
from typing import Final

from rollscope.instrument.sinks.ownfile import OwnFile, append_whole
from rollscope.instrument.sinks.spooldir import (
    Destination,
    SpoolDirectory,
    lock_spool,
    make_spool,
    read_destination,
)
from rollscope.model.frames import HEADER_BYTES, MARKER, MAX_BODY_BYTES, pack_frame, scan_frames

__all__ = ["SEGMENT_BYTES", "Spool"]

SEGMENT_BYTES: Final = 4 * 1024 * 1024
"""Small enough that what was delivered does not lie around for long."""
_GIVE_UP_SHARE: Final = 4
"""A segment of which everything was delivered is given up once it has this part of its size."""
_LEAST_READ_BYTES: Final = 64 * 1024
_HEADER: Final = struct.Struct("<4sI")


class Spool:
    """Frames of one process, written by one thread and taken by another."""

    def __init__(
        self, path: str, to: Destination, lock: OwnFile, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        """Use a directory whose lock is held; see `make` and `claim`."""
        self.path = path
        self.to = to
        self.written_bytes = 0
        """Of frames that were written, or found, in this life; counted by the writer only."""
        self.taken_bytes = 0
        """Of those, what need not be delivered any more; counted by the taker only."""
        self._removed_bytes = 0
        self._directory = SpoolDirectory(path)
        self._lock = lock
        self._appending = threading.Lock()
        self._most_bytes = segment_bytes
        self._segment: OwnFile | None = None
        self._segment_number = -1
        self._segment_bytes = 0
        self._is_left = False
        self._number, self._offset, self._peeked = -1, 0, 0

    @classmethod
    def make(cls, path: str, to: Destination, segment_bytes: int = SEGMENT_BYTES) -> "Spool":
        """Make the spool of a process that begins to record."""
        return cls(path, to, make_spool(path, to), segment_bytes)

    @classmethod
    def claim(cls, path: str) -> "Spool | None":
        """Take over what a process left; None if it lives, or nothing is left."""
        lock = lock_spool(path)
        if lock is None:
            return None
        to = read_destination(path)
        if to is None:
            directory = SpoolDirectory(path)
            with suppress(OSError):
                if not directory.segments():  # a process died as it made the spool
                    directory.remove()
            lock.close()
            return None
        spool = cls(path, to, lock)
        try:
            spool._find_left()
        except OSError:
            lock.close()
            raise
        return spool

    def _find_left(self) -> None:
        self._is_left = True
        numbers = self._directory.segments()
        sizes = {number: os.path.getsize(self._directory.segment(number)) for number in numbers}
        number, offset = self._directory.read_taken()
        # A note that cannot be true is none: what is delivered again is known over there.
        if numbers and number <= numbers[-1] and offset <= sizes.get(number, offset):
            self._number, self._offset = number, offset
        later = sum(size for number, size in sizes.items() if number >= self._number)
        self.written_bytes = later - (self._offset if self._number in sizes else 0)

    @property
    def waiting_bytes(self) -> int:
        """How much is not delivered yet."""
        return self.written_bytes - self.taken_bytes

    @property
    def disk_bytes(self) -> int:
        """How much of what was written in this life still lies on the disk."""
        return self.written_bytes - self._removed_bytes

    # The writer's side.

    def write(self, data: bytes) -> None:
        """Append a frame, wholly or not at all."""
        with self._appending:
            append_whole(self._segment_for(len(data)), data)
            self._segment_bytes += len(data)
            self.written_bytes += len(data)

    def _segment_for(self, size: int) -> int:
        """Give the descriptor to append to: of a new segment once the last is full, or gone."""
        segment = self._segment
        is_full = self._segment_bytes > 0 and self._segment_bytes + size > self._most_bytes
        if segment is not None and not is_full and segment.is_in_place:
            return segment.fileno()
        # Only now: a program that closes descriptors closes the segment's too, and whoever removes
        # the directory removes the segment.
        if not self._lock.is_in_place:
            self._lock.close()
            self._lock = make_spool(self.path, self.to)
        if segment is None or is_full or segment.is_removed:
            if segment is not None:
                segment.close()
            name = self._directory.segment(self._segment_number + 1)
            self._segment = segment = OwnFile(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._segment_number += 1
            self._segment_bytes = 0
        return segment.descriptor()

    # The taker's side.

    def peek(self, most_bytes: int) -> bytes:
        """Give frames that wait, whole ones, of so many bytes at most or a single one; or none."""
        written = self.written_bytes
        numbers = self._directory.segments()
        for number in numbers:
            if number < self._number:
                self._remove(number)
                continue
            if number > self._number:
                self._number, self._offset = number, 0
            # Listed before it is read: a segment that is not the last gets nothing more.
            is_final = self._is_left or number != numbers[-1]
            if data := self._read(max(most_bytes, _LEAST_READ_BYTES), is_final=is_final):
                return data
            if is_final:
                self._remove(number)
        self.taken_bytes = max(self.taken_bytes, written)  # files that somebody took away included
        return b""

    def _read(self, most_bytes: int, *, is_final: bool) -> bytes:
        """Give the next whole frames of the segment, noting how many bytes they stand for."""
        while True:
            chunk, is_end = self._chunk(most_bytes)
            if not self._is_left and (end := _whole_bytes(chunk)):
                self._peeked = end
                return chunk[:end]
            if not is_final:
                return b""  # its writer is still at it
            # What a crash left behind may be torn or damaged, and a collector would refuse it.
            scan = scan_frames(chunk, final=is_end)
            if scan.bodies:
                self._peeked = scan.end
                return b"".join(map(pack_frame, scan.bodies))
            self._offset += scan.end
            self.taken_bytes += scan.end
            if is_end:
                return b""

    def _chunk(self, most_bytes: int) -> tuple[bytes, bool]:
        """Read on in the segment, one frame at least; and say whether that is its end."""
        try:
            with open(self._directory.segment(self._number), "rb", buffering=0) as file:
                chunk = os.pread(file.fileno(), most_bytes, self._offset)
                needed = _frame_bytes(chunk)
                if needed > len(chunk):
                    chunk = os.pread(file.fileno(), needed, self._offset)
                return chunk, self._offset + len(chunk) >= os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return b"", True

    def take(self) -> None:
        """Forget what `peek` gave: the collector has it for good."""
        self._offset += self._peeked
        self.taken_bytes += self._peeked
        self._peeked = 0
        self._directory.write_taken(self._number, self._offset)
        if self._number == self._segment_number and self._segment is not None:
            self._give_up_segment(self._segment)

    def _give_up_segment(self, segment: OwnFile) -> None:
        """Remove the segment that is being written, if it is large and holds nothing new."""
        if self._offset < self._most_bytes // _GIVE_UP_SHARE:
            return
        with self._appending:
            if self._segment is segment and self._offset == self._segment_bytes:
                segment.close()
                self._segment = None
                self._remove(self._number)

    def set_aside(self, data: bytes) -> str | None:
        """Keep what `peek` gave apart and go on without it; gives the file, None if it is gone."""
        kept = self._directory.keep_refused(f"{self._number:08d}-{self._offset}", data)
        self.take()
        return kept

    def _remove(self, number: int) -> None:
        with suppress(OSError):
            name = self._directory.segment(number)
            size = os.path.getsize(name)
            os.unlink(name)
            self._removed_bytes += size

    # The end.

    def release(self) -> None:
        """Let go; the directory stays if anything in it is still of use."""
        try:
            if self._lock.is_in_place:
                self._is_left = True  # nothing is written any more
                if not self.peek(0) and not self._directory.has_refused():
                    self._directory.remove()
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Close the files and touch nothing: all that a forked child may do."""
        if self._segment is not None:
            self._segment.close()
        self._lock.close()


def _frame_bytes(chunk: bytes) -> int:
    """Say how long the frame is that a chunk begins with; 0 if it begins with none."""
    if len(chunk) < HEADER_BYTES:
        return 0
    marker, length = _HEADER.unpack_from(chunk)
    return HEADER_BYTES + length if marker == MARKER and length <= MAX_BODY_BYTES else 0


def _whole_bytes(chunk: bytes) -> int:
    """Say how much of a chunk is whole frames, going by what they say of their length."""
    end, size = 0, len(chunk)
    while end + HEADER_BYTES <= size:
        marker, length = _HEADER.unpack_from(chunk, end)
        if marker != MARKER or end + HEADER_BYTES + length > size:
            break
        end += HEADER_BYTES + length
    return end
