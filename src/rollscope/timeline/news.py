"""What came since the last look, as rows of the store give it."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rollscope.timeline.columns import IS_SESSION
from rollscope.timeline.grouping import SessionFacts
from rollscope.timeline.reading import SpanReader

__all__ = ["Batch", "FactRows"]


class Batch:
    """Spans that were read at once: those that have ended, or those that are open."""

    def __init__(self, reader: SpanReader, table: pa.Table, *, is_final: bool) -> None:
        self.is_final = is_final
        self.facts = FactRows(table)
        self._count = table.num_rows
        self.outside: list[int] = []
        if not self._count:
            return
        block = reader.read(table)
        self.outside = block.outside.tolist()
        self._ids = table["span_id"].to_numpy().tolist()
        self._sessions = block.session_id.tolist()
        columns = (block.start, block.end, block.name, block.flags, block.depth)
        self._values = list(zip(*(column.tolist() for column in columns), strict=True))
        self._order = np.lexsort((block.depth, block.start)).tolist()

    def spans(self) -> Iterator[tuple[int, int, int, tuple[int, int, int, int, int]]]:
        """Give place, id, session and the rest of each, in order of start and depth."""
        for place in self._order if self._count else ():
            yield place, self._ids[place], self._sessions[place], self._values[place]

    def session_ends(self) -> dict[int, int]:
        """Say when each session ended that has."""
        return {
            session_id: end
            for _, _, session_id, (_, end, _, flags, _) in self.spans()
            if session_id and flags & IS_SESSION
        }

    def first_spans(self) -> Iterator[tuple[int, int, int]]:
        """Give session, start and place of the first span of each session."""
        seen: set[int] = set()
        for place, _, session_id, (start, *_) in self.spans():
            if session_id and session_id not in seen:
                seen.add(session_id)
                yield session_id, start, place


class FactRows:
    """What a table of spans says of the sessions they belong to."""

    def __init__(self, table: pa.Table) -> None:
        names = ("process", "replica", "task_key", "sample", "attempt", "outcome")
        self._columns = [table[name].combine_chunks() for name in names]

    def at(self, place: int) -> SessionFacts:
        """Give what the span at a place says."""
        process, replica, key, sample, attempt, outcome = (
            column[place].as_py() for column in self._columns
        )
        return SessionFacts(process, replica, key, sample, attempt or 0, outcome)
