"""A run as an export reads it: placed once, then given in whatever order a format wants."""

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from rollscope.exporting.counters import CounterMaker, CounterPoint
from rollscope.exporting.picking import Steps, count_picked, first_ns, pick, pick_processes
from rollscope.exporting.placing import place
from rollscope.exporting.rows import Sample, TraceRow, Track
from rollscope.exporting.scratch import BATCH_ROWS, Scratch
from rollscope.store.embedded import RunStore

__all__ = ["BY_TIME", "BY_TRACK", "Exported", "PlacedRun", "Progress"]

BY_TIME: Final = "k_start_ns, k_end_ns DESC NULLS FIRST, seq"
"""By start, the longer ones first, and parents before their children."""
BY_TRACK: Final = "seq"
"""One group of tracks after the other, each by start."""

Progress = Callable[[int, int], None]
"""Told how much is done, and of how much."""
_COLUMNS: Final = ", ".join(
    {
        "pid": "k.pid AS pid",
        "tid": "k.tid AS tid",
        "children": "c.children AS children",
        "is_linked": "l.child_row IS NOT NULL AS is_linked",
    }.get(name, f"w.{name} AS {name}")
    for name in TraceRow._fields
)


class Exported(msgspec.Struct, kw_only=True):
    """What was written."""

    spans: int = 0
    open: int = 0
    """Spans among them that have not ended."""
    events: int = 0
    samples: int = 0
    tracks: int = 0
    bytes: int = 0


class PlacedRun:
    """The run as it was when this was made."""

    def __init__(
        self,
        store: RunStore,
        *,
        steps: Steps | None = None,
        metrics: bool = True,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Copy and place what is to be exported.

        Args:
            store: The run, as far as it was read.
            steps: Only what belongs to these.
            metrics: Whether metrics are wanted too.
            threads: How many threads may be used; all cores if not given.
            progress: Told of rows as they are given.
        """
        self.name = store.path.name
        self._scratch = Scratch(store, threads=threads)
        self._progress = progress
        try:
            pick(self._scratch, steps, metrics=metrics)
            self.processes = pick_processes(self._scratch)
            tracks = place(self._scratch, self.processes)
            spans, open_ones, events, samples = count_picked(self._scratch)
            self.first_ns = first_ns(self._scratch)
        except BaseException:
            self.close()
            raise
        self.exported = Exported(
            spans=spans, open=open_ones, events=events, samples=samples, tracks=tracks
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was copied."""
        self._scratch.close()

    def tracks(self) -> Iterator[Track]:
        """Give the tracks by their ids."""
        sql = f"SELECT {', '.join(Track._fields)} FROM export.tracks ORDER BY tid"
        for batch in self._scratch.stream(sql):
            yield from (Track(*_any(row)) for row in batch)

    def rows(self, order: str) -> Iterator[TraceRow]:
        """Give spans and events in an order, `BY_TIME` or `BY_TRACK`."""
        sql = f"""
            SELECT {_COLUMNS} FROM export.placed AS k
            JOIN (SELECT rowid AS row, start_ns AS k_start_ns, end_ns AS k_end_ns, *
                FROM export.picked) AS w ON w.row = k.row
            LEFT JOIN (
                SELECT parent_row, list(child_id ORDER BY child_id) AS children
                FROM export.links GROUP BY parent_row
            ) AS c ON c.parent_row = k.row
            LEFT JOIN (SELECT DISTINCT child_row FROM export.links) AS l ON l.child_row = k.row
            ORDER BY {order}"""
        done, total = 0, self.exported.spans + self.exported.events
        for batch in self._scratch.stream(sql):
            yield from (TraceRow(*_any(row)) for row in batch)
            done += min(len(batch), BATCH_ROWS)
            if self._progress is not None:
                self._progress(done, total)

    def points(self) -> Iterator[CounterPoint]:
        """Give what metrics stood at, by time."""
        maker = CounterMaker()
        order = "time_ns, process, name, labels, type"
        sql = f"SELECT {', '.join(Sample._fields)} FROM export.samples ORDER BY {order}"
        for batch in self._scratch.stream(sql):
            yield from (maker.make(Sample(*_any(row))) for row in batch)


def _any(row: tuple[object, ...]) -> tuple[Any, ...]:
    """Let a row be taken apart: its columns are those of the tuple it is made into."""
    return row
