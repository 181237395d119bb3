"""One process's account: what it said so far, which of its spans are open, which were lost.

A ledger takes batches and gives rows that are final. It keeps only what later batches may still
change, so it is small however long the process runs, and it can be stored and taken up again.
"""

from collections import ChainMap
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
from rollscope.model.clockline import ClockLine, ClockMap
from rollscope.model.framenumbers import FrameNumbers
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, Kind, Status
from rollscope.store.collecting import no_cycles
from rollscope.store.finished import Finished, event_table, fact_table, metric_table, stack_table
from rollscope.store.openspan import Fate, OpenSpan, open_causes, open_table
from rollscope.store.overlap import Carried, add_to, union_additions
from rollscope.store.paths import PathTable
from rollscope.store.rawrows import RawRows, find_rows, ids_of

__all__ = ["Ledger", "LedgerState", "Taken"]

Rows = npt.NDArray[np.int64]
"""Row numbers, or times."""
Ids = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

_IS_ROOT: Final = np.zeros(256, bool)
_IS_ROOT[[KIND_CODES[kind] for kind in (Kind.STEP, Kind.TASK, Kind.SESSION, Kind.STATE)]] = True
_SESSION_CODE: Final = KIND_CODES[Kind.SESSION]
_MOST_SESSIONS: Final = 512
_SILENT_BEATS: Final = 3
_MAX_SILENCES: Final = 1_000
_MOST_GIVEN_UP: Final = 1_000
_FOREVER: Final = np.iinfo(np.int64).max


