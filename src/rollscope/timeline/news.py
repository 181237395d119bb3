"""What came since the last look, as rows of the store give it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.timeline.columns import IS_SESSION
from rollscope.timeline.reading import SpanReader

__all__ = ["Batch", "FactRows"]

Places = npt.NDArray[np.int64]
Facts = tuple[Any, ...]
"""The arguments of `SessionFacts`."""


class Batch:
    """Spans that were read at once: those that have ended, or those that are open."""

    def __init__(self, reader: SpanReader, table: pa.Table, *, is_final: bool) -> None:
        self.is_final = is_final
        self.facts = FactRows(table)
        self.ids: npt.NDArray[np.uint64] = table["span_id"].to_numpy()
        self.block = reader.read(table)
        inside = np.flatnonzero(self.block.session_id)
        self.sessions, which = np.unique(self.block.session_id[inside], return_inverse=True)
        """The ids of the sessions that there are spans of."""
        self.session = np.full(len(self.block), -1, np.int64)
        """Which of them each span is of, -1 for none."""
        self.session[inside] = which

    def __len__(self) -> int:
        return len(self.block)

    def session_rows(self) -> Places:
        """Give the places of the spans that are sessions themselves."""
        is_session = self.block.flags & np.uint8(IS_SESSION) > 0
        return np.flatnonzero(is_session & (self.session >= 0))

    def session_ends(self) -> dict[int, int]:
        """Say when each session ended that has; one that did twice counts with its last start."""
        places, block = self.session_rows(), self.block
        places = places[np.argsort(block.start[places], kind="stable")]
        ids, ends = block.session_id[places].tolist(), block.end[places].tolist()
        return dict(zip(ids, ends, strict=True))

    def first_spans(self) -> Places:
        """Give the place of the first span of each session, the outermost of several."""
        start, depth = self.block.start, self.block.depth
        inside = np.flatnonzero(self.session >= 0)
        order = inside[np.lexsort((depth[inside], start[inside]))]
        first = np.empty(len(self.sessions), np.int64)
        first[self.session[order[::-1]]] = order[::-1]  # what is written last stays
        return first


class FactRows:
    """What a table of spans says of the sessions they belong to."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def at(self, places: Places, *, is_shared: bool) -> tuple[list[Facts], Places]:
        """Give what spans say, and which of it each of the spans says.

        Args:
            places: Which spans.
            is_shared: Leave out what only lanes that are not shared depend on: then most say the
                same, and it is given once.
        """
        if is_shared:
            which = np.zeros(len(places), np.int64)
            for name in ("process", "replica", "outcome"):
                codes = _codes(self._table[name].take(pa.array(places)))
                which = which * (codes.max(initial=0) + 1) + codes
            _, first, which = np.unique(which, return_index=True, return_inverse=True)
            told = self._columns(("process", "replica", "outcome"), places[first])
            facts = [
                (process, replica, None, None, 0, outcome) for process, replica, outcome in told
            ]
            return facts, which
        told = self._columns(
            ("process", "replica", "task_key", "sample", "attempt", "outcome"), places
        )
        return [(*one[:4], one[4] or 0, one[5]) for one in told], np.arange(len(places))

    def _columns(self, names: Sequence[str], places: Places) -> Iterator[tuple[Any, ...]]:
        columns = [self._table[name].take(pa.array(places)) for name in names]
        return zip(*(column.to_pylist() for column in columns), strict=True)


def _codes(column: pa.ChunkedArray) -> Places:
    """Number what occurs in a column, from 0; what is missing counts as one thing."""
    words = column.combine_chunks()
    if not isinstance(words, pa.DictionaryArray):
        words = words.dictionary_encode()
    codes: Places = words.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes + 1
