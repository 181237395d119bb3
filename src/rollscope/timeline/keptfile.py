"""A file of named columns: written whole or not at all, and read only if every byte is right.

| bytes | content |
|---|---|
| 4 | `RSX1` |
| 4 | length of the head, little-endian |
| 4 | CRC-32 of the head |
| … | the head, MessagePack: what the caller says of the columns, and where each of them lies |
| … | the columns, each compressed by itself |
"""

import os
import secrets
import struct
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Columns", "Unreadable", "read_columns", "write_columns"]

About = TypeVar("About", bound=msgspec.Struct)
Columns = Mapping[str, npt.NDArray[Any]]

_MAGIC: Final = b"RSX1"
_PREFIX: Final = struct.Struct("<4sII")
_READERS: Final = 2
_LEVEL: Final = 1


class Unreadable(Exception):
    """The file is torn, damaged, or of another format."""


class _Column(msgspec.Struct, array_like=True):
    name: str
    dtype: str
    rows: int
    stored: int
    crc: int


class _Head(msgspec.Struct):
    about: msgspec.Raw
    columns: list[_Column]


def write_columns(path: Path, about: msgspec.Struct, columns: Columns) -> None:
    """Write a file in one go; who reads it meanwhile sees it whole or not at all.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    codec = _codec()
    stored = {name: _packed(codec, values) for name, values in columns.items()}
    head = msgspec.msgpack.encode(
        _Head(
            msgspec.Raw(msgspec.msgpack.encode(about)),
            [
                _Column(name, columns[name].dtype.str, len(columns[name]), len(data), _crc(data))
                for name, data in stored.items()
            ],
        )
    )
    draft = path.with_name(f"{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as out:
            out.write(_PREFIX.pack(_MAGIC, len(head), _crc(head)))
            out.write(head)
            out.writelines(stored.values())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def read_columns(path: Path, about: type[About]) -> tuple[About, dict[str, npt.NDArray[Any]]]:
    """Read a file back.

    Raises:
        OSError: It cannot be read.
        Unreadable: It is not what was written.
    """
    data = memoryview(path.read_bytes())
    try:
        magic, length, crc = _PREFIX.unpack_from(data)
        encoded = data[_PREFIX.size : _PREFIX.size + length]
        if magic != _MAGIC or _crc(encoded) != crc:
            raise Unreadable(path.name)
        head = msgspec.msgpack.decode(encoded, type=_Head)
        said = msgspec.msgpack.decode(head.about, type=about)
        return said, _unpack_all(head.columns, data[_PREFIX.size + length :])
    except (struct.error, msgspec.MsgspecError, pa.ArrowException, ValueError, TypeError) as error:
        raise Unreadable(path.name) from error


def _codec() -> pa.Codec:
    return pa.Codec("zstd", compression_level=_LEVEL)


def _packed(codec: pa.Codec, values: npt.NDArray[Any]) -> bytes:
    packed: bytes = codec.compress(np.ascontiguousarray(values).tobytes(), asbytes=True)
    return packed


def _unpack_all(columns: list[_Column], data: memoryview) -> dict[str, npt.NDArray[Any]]:
    ends = np.cumsum([column.stored for column in columns]).tolist()
    if len(data) != (ends[-1] if ends else 0):
        raise Unreadable("its length is wrong")
    pieces = [data[end - column.stored : end] for column, end in zip(columns, ends, strict=True)]
    with ThreadPoolExecutor(_READERS, "rollscope-kept") as pool:
        found = pool.map(_unpacked, columns, pieces)
        return {column.name: values for column, values in zip(columns, found, strict=True)}


def _unpacked(column: _Column, data: memoryview) -> npt.NDArray[Any]:
    if _crc(data) != column.crc:
        raise Unreadable(column.name)
    dtype = np.dtype(column.dtype)
    values = _codec().decompress(data, column.rows * dtype.itemsize)
    return np.frombuffer(values, dtype, column.rows)


def _crc(data: bytes | memoryview) -> int:
    return zlib.crc32(data)
