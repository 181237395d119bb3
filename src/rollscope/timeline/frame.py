"""View frames: the one binary layout in which spans reach the page.

    magic `RSV1` | u32 length H | H bytes of JSON, padded with spaces | columns

All numbers are little-endian. 8 + H is a multiple of 8, and so is the offset of every column, which
counts from the first byte behind the header. A packed frame (`"encoding": "gzip-planes"`) has one
gzip stream there instead; `packing` says what is inside. What the columns mean stands in
docs/view-frame.md; this module owns the envelope and knows no span.
"""

import gzip
import struct
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.errors import FrameError
from rollscope.timeline.packing import pack_columns, unpack_columns

__all__ = ["MAGIC", "Columns", "ViewFrame", "decode_frame", "encode_frame", "encode_packed"]

MAGIC: Final = b"RSV1"
_HEAD: Final = struct.Struct("<4sI")
_TYPES: Final = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "f64": np.float64}
_TYPE_OF: Final = {np.dtype(kind): name for name, kind in _TYPES.items()}
_GZIP_LEVEL: Final = 4
"""Level 6 takes twice the time for 2 % less."""

Columns = Mapping[str, npt.NDArray[Any]]
"""Any, because columns differ in type, and the layout is what this module is about."""


class ViewFrame(msgspec.Struct):
    """A frame that was read."""

    header: dict[str, Any]
    columns: dict[str, npt.NDArray[Any]]


def encode_frame(header: Mapping[str, Any], columns: Columns) -> bytes:
    """Write columns as they are."""
    table: list[dict[str, Any]] = []
    parts: list[bytes] = []
    offset = 0
    for name, column in columns.items():
        data = _little(column).tobytes()
        table.append(_entry(name, column) | {"offset": offset})
        padding = -len(data) % 8
        parts += [data, bytes(padding)]
        offset += len(data) + padding
    return _envelope({**header, "columns": table}) + b"".join(parts)


def encode_packed(header: Mapping[str, Any], columns: Columns) -> bytes:
    """Write columns in few bytes; the header then says what they are when unpacked."""
    streams, data = pack_columns(columns)
    described = {
        **header,
        "encoding": "gzip-planes",
        "columns": [_entry(name, column) for name, column in columns.items()],
        "streams": [_entry(name, column) for name, column in streams.items()],
    }
    return _envelope(described) + gzip.compress(data, _GZIP_LEVEL, mtime=0)


def decode_frame(data: bytes) -> ViewFrame:
    """Read a frame of either encoding.

    Raises:
        FrameError: It is none.
    """
    if len(data) < _HEAD.size:
        raise FrameError("the view frame is shorter than its head")
    magic, length = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise FrameError(f"no view frame: it begins with {magic!r}")
    body = _HEAD.size + length
    try:
        header: dict[str, Any] = msgspec.json.decode(data[_HEAD.size : body])
        if header.get("encoding") == "gzip-planes":
            streams = _read_planes(header["streams"], gzip.decompress(data[body:]))
            return ViewFrame(header, unpack_columns(header["columns"], streams))
        return ViewFrame(header, _read_columns(header["columns"], data[body:]))
    except (msgspec.DecodeError, OSError, EOFError, KeyError, ValueError) as error:
        raise FrameError(f"the view frame cannot be read: {error}") from error


def _envelope(header: Mapping[str, Any]) -> bytes:
    text = msgspec.json.encode(header)
    text += b" " * (-(len(text) + _HEAD.size) % 8)
    return _HEAD.pack(MAGIC, len(text)) + text


def _entry(name: str, column: npt.NDArray[Any]) -> dict[str, Any]:
    return {"name": name, "type": _TYPE_OF[column.dtype], "length": len(column)}


def _little(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(column).astype(column.dtype.newbyteorder("<"), copy=False)


def _read_columns(table: list[dict[str, Any]], body: bytes) -> dict[str, npt.NDArray[Any]]:
    return {
        entry["name"]: np.frombuffer(
            body, _TYPES[entry["type"]], count=entry["length"], offset=entry["offset"]
        )
        for entry in table
    }


def _read_planes(table: list[dict[str, Any]], body: bytes) -> dict[str, npt.NDArray[Any]]:
    """Put the bytes of each number together again: all first bytes come first, and so on."""
    streams = {}
    offset = 0
    for entry in table:
        kind = np.dtype(_TYPES[entry["type"]])
        size = entry["length"] * kind.itemsize
        planes = np.frombuffer(body, np.uint8, count=size, offset=offset)
        whole = np.ascontiguousarray(planes.reshape(kind.itemsize, entry["length"]).T)
        streams[entry["name"]] = whole.reshape(-1).view(kind)
        offset += size
    return streams
