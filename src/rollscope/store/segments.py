"""Segments: immutable, sorted Parquet files, each a piece of one table of a run."""

import itertools
import os
import secrets
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rollscope.store.schema import SEGMENT_SCHEMA, SORT_KEYS, TABLES

__all__ = ["SEGMENT_SUFFIX", "Segment", "is_sound", "read_segment", "sort_rows", "write_segment"]

SEGMENT_SUFFIX: Final = ".parquet"
_ROW_GROUP: Final = 65_536
_MAGIC: Final = b"PAR1"
_REPEATING: Final = frozenset({"process", "trace_id", "session_id", "parent_id"})
"""Columns with the same few values over and over; other whole numbers are kept as differences."""
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


def sort_rows(name: str, table: pa.Table) -> pa.Table:
    """Put rows into the order in which segments keep them."""
    keys = _sort_keys(table, SORT_KEYS[name])
    order = np.lexsort(keys[::-1])
    if (order[1:] > order[:-1]).all():
        return table
    return table.take(pa.array(order))


def _sort_keys(table: pa.Table, columns: Sequence[str]) -> list[npt.NDArray[Any]]:
    keys = []
    for name in columns:
        column = table[name].combine_chunks()
        if pa.types.is_dictionary(column.type):
            words = pc.rank(column.dictionary, tiebreaker="dense").to_numpy()
            keys.append(words[column.indices.to_numpy()])
        else:
            keys.append(column.to_numpy())
    return keys


def _arrange(tables: Sequence[pa.Table]) -> pa.Table:
    """Put pieces of spans, most of one process and in order, into one order without sorting again.

    Spans that end in a later piece may have started before the last one of an earlier piece: within
    a process, starts are in order but for those.
    """
    slices: dict[tuple[str, int], list[pa.Table]] = {}
    for piece in tables:
        table = piece.unify_dictionaries().combine_chunks()
        kinds, processes = _sort_keys(table, ("kind", "process"))
        if (kinds[1:] < kinds[:-1]).any() or (processes != processes[0]).any():
            table = sort_rows("spans", table)
            kinds, processes = _sort_keys(table, ("kind", "process"))
        changes = (kinds[1:] != kinds[:-1]) | (processes[1:] != processes[:-1])
        borders = [0, *(np.nonzero(changes)[0] + 1).tolist(), len(kinds)]
        for low, high in itertools.pairwise(borders):
            key = table["kind"][low].as_py(), int(processes[low])
            slices.setdefault(key, []).append(table.slice(low, high - low))
    return pa.concat_tables([piece for key in sorted(slices) for piece in slices[key]])


def write_segment(folder: Path, name: str, tables: Sequence[pa.Table]) -> Segment:
    """Write rows as a segment; the file is complete and on disk when this returns.

    Args:
        folder: Where to.
        name: The table they belong to.
        tables: The rows, in pieces.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    if name == "spans" and len(tables) > 1:
        table = _arrange(tables).unify_dictionaries()
    else:
        whole = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        table = sort_rows(name, whole)
    file = f"{name}-{secrets.token_hex(8)}{SEGMENT_SUFFIX}"
    path = folder / file
    words = [field.name for field in table.schema if _is_repeating(field)]
    deltas = [
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type) and not _is_repeating(field)
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata({_SCHEMA_KEY: str(SEGMENT_SCHEMA)}),
        sink,
        compression="lz4",
        row_group_size=_ROW_GROUP,
        use_dictionary=words,
        column_encoding=dict.fromkeys(deltas, "DELTA_BINARY_PACKED"),
        store_schema=False,
    )
    data = sink.getvalue()
    try:
        with path.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    low, high = _extent(name, table)
    return Segment(
        table=name,
        file=file,
        rows=table.num_rows,
        size=data.size,
        crc=zlib.crc32(data),
        low_ns=low,
        high_ns=high,
        columns=table.column_names,
    )


def _is_repeating(field: pa.Field) -> bool:
    return pa.types.is_dictionary(field.type) or field.name in _REPEATING


def _extent(name: str, table: pa.Table) -> tuple[int, int]:
    start, end = _TIMES.get(name, ("time_ns", "time_ns"))
    low, high = pc.min(table[start]).as_py(), pc.max(table[end]).as_py()
    return low or 0, high or low or 0


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
