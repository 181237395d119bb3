"""Segments: immutable, sorted Parquet files, each a piece of one table of a run."""

import os
import secrets
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rollscope.store.rowgroups import row_groups
from rollscope.store.schema import SEGMENT_SCHEMA, TABLES

__all__ = ["SEGMENT_SUFFIX", "Segment", "is_sound", "read_segment", "write_segment"]

SEGMENT_SUFFIX: Final = ".parquet"
_MAGIC: Final = b"PAR1"
_REPEATING: Final = frozenset({"process", "trace_id", "session_id", "parent_id"})
"""Columns with the same few values over and over; other whole numbers are kept as differences."""
_WRITE_ROWS: Final = 16_384
"""Encoded at once: with the usual thousand, writing takes a sixth longer."""
_TIMES: Final = {"spans": ("start_ns", "end_ns")}
_SCHEMA_KEY: Final = b"rollscope.schema"


class Segment(msgspec.Struct, kw_only=True):
    """One file and what is in it."""

    table: str
    file: str
    rows: int
    size: int
    crc: int
    """CRC-32 of the whole file: Parquet's readers do not notice a bit that has flipped."""
    schema: int = SEGMENT_SCHEMA
    low_ns: int = 0
    """Earliest start in it, on the clocks of the processes."""
    high_ns: int = 0
    """Latest end in it."""
    columns: list[str]
    """What it has; columns that were added later read as null."""


def write_segment(folder: Path, name: str, tables: Sequence[pa.Table]) -> Segment:
    """Write rows as a segment; the file is complete and on disk when this returns.

    Args:
        folder: Where to.
        name: The table they belong to.
        tables: The rows, in pieces.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    groups = list(row_groups(name, tables))
    file = f"{name}-{secrets.token_hex(8)}{SEGMENT_SUFFIX}"
    path = folder / file
    sink = pa.BufferOutputStream()
    _write_groups(sink, groups)
    data = sink.getvalue()
    try:
        with path.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    low, high = _extent(name, groups)
    return Segment(
        table=name,
        file=file,
        rows=sum(group.num_rows for group in groups),
        size=data.size,
        crc=zlib.crc32(data),
        low_ns=low,
        high_ns=high,
        columns=groups[0].column_names,
    )


def _write_groups(sink: pa.NativeFile, groups: Sequence[pa.Table]) -> None:
    schema = groups[0].schema.with_metadata({_SCHEMA_KEY: str(SEGMENT_SCHEMA)})
    words = [field.name for field in schema if _is_repeating(field)]
    deltas = [
        field.name
        for field in schema
        if pa.types.is_integer(field.type) and not _is_repeating(field)
    ]
    with pq.ParquetWriter(
        sink,
        schema,
        compression="lz4",
        use_dictionary=words,
        column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
        store_schema=False,
        write_batch_size=_WRITE_ROWS,
    ) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(group.num_rows, 1))


def _is_repeating(field: pa.Field) -> bool:
    return pa.types.is_dictionary(field.type) or field.name in _REPEATING


def _extent(name: str, groups: Sequence[pa.Table]) -> tuple[int, int]:
    start, end = _TIMES.get(name, ("time_ns", "time_ns"))
    lows = [low for group in groups if (low := pc.min(group[start]).as_py()) is not None]
    highs = [high for group in groups if (high := pc.max(group[end]).as_py()) is not None]
    low = min(lows, default=0)
    return low, max(highs, default=low)


def read_segment(folder: Path, segment: Segment) -> pa.Table:
    """Read a whole segment, columns that it does not have yet as null."""
    schema = TABLES[segment.table]
    words = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    table = pq.read_table(folder / segment.file, read_dictionary=words)
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def is_sound(folder: Path, segment: Segment, *, deep: bool = False) -> bool:
    """Say whether a segment is whole: by its size and last bytes, or by reading all of it."""
    path = folder / segment.file
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) != segment.size:
                return False
            file.seek(-len(_MAGIC), os.SEEK_END)
            if file.read() != _MAGIC:
                return False
        return not deep or zlib.crc32(path.read_bytes()) == segment.crc
    except OSError:
        return False
