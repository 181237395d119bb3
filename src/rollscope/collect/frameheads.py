"""What a receiver reads of a frame: where it ends, and whose it is. The rest is skipped.

Two readings of the same bytes: a strict one of what came over the network, where nothing but whole
frames of one process will do, and one of a log that is there already, which may have been cut short
or damaged.
"""

import zlib
from collections.abc import Generator
from mmap import mmap
from struct import Struct
from typing import Final, NamedTuple

import msgspec

from rollscope.errors import FramesRefused
from rollscope.model.batch import ProcessHeader
from rollscope.model.clockline import ClockLine
from rollscope.model.frames import HEADER_BYTES, MARKER, MAX_BODY_BYTES
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["PROCESS_BYTES", "FrameHead", "FramePlace", "frames_in_log", "read_frames"]

PROCESS_BYTES: Final = 8
_HEADER: Final = Struct("<4sII")
_LARGEST: Final = 2**63


class FrameHead(msgspec.Struct):
    """The beginning of a batch, and whether its process ends with it."""

    schema: int
    process: bytes
    number: int
    mono_ns: int
    clock: ClockLine
    header: ProcessHeader | None = None
    end: str | None = None

    @property
    def is_payload(self) -> bool:
        """Whether it belongs into the file with trajectory text."""
        return self.number < 0


class FramePlace(NamedTuple):
    """Where a frame stands in a stretch of bytes."""

    start: int
    end: int
    head: FrameHead


_decode: Final = msgspec.msgpack.Decoder(FrameHead).decode


def read_frames(data: bytes, process: bytes) -> list[FramePlace]:
    """Read what somebody sent: whole frames of one process, one after the other.

    Raises:
        FramesRefused: It is anything else; the message says where and what.
    """
    found: list[FramePlace] = []
    position = 0
    with memoryview(data) as view:
        while position < len(view):
            end = _end_at(view, position)
            if end is None:
                raise FramesRefused(f"there is no whole frame at byte {position} of {len(view)}")
            head = _head_of(view, position, end)
            if head is None:
                raise FramesRefused(f"the frame at byte {position} is damaged, or holds no batch")
            if head.process != process:
                raise FramesRefused(f"the frame at byte {position} is of another process")
            if not -_LARGEST <= head.number < _LARGEST:
                raise FramesRefused(f"the frame at byte {position} has the number {head.number}")
            found.append(FramePlace(position, end, head))
            position = end
    return found


def frames_in_log(log: mmap, start: int) -> Generator[FramePlace, None, None]:
    """Find the whole frames of a log from a place on, through damage.

    Checksums are looked at only where something is amiss: at the very end, and behind damage.
    """
    position = start
    with memoryview(log) as view:
        while position < len(view):
            end = _end_at(view, position)
            place = None
            if end is not None:
                is_sure = bytes(view[end : end + len(MARKER)]) == MARKER
                head = _head_of(view, position, end, checks=not is_sure)
                place = None if head is None else FramePlace(position, end, head)
            if place is None:
                position = log.find(MARKER, position + 1)
                if position < 0:
                    return
                continue
            yield place
            position = place.end


def _end_at(view: memoryview, position: int) -> int | None:
    """Say where a frame that starts here ends; None if it is none, or not whole."""
    if position + HEADER_BYTES > len(view):
        return None
    marker, length, _ = _HEADER.unpack_from(view, position)
    end: int = position + HEADER_BYTES + length
    if marker != MARKER or length > MAX_BODY_BYTES or end > len(view):
        return None
    return end


def _head_of(view: memoryview, start: int, end: int, *, checks: bool = True) -> FrameHead | None:
    _, _, crc = _HEADER.unpack_from(view, start)
    with view[start + HEADER_BYTES : end] as body:
        if checks and zlib.crc32(body) != crc:
            return None
        try:
            return _decode(body)
        except UNDECODABLE:
            return None
