"""Packed columns: differences and runs instead of numbers, split into planes of bytes.

The rows of a frame are in order of lane, row and start, so most of what they say can be said as a
small difference. The streams, in order:

- `run_lane`, `run_row`, `run_length`: one entry for each stretch of rows of one (lane, row);
- `gap` u32: ticks between the end of the previous span of the same (lane, row), or 0 for the first
  of a stretch, and the start of this one. Nothing follows an open span in its stretch;
- `dur` u32, `name` u16, `flags` u8: as they are;
- `session` u32: the difference to the session of the row before (0 before the first), modulo 2^32,
  in zig-zag: d -> (d << 1) ^ (d >> 31) on signed 32 bits;
- `ids_low` u32, `ids_high` u32: the same differences of the two halves of `session_ids`;
- every other column under its own name, as it is.

Each stream is written as planes: the lowest byte of every number, then the next byte of every
number, and so on. The planes of all streams stand one behind the other with no padding.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["OPEN", "pack_columns", "unpack_columns"]

OPEN: Final = 0xFFFFFFFF
"""The duration of a span that has not ended."""
_DERIVED: Final = frozenset(
    {"start", "dur", "session", "lane", "row", "name", "flags", "session_ids"}
)

U32 = npt.NDArray[np.uint32]
Streams = dict[str, npt.NDArray[Any]]


def pack_columns(columns: Mapping[str, npt.NDArray[Any]]) -> tuple[Streams, bytes]:
    """Give the streams, and all of their planes."""
    lane, row = columns["lane"], columns["row"]
    first = _first_of_runs(lane, row)
    ids = columns["session_ids"]
    streams: Streams = {
        "run_lane": lane[first],
        "run_row": row[first],
        "run_length": np.diff(first, append=len(lane)).astype(np.uint32),
        "gap": _gaps(columns["start"], columns["dur"], first),
        "dur": columns["dur"],
        "name": columns["name"],
        "flags": columns["flags"],
        "session": _zigzag(columns["session"]),
        "ids_low": _zigzag(ids[0::2]),
        "ids_high": _zigzag(ids[1::2]),
        **{name: column for name, column in columns.items() if name not in _DERIVED},
    }
    return streams, b"".join(_planes(stream) for stream in streams.values())


def unpack_columns(table: list[dict[str, Any]], streams: Streams) -> Streams:
    """Give the columns that were packed, in the order of the header."""
    lengths = streams["run_length"].astype(np.int64)
    first = np.cumsum(lengths) - lengths
    ids = np.empty(2 * len(streams["ids_low"]), np.uint32)
    ids[0::2] = _unzigzag(streams["ids_low"])
    ids[1::2] = _unzigzag(streams["ids_high"])
    columns = {
        **streams,
        "start": _starts(streams["gap"], streams["dur"], first, lengths),
        "session": _unzigzag(streams["session"]),
        "lane": np.repeat(streams["run_lane"], lengths),
        "row": np.repeat(streams["run_row"], lengths),
        "session_ids": ids,
    }
    return {entry["name"]: columns[entry["name"]] for entry in table}


def _first_of_runs(lane: npt.NDArray[Any], row: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if not len(lane):
        return np.zeros(0, np.int64)
    changes = (lane[1:] != lane[:-1]) | (row[1:] != row[:-1])
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def _gaps(start: U32, dur: U32, first: npt.NDArray[np.int64]) -> U32:
    gaps = start.copy()
    gaps[1:] -= start[:-1] + dur[:-1]  # modulo 2^32; an open span is the last of its stretch
    gaps[first] = start[first]
    return gaps


def _starts(
    gaps: U32, dur: U32, first: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> U32:
    steps = gaps.copy()
    steps[1:] += dur[:-1]
    steps[first] = gaps[first]
    sums = np.cumsum(steps, dtype=np.uint32)
    before = np.where(first > 0, sums[np.maximum(first - 1, 0)], 0).astype(np.uint32)
    starts: U32 = sums - np.repeat(before, lengths)
    return starts


def _zigzag(values: npt.NDArray[Any]) -> U32:
    difference = np.diff(values.astype(np.uint32), prepend=np.uint32(0)).view(np.int32)
    return ((difference << 1) ^ (difference >> 31)).view(np.uint32)


def _unzigzag(values: U32) -> U32:
    difference = (values >> 1) ^ (np.uint32(0) - (values & 1))
    return np.cumsum(difference, dtype=np.uint32)


def _planes(stream: npt.NDArray[Any]) -> bytes:
    little = np.ascontiguousarray(stream).astype(stream.dtype.newbyteorder("<"), copy=False)
    return little.view(np.uint8).reshape(len(stream), little.itemsize).T.tobytes()