class LedgerState(msgspec.Struct, kw_only=True):
    """What a ledger remembers, as it is stored."""

    process: bytes
    header: ProcessHeader | None = None
    numbers: list[list[int]] = []
    lines: list[ClockLine] = []
    open: list[OpenSpan] = []
    carried: Carried = {}
    ended_parents: dict[int, tuple[int, int, str]] = {}
    """Start, end and path of spans that ended before a child of theirs did."""
    ended_sessions: dict[int, tuple[int, int, str]] = {}
    """The same of the latest sessions: something of theirs may still start."""
    first_seen_ns: int = 0
    last_seen_ns: int = 0
    jumped_ns: int = 0
    end: str | None = None
    drops: dict[str, int] = {}
    silences: list[tuple[int, int]] = []
    spans: int = 0
    lost: int = 0
    """Spans whose end was never recorded though their process went on."""
    given_up: list[int] = []
    """The latest of those."""
    lowest_id: int = 0
    highest_id: int = 0


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
        is_ended = rows.is_complete & ~is_event
        ended = np.nonzero(is_ended)[0]
        if self.state.given_up:  # what was given out as lost stays so
            ended = ended[find_rows(ids_of(self.state.given_up), rows.span_id[ended]) < 0]
        ended_ids = rows.span_id[ended]
        starts = np.nonzero(~rows.is_complete)[0]
        fresh = (find_rows(ended_ids, rows.span_id[starts]) < 0) & ~rows.is_late[starts]
        known_open = ids_of(self.open)
        closed = [self.open.pop(int(i)) for i in known_open[find_rows(ended_ids, known_open) >= 0]]
        self._note_ids(rows.span_id)
        self.state.spans += len(ended) + int(fresh.sum()) - len(closed)
        # Every row that may have children or be one: the ended first, then the newly open.
        every = np.concatenate((ended, starts[fresh]))
        ids, parents = rows.span_id[every], rows.parent_id[every]
        parent_rows = find_rows(ids, parents)
        paths, above = self._resolve_paths(rows, every, parents, parent_rows)
        additions = self._add_to_unions(rows, ended, every, parents, parent_rows)
        lengths = rows.end_ns[ended] - rows.start_ns[ended]
        count = len(ended)
        finished = Finished(
            rows=rows,
            ended=ended,
            process=self.process,
            overlap_ns=lengths - additions,
            path=paths[:count],
            parent_path=above[:count],
            paths=self._paths.paths,
        )
        taken.add("spans", finished.span_table())
        taken.add("events", event_table(self.process, rows, np.nonzero(is_event)[0]))
        self._keep_open(rows, starts, fresh, paths[count:], above[count:])
        self._remember(rows, ended, paths[:count])

    def _note_ids(self, ids: Ids) -> None:
        state = self.state
        low, high = int(ids.min()), int(ids.max())
        state.lowest_id = min(state.lowest_id, low) if state.lowest_id else low
        state.highest_id = max(state.highest_id, high)

    def _resolve_paths(
        self,
        rows: RawRows,
        every: Rows,
        parents: Ids,
        parent_rows: Codes,
    ) -> tuple[Codes, Codes]:
        elsewhere = np.zeros(len(every), np.int32)
        away = np.nonzero((parent_rows < 0) & (parents > 0))[0]
        unique, inverse = np.unique(parents[away], return_inverse=True)
        codes = [self._paths.code_of(self._path_of(int(parent))) for parent in unique]
        if codes:
            elsewhere[away] = np.array(codes, np.int32)[inverse]
        is_root = _IS_ROOT[rows.what[every]]
        return self._paths.resolve(rows.names, rows.name[every], is_root, parent_rows, elsewhere)

    @property
    def _ended(self) -> ChainMap[int, tuple[int, int, str]]:
        return ChainMap(self.state.ended_parents, self.state.ended_sessions)

    def _path_of(self, span_id: int) -> str:
        span = self.open.get(span_id)
        if span is not None:
            return span.path
        ended = self._ended.get(span_id)
        return "" if ended is None else ended[2]

    def _add_to_unions(
        self,
        rows: RawRows,
        ended: Rows,
        every: Rows,
        parents: Ids,
        parent_rows: Codes,
    ) -> Rows:
        """Say what each ended span adds to the time that its parent's children cover."""
        count = len(ended)
        parents, parent_rows = parents[:count], parent_rows[:count]
        low, high = self._bounds(rows, every, parents, parent_rows)
        start = np.maximum(rows.start_ns[ended], low)
        end = np.maximum(np.minimum(rows.end_ns[ended], high), start)
        additions = union_additions(parents, start, end)
        additions[parents == 0] = (rows.end_ns - rows.start_ns)[ended][parents == 0]
        carried = self.state.carried
        if carried:
            # Children of a parent whose earlier children reach into the time of these.
            by_hand = np.nonzero(find_rows(ids_of(carried), parents) >= 0)[0]
            by_hand = by_hand[np.argsort(end[by_hand], kind="stable")]
            times = _stretches(parents, start, end, by_hand)
            additions[by_hand] = [add_to(carried[parent], time) for parent, time in times]
        self._carry(parents, start, end, rows, every[count:])
        return additions

    def _bounds(
        self,
        rows: RawRows,
        every: Rows,
        parents: Ids,
        parent_rows: Codes,
    ) -> tuple[Rows, Rows]:
        """Give between which times a parent can be covered, as far as the parent is known."""
        low = np.zeros(len(parents), np.int64)
        high = np.full(len(parents), _FOREVER)
        here = parent_rows >= 0
        at = every[parent_rows[here]]
        low[here] = rows.start_ns[at]
        ends = rows.end_ns[at]
        high[here] = np.where(ends > 0, ends, _FOREVER)
        away = np.nonzero(~here & (parents > 0))[0]
        unique, inverse = np.unique(parents[away], return_inverse=True)
        for number, parent in enumerate(unique):
            bounds = self._bounds_of(int(parent))
            if bounds is not None:
                chosen = away[inverse == number]
                low[chosen], high[chosen] = bounds
        return low, high

    def _bounds_of(self, span_id: int) -> tuple[int, int] | None:
        span = self.open.get(span_id)
        if span is not None:
            return span.start_ns, span.missed_ns or int(_FOREVER)
        ended = self._ended.get(span_id)
        return None if ended is None else ended[:2]

    def _carry(
        self,
        parents: Ids,
        start: Rows,
        end: Rows,
        rows: RawRows,
        newly_open: Rows,
    ) -> None:
        """Remember the time already covered that a span which is still open may overlap."""
        earliest: dict[int, int] = {}
        for span in self.open.values():
            known = earliest.get(span.parent_id, span.start_ns)
            earliest[span.parent_id] = min(known, span.start_ns)
        begins = rows.parent_id[newly_open].tolist(), rows.start_ns[newly_open].tolist()
        for parent, begun in zip(*begins, strict=True):
            earliest[parent] = min(earliest.get(parent, begun), begun)
        earliest.pop(0, None)
        old = self.state.carried
        carried: Carried = {
            parent: kept
            for parent, covered in old.items()
            if parent in earliest and (kept := _after(covered, earliest[parent]))
        }
        if earliest:
            wanted = ids_of(earliest)
            since = np.fromiter(earliest.values(), np.int64)
            place = find_rows(wanted, parents)
            reaches = (place >= 0) & (end > since[np.maximum(place, 0)]) & (end > start)
            for parent, time in _stretches(parents, start, end, np.nonzero(reaches)[0]):
                if parent not in old:  # those are already in it
                    add_to(carried.setdefault(parent, []), time)
        self.state.carried = carried

    def _keep_open(
        self,
        rows: RawRows,
        starts: Rows,
        fresh: Flags,
        paths: Codes,
        above: Codes,
    ) -> None:
        names, texts = rows.names, self._paths.paths
        places = np.nonzero(fresh)[0]
        at = starts[places]
        told = (rows.what, rows.name, rows.span_id, rows.parent_id, rows.start_ns, rows.scope)
        columns = (places, at, *(column[at] for column in told), paths, above)
        for place, row, what, name, span_id, parent_id, start_ns, scope, path, parent_path in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            self.open[span_id] = OpenSpan(
                what=what,
                name=names[name],
                span_id=span_id,
                parent_id=parent_id,
                start_ns=start_ns,
                scope=rows.scopes[scope],
                attrs=bytes(rows.start_attrs[place]),
                fields=rows.fields.get(row, {}),
                path=texts[path],
                parent_path=texts[parent_path],
            )

    def _remember(self, rows: RawRows, ended: Rows, paths: Codes) -> None:
        """Remember ended spans that an open one still calls its parent."""
        wanted = {span.parent_id for span in self.open.values()} - self.open.keys() - {0}
        kept = {key: value for key, value in self.state.ended_parents.items() if key in wanted}
        if wanted:
            missing = ids_of(wanted - kept.keys())
            places = find_rows(rows.span_id[ended], missing)
            for span_id, place in zip(missing, places, strict=True):
                if place >= 0:
                    row = ended[place]
                    path = self._paths.paths[paths[place]]
                    kept[int(span_id)] = (int(rows.start_ns[row]), int(rows.end_ns[row]), path)
        self.state.ended_parents = kept
        sessions = np.nonzero(rows.what[ended] == _SESSION_CODE)[0][-_MOST_SESSIONS:]
        latest, texts = self.state.ended_sessions, self._paths.paths
        at = ended[sessions]
        columns = (rows.span_id[at], rows.start_ns[at], rows.end_ns[at], paths[sessions])
        for span_id, start_ns, end_ns, path in zip(*(c.tolist() for c in columns), strict=True):
            latest[span_id] = start_ns, end_ns, texts[path]
        for span_id in list(latest)[:-_MOST_SESSIONS]:
            del latest[span_id]

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
        fates = self._fates(spans, Status.LOST, end_ns, why)
        for span in spans:
            del self.open[span.span_id]
        self._outlive(spans, end_ns)
        self.state.lost += len(spans)
        self.state.given_up = [*self.state.given_up, *span_ids][-_MOST_GIVEN_UP:]
        taken.add("spans", open_table(self.process, spans, fates))

    def _outlive(self, spans: Sequence[OpenSpan], end_ns: int) -> None:
        """Remember lost spans for siblings that may overlap them and children they leave behind."""
        state, parents = self.state, {span.parent_id for span in self.open.values()}
        for span in spans:
            end = max(end_ns, span.start_ns)
            if span.span_id in parents:
                state.ended_parents[span.span_id] = (span.start_ns, end, span.path)
            if span.parent_id in parents - {0}:
                low, high = self._bounds_of(span.parent_id) or (span.start_ns, end)
                covered = state.carried.setdefault(span.parent_id, [])
                add_to(covered, (max(span.start_ns, low), min(end, high)))

    def _fates(
        self, spans: Sequence[OpenSpan], status: Status, end_ns: int, why: str | None
    ) -> list[Fate]:
        covered: Carried = {parent: list(times) for parent, times in self.state.carried.items()}
        fates = []
        for span in spans:
            end = max(end_ns, span.start_ns)
            mine = covered.setdefault(span.parent_id, [])
            bounds = self._bounds_of(span.parent_id) if span.parent_id else None
            low, high = bounds or (span.start_ns, end)
            interval = max(span.start_ns, low), min(end, high)
            added = add_to(mine, interval) if span.parent_id else end - span.start_ns
            shown = None if status is Status.OPEN else end
            fates.append(Fate(status, shown, why, end - span.start_ns - added))
        return fates

    def open_rows(self, now_ns: int, *, is_alive: bool) -> pa.Table:
        """Give the spans without an end as they look now: open, or lost with their process."""
        spans = self._open_in_order()
        if self.state.end == SNAPSHOT:
            fates = self._fates(spans, Status.OPEN, self.state.last_seen_ns, None)
        elif is_alive:
            fates = self._fates(spans, Status.OPEN, now_ns, None)
        else:
            fates = self._fates(spans, Status.LOST, self.state.last_seen_ns, "its process died")
        return open_table(self.process, spans, fates)

    def open_causes(self, *, is_alive: bool) -> pa.Table:
        """Give of the same spans, in the same order, what tells causes from effects."""
        is_open = is_alive or self.state.end == SNAPSHOT
        end_ns = None if is_open else self.state.last_seen_ns
        return open_causes(self.process, self._open_in_order(), end_ns)

    def _open_in_order(self) -> list[OpenSpan]:
        return sorted(self.open.values(), key=lambda span: (span.start_ns, span.span_id))


def _stretches(
    parents: Ids, start: Rows, end: Rows, rows: Rows
) -> Iterable[tuple[int, tuple[int, int]]]:
    """Give parent, start and end of some rows."""
    times = zip(start[rows].tolist(), end[rows].tolist(), strict=True)
    return zip(parents[rows].tolist(), times, strict=True)


def _after(intervals: list[tuple[int, int]], time_ns: int) -> list[tuple[int, int]]:
    return [interval for interval in intervals if interval[1] > time_ns]
