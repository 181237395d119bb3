"""The order of rows in a segment, and where it is cut into row groups.

A reader skips a row group whose ranges cannot hold what it looks for. So groups of spans end where
the rows of a process end: one that held two processes would range over the ids of both.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.store.schema import SORT_KEYS

__all__ = ["row_groups", "sort_rows"]

_LEAST_SPANS: Final = 16_384
"""A row group costs every reader about as much as some thousand rows, so small ones are joined."""
_MOST_SPANS: Final = 65_536
_LEAST_PIECE: Final = 4_096
"""Spans that pieces have on average if ordering them one by one is quicker than all at once."""
_OTHERS: Final = 8_192
"""Rows of other tables: they are few, and facts are looked up by the session."""
_FEW_WORDS: Final = 256


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


def row_groups(name: str, tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """Put rows into order and cut them into row groups.

    Args:
        name: The table they belong to.
        tables: The rows, in pieces.
    """
    if name == "spans":
        for slices in _gather(_slices_in_order(tables)):
            yield from _cut(slices, _MOST_SPANS)
    else:
        whole = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        yield from _cut([sort_rows(name, whole)], _OTHERS)


def _slices_in_order(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Cut pieces of spans, most of one process and in order, by kind and process, and order those.

    Spans that end in a later piece may have started before the last one of an earlier piece: within
    a process, starts are in order but for those.
    """
    slices: dict[tuple[str, int], list[pa.Table]] = {}
    pieces = _pieces(tables)
    for piece in pieces:
        table = piece.unify_dictionaries().combine_chunks()
        kinds, processes = _sort_keys(table, ("kind", "process"))
        is_mixed = (kinds[1:] < kinds[:-1]).any() or (processes != processes[0]).any()
        if is_mixed or len(pieces) == 1:
            table = sort_rows("spans", table)
            kinds, processes = _sort_keys(table, ("kind", "process"))
        changes = (kinds[1:] != kinds[:-1]) | (processes[1:] != processes[:-1])
        borders = [0, *(np.nonzero(changes)[0] + 1).tolist(), len(kinds)]
        for low, high in itertools.pairwise(borders):
            key = table["kind"][low].as_py(), int(processes[low])
            slices.setdefault(key, []).append(table.slice(low, high - low))
    return [pa.concat_tables(slices[key]) for key in sorted(slices)]


def _pieces(tables: Sequence[pa.Table]) -> Sequence[pa.Table]:
    """Take tables that were joined apart again, unless their parts are too small to be worth it."""
    batches = [batch for table in tables for batch in table.to_batches()]
    if len(batches) == len(tables) or sum(map(len, batches)) < _LEAST_PIECE * len(batches):
        return tables
    return [pa.Table.from_batches([batch]) for batch in batches]


def _gather(slices: Sequence[pa.Table]) -> Iterator[list[pa.Table]]:
    """Join neighbours until there are enough rows for a group."""
    gathered: list[pa.Table] = []
    for piece in slices:
        gathered.append(piece)
        if sum(one.num_rows for one in gathered) >= _LEAST_SPANS:
            yield gathered
            gathered = []
    if gathered:
        yield gathered


def _cut(tables: Sequence[pa.Table], most: int) -> Iterator[pa.Table]:
    """Give rows in groups of about one size, none larger than allowed."""
    whole = pa.concat_tables(tables).unify_dictionaries()
    count = max(-(-whole.num_rows // most), 1)
    borders = [whole.num_rows * part // count for part in range(count + 1)]
    for low, high in itertools.pairwise(borders):
        yield _without_unused_words(whole.slice(low, high - low))


def _without_unused_words(table: pa.Table) -> pa.Table:
    """Drop words that no row of the group has: a group is written with all that it is given."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and table.num_rows:
            column = table.column(place)
            if len(column.chunk(0).dictionary) > _FEW_WORDS:
                table = table.set_column(place, field, _used(column.combine_chunks()))
    return table


def _used(column: pa.DictionaryArray) -> pa.DictionaryArray:
    has_nulls = column.null_count > 0
    indices = (column.indices.fill_null(0) if has_nulls else column.indices).to_numpy()
    is_null = column.is_null().to_numpy(zero_copy_only=False) if has_nulls else None
    is_used = np.zeros(len(column.dictionary), bool)
    is_used[indices if is_null is None else indices[~is_null]] = True
    places = np.cumsum(is_used, dtype=np.int32) - 1
    return pa.DictionaryArray.from_arrays(
        pa.array(np.maximum(places[indices], 0), mask=is_null),
        column.dictionary.filter(pa.array(is_used)),
    )
