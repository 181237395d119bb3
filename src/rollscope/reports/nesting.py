"""The timeline of a report: a raw view frame in which a span is told by the one it lies in.

A request fills the call it is part of, and a phase begins where the one before it ended, so what a
span says beyond its parent is little: half of what a packed frame takes. The page makes the raw
frame of it again, byte by byte. Layout, numbers little-endian:

    u32 length of the head | head, JSON: {"tailed", "streams"} | u32 length of what comes before
    the columns of the raw frame | that | the streams, each as planes of bytes

Rows come in stretches of one (lane, row). The parent line of a stretch is the stretch right before
it, if that is the next row up of the same lane. `reached` is the end of the row before in the same
stretch, 0 for the first. The parent of a row: pass over all spans of the parent line that end at or
before `reached`, then over `skip` more; if none is left, there is no parent. Streams:

- `skip` u8, as told;
- `gap`: start less the later of `reached` and the parent's start, modulo 2^32;
- `dur`: as it is; for names in `tailed` whose parent has ended, zig-zag of what is left of the
  parent when it ends, all ones if it has not ended;
- `session`: zig-zag of the difference to the parent's session, or without one to the row before;
- all other columns as they are.
"""

import struct
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline import ViewFrame

__all__ = ["nest_frame"]

_OPEN: Final = 0xFFFFFFFF
_NEVER: Final = 1 << 33
_LINE: Final = 1 << 34
_MOST_SKIPPED: Final = 255
_LENGTH: Final = struct.Struct("<I")

_Ints = npt.NDArray[np.int64]
_Streams = dict[str, npt.NDArray[Any]]


def nest_frame(raw: bytes, frame: ViewFrame) -> bytes:
    """Write a raw frame in few bytes, to be compressed.

    Args:
        raw: The frame, of which the part before the columns is kept.
        frame: The same, decoded; its columns are what is written.
    """
    tailed, streams = _streams(frame)
    table = [
        {"name": name, "width": stream.itemsize, "length": len(stream)}
        for name, stream in streams.items()
    ]
    head = msgspec.json.encode({"tailed": tailed, "streams": table})
    (length,) = _LENGTH.unpack_from(raw, 4)
    kept = raw[: 8 + length]
    parts = [_LENGTH.pack(len(head)), head, _LENGTH.pack(len(kept)), kept]
    return b"".join([*parts, *(_planes(stream) for stream in streams.values())])


def _streams(frame: ViewFrame) -> tuple[list[int], _Streams]:
    columns = dict(frame.columns)
    lane, row = columns["lane"], columns["row"]
    start, dur = columns["start"].astype(np.int64), columns["dur"].astype(np.int64)
    is_open = dur == _OPEN
    end = np.where(is_open, _NEVER, start + dur)
    first, line = _lines(lane, row)
    reached = np.where(np.arange(len(line)) == first[line], 0, np.roll(end, 1))
    parent, skip = _parents(lane, row, first, line, start, end, reached)
    has_parent = parent >= 0
    base = np.where(has_parent, np.maximum(reached, start[parent]), reached)
    tailed, lengths = _lengths(columns["name"], dur, end, parent, is_open)
    session = columns["session"].astype(np.int64)
    before = np.where(has_parent, session[parent], np.roll(session, 1))
    if len(before) and not has_parent[0]:
        before[0] = 0
    columns.pop("start")
    made: _Streams = {
        "skip": skip.astype(np.uint8),
        "gap": (start - base).astype(np.uint32),
    }
    changed: _Streams = {"dur": lengths, "session": _zigzag(session - before)}
    return tailed, made | columns | changed


def _lines(lane: npt.NDArray[Any], row: npt.NDArray[Any]) -> tuple[_Ints, _Ints]:
    """Give where each stretch begins, and the stretch of each row."""
    is_new = np.ones(len(lane), bool)
    is_new[1:] = (lane[1:] != lane[:-1]) | (row[1:] != row[:-1])
    return np.flatnonzero(is_new), np.cumsum(is_new) - 1


def _parents(
    lane: npt.NDArray[Any],
    row: npt.NDArray[Any],
    first: _Ints,
    line: _Ints,
    start: _Ints,
    end: _Ints,
    reached: _Ints,
) -> tuple[_Ints, _Ints]:
    """Give the parent of each row, or -1, and how many had to be passed over for it."""
    is_below = np.zeros(len(first), bool)
    lanes, rows = lane[first].astype(np.int64), row[first].astype(np.int64)
    is_below[1:] = (lanes[1:] == lanes[:-1]) & (rows[1:] == rows[:-1] + 1)
    above = np.where(is_below[line], line - 1, 0)
    candidate = np.searchsorted(line * _LINE + end, above * _LINE + reached, side="right")
    latest = np.searchsorted(line * _LINE + start, above * _LINE + start, side="right") - 1
    skip = np.clip(latest - candidate, 0, _MOST_SKIPPED)
    has_parent = is_below[line] & (candidate < first[line])
    parent = np.where(has_parent, candidate + skip, -1)
    return parent, np.where(has_parent, skip, 0)


def _lengths(
    name: npt.NDArray[Any], dur: _Ints, end: _Ints, parent: _Ints, is_open: npt.NDArray[np.bool_]
) -> tuple[list[int], npt.NDArray[np.uint32]]:
    """Give lengths, or what is left of the parent where that is the smaller number by name."""
    can = (parent >= 0) & ~is_open[parent]
    left = _zigzag(np.where(can & ~is_open, end[parent] - end, 0)).astype(np.int64)
    ended = can & ~is_open
    saved = np.log2(1 + dur[ended]) - np.log2(1 + left[ended])
    by_name = np.bincount(name[ended], weights=saved, minlength=int(name.max(initial=0)) + 1)
    tailed = np.flatnonzero(by_name > 0)
    is_tailed = ended & np.isin(name, tailed)
    return tailed.tolist(), np.where(is_tailed, left, dur).astype(np.uint32)


def _zigzag(values: _Ints) -> npt.NDArray[np.uint32]:
    small = values.astype(np.uint32).view(np.int32)
    return ((small << 1) ^ (small >> 31)).view(np.uint32)


def _planes(stream: npt.NDArray[Any]) -> bytes:
    little = np.ascontiguousarray(stream).astype(stream.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(len(stream), little.itemsize).T.tobytes()
