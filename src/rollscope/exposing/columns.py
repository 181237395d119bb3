"""Columns of the store as numpy arrays: words as codes, times moved, what is null as -1."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rollscope.errors import StoreError
from rollscope.exposing.labels import OTHER
from rollscope.store.corrections import Corrections, move_times
from rollscope.store.schema import TABLES
from rollscope.store.segments import Segment

__all__ = ["NOTHING", "Codes", "Ids", "Numbers", "Vocabulary", "numbers", "read_rows", "times"]

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]

NOTHING: Final = -1
"""Stands for null in columns that hold nothing below 0."""


def read_rows(
    folder: Path, segment: Segment, columns: Sequence[str], kinds: Sequence[str] = ()
) -> pa.Table:
    """Read some columns of a segment.

    Args:
        folder: Where segments lie.
        segment: Which one.
        columns: What to read; null where the segment does not have it.
        kinds: Of spans, leave out groups of rows that hold none of these kinds. Rows are sorted by
            kind, so that little else comes along.

    Raises:
        StoreError: The file is damaged or gone.
    """
    schema = pa.schema([TABLES[segment.table].field(name) for name in columns])
    words = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    present = [name for name in columns if name in segment.columns]
    try:
        with pq.ParquetFile(folder / segment.file, read_dictionary=words) as file:
            groups = _groups_with(file.metadata, kinds)
            table = file.read_row_groups(groups, columns=present, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"the segment {segment.file} cannot be read: {error}") from error
    filled = [
        table[field.name] if field.name in present else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(filled, names=list(columns)).unify_dictionaries()


def _groups_with(metadata: pq.FileMetaData, kinds: Sequence[str]) -> list[int]:
    every = range(metadata.num_row_groups)
    if not kinds:
        return list(every)
    place = metadata.schema.names.index("kind")
    chosen = []
    for group in every:
        range_ = metadata.row_group(group).column(place).statistics
        if range_ is None or any(range_.min <= kind <= range_.max for kind in kinds):
            chosen.append(group)
    return chosen


class Vocabulary:
    """Words of one run by number, in the order in which they came up."""

    def __init__(self, most: int | None = None) -> None:
        """Know none yet.

        Args:
            most: How many words there may be; `OTHER` stands for all that come later.
        """
        self.words: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._most = most

    def knows(self, word: Any) -> bool:  # noqa: ANN401
        """Say whether a word has come up."""
        return word in self._codes

    def code(self, word: Any) -> int:  # noqa: ANN401  (text, or several together)
        """Give the number of a word."""
        code = self._codes.get(word)
        if code is None:
            if self._most is not None and len(self.words) >= self._most and word != OTHER:
                return self.code(OTHER)
            code = self._codes[word] = len(self.words)
            self.words.append(word)
        return code

    def codes(self, column: pa.ChunkedArray | pa.Array) -> Codes:
        """Give the numbers of a column of words; null is the empty word."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        known = [self.code(word) for word in column.dictionary.to_pylist()]
        own = np.array([*known, self.code("")], np.int64)
        places = pc.fill_null(column.indices, len(known)).to_numpy(zero_copy_only=False)
        codes: Codes = own[places]
        return codes


def numbers(table: pa.Table, name: str) -> Numbers:
    """Give a column of whole numbers."""
    column = table[name]
    if column.null_count:
        column = pc.fill_null(column, NOTHING)
    found: Numbers = column.to_numpy()
    return found


def times(table: pa.Table, name: str, corrections: Corrections) -> Numbers:
    """Give a column of times, none of them null, on the one clock of the run."""
    recorded = numbers(table, name)
    return recorded + move_times(recorded, table["process"].to_numpy(), corrections)
