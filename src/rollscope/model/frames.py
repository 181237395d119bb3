"""Frames: how a batch of records stands in a log file and on the wire.

A frame is a marker, the length of its body, the CRC-32 of its body, and the body, numbers being
little-endian. It stands alone: no frame needs another one to be read. What the body means is left
to `batch`.
"""

import struct
import zlib
from typing import Final, NamedTuple

from rollscope.errors import FrameError

__all__ = ["HEADER_BYTES", "MARKER", "MAX_BODY_BYTES", "Scan", "pack_frame", "scan_frames"]

MARKER: Final = b"RSF1"
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
"""Longer lengths are taken for damage; a writer never comes near it."""

_HEADER = struct.Struct("<4sII")
HEADER_BYTES: Final = _HEADER.size


class Scan(NamedTuple):
    """What a stretch of bytes holds."""

    bodies: list[bytes]
    """The bodies of the whole, valid frames, in order."""
    end: int
    """Where the unread rest begins: a frame that is not complete yet, or nothing."""
    damaged: int
    """Bytes that had to be stepped over because they were no valid frame."""


def pack_frame(body: bytes) -> bytes:
    """Wrap a body into a frame."""
    if len(body) > MAX_BODY_BYTES:
        raise FrameError(f"a frame body has {len(body)} bytes; the most is {MAX_BODY_BYTES}")
    return _HEADER.pack(MARKER, len(body), zlib.crc32(body)) + body


def scan_frames(data: bytes | memoryview, *, final: bool = False) -> Scan:
    """Find every whole frame in `data`.

    Damage in the middle is stepped over: reading goes on at the next marker. An incomplete frame
    at the end is left unread, since its writer may still be at it (and text inside it may look
    like a frame); with `final` it counts as damage and is searched for whole frames too.
    """
    view = bytes(data)
    bodies: list[bytes] = []
    position, damaged, size = 0, 0, len(view)
    while position < size:
        state, end = _frame_at(view, position)
        if state == "whole":
            bodies.append(view[position + HEADER_BYTES : end])
            position = end
            continue
        if state == "short" and not final:
            break
        following = _next_marker(view, position + 1)
        damaged += following - position
        position = following
    return Scan(bodies, position, damaged)


def _frame_at(view: bytes, position: int) -> tuple[str, int]:
    """Say whether a frame that starts here is whole, short of bytes, or bad; and where it ends."""
    head = view[position : position + HEADER_BYTES]
    if len(head) < HEADER_BYTES:
        marker = head[: len(MARKER)]
        return ("short" if MARKER.startswith(marker) else "bad"), position
    marker, length, crc = _HEADER.unpack(head)
    if marker != MARKER or length > MAX_BODY_BYTES:
        return "bad", position
    end = position + HEADER_BYTES + length
    if end > len(view):
        return "short", end
    if zlib.crc32(view[position + HEADER_BYTES : end]) != crc:
        return "bad", end
    return "whole", end


def _next_marker(view: bytes, start: int) -> int:
    """Find where the next frame may start: a marker, or the beginning of one at the very end."""
    found = view.find(MARKER, start)
    if found >= 0:
        return found
    for keep in range(len(MARKER) - 1, 0, -1):
        if len(view) - keep >= start and view.endswith(MARKER[:keep]):
            return len(view) - keep
    return len(view)
