"""One process's account: what it said so far, which of its spans are open, which were lost.

A ledger takes batches and gives rows that are final. It keeps only what later batches may still
change, so it is small however long the process runs, and it can be stored and taken up again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.errors import FrameError
from rollscope.model.batch import (
    SNAPSHOT,
    Batch,
    ClockReading,
    ProcessHeader,
    read_number_column,
)
from rollscope.model.clockline import ClockMap
from rollscope.model.framenumbers import FrameNumbers
from rollscope.model.kinds import EVENT_CODE, Status
from rollscope.store.collecting import no_cycles
from rollscope.store.coverage import Coverage
from rollscope.store.finished import Finished, event_table, fact_table, metric_table, stack_table
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.openspan import Fate, OpenSpan, open_causes, open_table
from rollscope.store.paths import PathTable
from rollscope.store.rawrows import RawRows, find_rows, ids_of
from rollscope.store.relatives import Arrivals, Relatives

__all__ = ["Ledger", "Taken"]

_SILENT_BEATS: Final = 3
_MAX_SILENCES: Final = 1_000
_MOST_GIVEN_UP: Final = 1_000


class Taken(msgspec.Struct):
    """Rows that became final, by table."""

    tables: dict[str, list[pa.Table]] = {}
    readings: list[ClockReading] = []
    """What the process says of other processes' clocks."""

    def add(self, name: str, table: pa.Table | None) -> None:
        """Add rows, if there are any."""
        if table is not None and table.num_rows:
            self.tables.setdefault(name, []).append(table)


class Ledger:
    """The account of one process."""

    def __init__(self, state: LedgerState, paths: PathTable) -> None:
        self.state = state
        self.process = int.from_bytes(state.process)
        self.open = {span.span_id: span for span in state.open}
        self._paths = paths
        self._relatives = Relatives(state, self.open, paths)
        self._coverage = Coverage(state, self._relatives)
        self._clock = ClockMap(state.lines)
        self._numbers = FrameNumbers(state.numbers)

    def to_state(self) -> LedgerState:
        """Give what has to be stored."""
        return msgspec.structs.replace(
            self.state,
            numbers=self._numbers.ranges,
            lines=self._clock.lines,
            open=list(self.open.values()),
        )

    @property
    def header(self) -> ProcessHeader | None:
        """Who the process is, once it has said so."""
        return self.state.header

    @property
    def clock(self) -> ClockMap:
        """Its clock lines, as far as they are known."""
        return self._clock

    @property
    def last_seen_ns(self) -> int:
        """When it was last heard of, by its own clock."""
        return self.state.last_seen_ns

    @property
    def missing_frames(self) -> int:
        """Frames that the process numbered and nobody has seen."""
        return self._numbers.missing

    def take(self, batches: Iterable[Batch]) -> tuple[Taken, list[FrameError]]:
        """Take batches that came in, in whatever order, and give the rows that became final."""
        with no_cycles():
            return self._take(batches)

    def _take(self, batches: Iterable[Batch]) -> tuple[Taken, list[FrameError]]:
        taken = Taken()
        errors: list[FrameError] = []
        read: list[Batch] = []
        rows = RawRows(self._clock)
        for batch in batches:
            is_late = batch.number < self._numbers.last
            if not self._numbers.take(batch.number):
                continue
            self._clock.add(batch.clock)
            try:
                rows.add(batch, is_late=is_late)
            except FrameError as error:
                errors.append(error)
                continue
            self._note(batch)
            taken.readings += batch.readings
            read.append(batch)
            if batch.heartbeat is not None and batch.heartbeat.open_ids is not None:
                self._settle(rows, taken)
                rows = RawRows(self._clock)
                self._compare(batch, taken)
            if batch.end is not None and batch.end != SNAPSHOT:
                self._settle(rows, taken)
                rows = RawRows(self._clock)
                self._lose(list(self.open), self.state.last_seen_ns, "its process ended", taken)
        self._settle(rows, taken)
        self._take_untimed(read, taken)
        return taken, errors

    def _note(self, batch: Batch) -> None:
        """Keep what the batch says of its process."""
        state = self.state
        if batch.header is not None:
            state.header = batch.header
        if batch.drops:
            state.drops = batch.drops
        if batch.end is not None:
            state.end = batch.end
        now_ns = self._clock.wall_at(batch.mono_ns)
        beat_ns = (state.header.heartbeat_s if state.header else 1.0) * 1e9
        is_late = state.last_seen_ns and now_ns - state.last_seen_ns > _SILENT_BEATS * beat_ns
        if is_late and len(state.silences) < _MAX_SILENCES:
            state.silences.append((state.last_seen_ns, now_ns))
        state.first_seen_ns = state.first_seen_ns or now_ns
        state.last_seen_ns = max(state.last_seen_ns, now_ns)
        state.jumped_ns = batch.clock.jumped_ns

    def _take_untimed(self, batches: Sequence[Batch], taken: Taken) -> None:
        clock = self._clock
        taken.add("facts", fact_table(self.process, batches, clock))
        taken.add("metrics", metric_table(self.process, batches, clock))
        taken.add("stacks", stack_table(self.process, batches, clock))

    def _settle(self, rows: RawRows, taken: Taken) -> None:
        """Make final rows of the spans that ended, and remember those that started."""
        if not rows.size:
            return
        rows.join()
        is_event = rows.what == EVENT_CODE
        ended = self._find_ended(rows, rows.is_complete & ~is_event)
        starts = np.nonzero(~rows.is_complete)[0]
        has_ended = find_rows(rows.span_id[ended], rows.span_id[starts]) >= 0
        fresh = np.nonzero(~has_ended & ~rows.is_late[starts])[0]
        closed = self._relatives.close(rows.span_id[ended])
        self._note_ids(rows.span_id)
        self.state.spans += len(ended) + len(fresh) - closed
        arrivals = Arrivals.of(rows, ended, starts[fresh])
        paths, above = self._relatives.resolve_paths(arrivals)
        count = len(ended)
        finished = Finished(
            rows=rows,
            ended=ended,
            process=self.process,
            overlap_ns=rows.end_ns[ended] - rows.start_ns[ended] - self._coverage.add(arrivals),
            path=paths[:count],
            parent_path=above[:count],
            paths=self._paths.paths,
        )
        taken.add("spans", finished.span_table())
        taken.add("events", event_table(self.process, rows, np.nonzero(is_event)[0]))
        self._relatives.keep_open(rows, starts, fresh, paths[count:], above[count:])
        self._relatives.remember(rows, ended, paths[:count])

    def _find_ended(self, rows: RawRows, is_ended: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Give the rows of spans that ended; what was given out as lost stays so."""
        ended = np.nonzero(is_ended)[0]
        if not self.state.given_up:
            return ended
        return ended[find_rows(ids_of(self.state.given_up), rows.span_id[ended]) < 0]

    def _note_ids(self, ids: npt.NDArray[np.uint64]) -> None:
        state = self.state
        low, high = int(ids.min()), int(ids.max())
        state.lowest_id = min(state.lowest_id, low) if state.lowest_id else low
        state.highest_id = max(state.highest_id, high)

    def _compare(self, batch: Batch, taken: Taken) -> None:
        """Find spans whose end was dropped: open to us, but missing from two lists in a row."""
        listed = (
            set(read_number_column(batch.heartbeat.open_ids or b"")) if batch.heartbeat else set()
        )
        now_ns = self._clock.wall_at(batch.mono_ns)
        gone = []
        for span in self.open.values():
            if span.span_id in listed:
                span.missed_ns = 0
            elif span.missed_ns:
                gone.append(span.span_id)
            else:
                span.missed_ns = now_ns
        for span_id in sorted(gone):
            since = self.open[span_id].missed_ns
            self._lose([span_id], since, "its end was not recorded", taken)

    def _lose(self, span_ids: Sequence[int], end_ns: int, why: str, taken: Taken) -> None:
        """Give up on spans for good."""
        if not span_ids:
            return
        spans = [self.open[span_id] for span_id in span_ids]
        fates = self._coverage.fates(spans, Status.LOST, end_ns, why)
        for span in spans:
            del self.open[span.span_id]
        self._relatives.outlive(spans, end_ns)
        self._coverage.outlive(spans, end_ns)
        self.state.lost += len(spans)
        self.state.given_up = [*self.state.given_up, *span_ids][-_MOST_GIVEN_UP:]
        taken.add("spans", open_table([self.process] * len(spans), spans, fates))

    def open_spans(self, now_ns: int, *, is_alive: bool) -> tuple[list[OpenSpan], list[Fate]]:
        """Give the spans without an end, and how each looks now: open, or lost with its process."""
        spans = self._open_in_order()
        if self.state.end == SNAPSHOT:
            fates = self._coverage.fates(spans, Status.OPEN, self.state.last_seen_ns, None)
        elif is_alive:
            fates = self._coverage.fates(spans, Status.OPEN, now_ns, None)
        else:
            fates = self._coverage.fates(
                spans, Status.LOST, self.state.last_seen_ns, "its process died"
            )
        return spans, fates

    def open_causes(self, *, is_alive: bool) -> pa.Table:
        """Give of the same spans, in the same order, what tells causes from effects."""
        is_open = is_alive or self.state.end == SNAPSHOT
        end_ns = None if is_open else self.state.last_seen_ns
        return open_causes(self.process, self._open_in_order(), end_ns)

    def _open_in_order(self) -> list[OpenSpan]:
        return sorted(self.open.values(), key=lambda span: (span.start_ns, span.span_id))
