"""Building an index: every session gets a lane, every span a place on it."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.store.embedded import RunStore
from rollscope.timeline.columns import NEVER, NO_SESSION, Part, Rows, Times
from rollscope.timeline.grouping import Grouping, Processes, SessionFacts
from rollscope.timeline.lanes import Lanes
from rollscope.timeline.reading import Block, SpanReader
from rollscope.timeline.slots import pack_slots
from rollscope.timeline.sorting import Unsorted, sort_spans

__all__ = ["Layout", "PlacedSessions", "build_layout", "place_name", "sealed_count", "span_count"]

_EXTENTS: Final = """
    SELECT session_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns,
        bool_or(status = 'open') AS is_open, min(process) AS process{more}
    FROM spans WHERE session_id IS NOT NULL GROUP BY session_id ORDER BY session_id"""
_SESSIONS: Final = """
    SELECT session_id, process, pool, task_key, sample, attempt, outcome
    FROM sessions ORDER BY session_id"""


class PlacedSessions(msgspec.Struct):
    """Sessions in order of their ids, and where they stand."""

    ids: npt.NDArray[np.uint64]
    lane: npt.NDArray[np.uint32]
    unit: npt.NDArray[np.uint32]
    end: Times


class Layout(msgspec.Struct):
    """Everything a build finds out."""

    lanes: Lanes
    sessions: PlacedSessions
    units: list[str]
    place_lane: list[int]
    """The lane of each place outside of sessions."""
    part: Part
    depths: npt.NDArray[np.uint8]
    """How deep the spans of each line are."""
    open_ids: npt.NDArray[np.uint64]
    open_rows: Rows
    open_depths: npt.NDArray[np.uint8]
    """Spans whose end may still come, and how deep they are; they are in no part."""
    unsealed: npt.NDArray[np.int64] = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))
    """Places in the part of spans that are in no segment yet."""


def build_layout(
    store: RunStore, reader: SpanReader, grouping: Grouping, processes: Processes
) -> Layout:
    """Give everything that the run holds its place."""
    lanes = Lanes()
    spans = Unsorted(span_count(store) + (still := store.open_rows).num_rows)
    place_lane: list[int] = []
    tail = store.sealer.tail_table("spans")
    with _OneAhead(_blocks(reader, tail, still)) as blocks:
        sessions, units = _place_sessions(store, lanes, grouping, processes)
        for block in blocks:
            place_lane += _add_places(
                lanes, reader.places.words[len(place_lane) :], grouping, processes
            )
            _add_block(spans, block, sessions, np.array(place_lane, np.uint32))
    new = lanes.renumber()
    sessions.lane = new[sessions.lane].astype(np.uint32)
    spans.lane = new.astype(np.uint32)[spans.lane]
    ids = still["span_id"].to_numpy()
    settled = len(spans) - len(ids)
    placed = sort_spans(spans, settled=settled, sealed=settled - tail.num_rows)
    return Layout(
        lanes=lanes,
        sessions=sessions,
        units=units,
        place_lane=[int(new[lane]) for lane in place_lane],
        part=placed.part,
        depths=placed.depths,
        open_ids=ids[placed.open_places],
        open_rows=placed.open_rows,
        open_depths=placed.open_depths,
        unsealed=placed.unsealed,
    )


def sealed_count(store: RunStore) -> int:
    """Say how many spans are sealed."""
    segments = store.sealer.manifest.segments
    return sum(segment.rows for segment in segments if segment.table == "spans")


def span_count(store: RunStore) -> int:
    """Say how many spans have ended, sealed or not."""
    return sealed_count(store) + store.sealer.unsealed_rows


def _blocks(reader: SpanReader, tail: pa.Table, still: pa.Table) -> Iterator[Block]:
    yield from reader.sealed()
    yield reader.read(tail)
    yield reader.read(still)


class _OneAhead:
    """Reads the next block while the one before it is made use of."""

    def __init__(self, blocks: Iterator[Block]) -> None:
        self._blocks = blocks
        self._thread = ThreadPoolExecutor(1, "rollscope-reading")

    def __enter__(self) -> Iterator[Block]:
        coming = self._thread.submit(next, self._blocks, None)
        return self._follow(coming)

    def _follow(self, coming: "Future[Block | None]") -> Iterator[Block]:
        while (block := coming.result()) is not None:
            coming = self._thread.submit(next, self._blocks, None)
            yield block

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()


def _add_block(
    spans: Unsorted,
    block: Block,
    sessions: PlacedSessions,
    place_lane: npt.NDArray[np.uint32],
) -> None:
    session = _session_numbers(sessions.ids, block.session_id)
    inside = session != NO_SESSION
    lane = np.empty(len(block), np.uint32)
    lane[inside] = sessions.lane[session[inside]]
    lane[~inside] = place_lane[block.outside[~inside]]
    spans.add(block, session, lane)


def _session_numbers(
    ids: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint32]:
    numbers = np.full(len(wanted), NO_SESSION, np.uint32)
    has_one = wanted > 0
    numbers[has_one] = np.searchsorted(ids, wanted[has_one])
    return numbers


def _place_sessions(
    store: RunStore, lanes: Lanes, grouping: Grouping, processes: Processes
) -> tuple[PlacedSessions, list[str]]:
    # Words take long to compare; they are needed only where every session has a lane.
    more = "" if grouping.is_shared else ", min(task_key) AS task_key, min(sample) AS sample"
    extents, facts = store.query(_EXTENTS.format(more=more)), store.query(_SESSIONS)
    ids = extents["session_id"].to_numpy()
    start = extents["start_ns"].to_numpy()
    end = extents["end_ns"].fill_null(NEVER).to_numpy().copy()
    end[extents["is_open"].to_numpy()] = NEVER
    spots = _Spots(lanes, grouping, processes)
    # A program may record a session under the id of another; such a one has no spans.
    facts = facts.filter(pa.array(np.isin(facts["session_id"].to_numpy(), ids)))
    spots.place_unknown(extents)
    spots.place_known(np.searchsorted(ids, facts["session_id"].to_numpy()), facts)
    number = spots.number
    if grouping.is_shared:
        number = _slot_numbers(spots.unit, start, end)
    lane = _lanes_of(lanes, spots, number, is_shared=grouping.is_shared)
    return PlacedSessions(
        ids, lane.astype(np.uint32), spots.unit.astype(np.uint32), end
    ), spots.units


class _Spots:
    """Where each session belongs; sessions that are alike are asked about once."""

    def __init__(self, lanes: Lanes, grouping: Grouping, processes: Processes) -> None:
        self._lanes, self._grouping, self._processes = lanes, grouping, processes
        self.units: list[str] = []
        self._unit_codes: dict[str, int] = {}
        self.unit = self.group = self.label = self.number = np.zeros(0, np.int64)

    def place_unknown(self, extents: pa.Table) -> None:
        """Place all sessions by what their spans say; most are placed better after that."""
        if self._grouping.is_shared:
            process = extents["process"].to_numpy()
            unique, inverse = np.unique(process, return_inverse=True)
            codes = [self._codes(SessionFacts(one, None, None, None, 0, None)) for one in unique]
            table = np.array(codes, np.int64).reshape(-1, 4)[inverse]
        else:
            names = ("process", "task_key", "sample")
            rows = zip(*(extents[name].to_pylist() for name in names), strict=True)
            codes = [
                self._codes(SessionFacts(process, None, task, sample, 0, None))
                for process, task, sample in rows
            ]
            table = np.array(codes, np.int64).reshape(-1, 4)
        self.unit, self.group, self.label, self.number = (table[:, n].copy() for n in range(4))

    def place_known(self, places: npt.NDArray[np.int64], facts: pa.Table) -> None:
        """Place sessions by what is known of them."""
        names = ("process", "pool", "task_key", "sample", "attempt", "outcome")
        seen: dict[tuple[Any, ...], tuple[int, int, int, int]] = {}
        rows = zip(*(facts[name].to_pylist() for name in self._used(names)), strict=True)
        found = []
        for row in rows:
            codes = seen.get(row)
            if codes is None:
                codes = seen[row] = self._codes(self._facts(row))
            found.append(codes)
        table = np.array(found, np.int64).reshape(-1, 4)
        for column, values in zip(
            (self.unit, self.group, self.label, self.number), table.T, strict=True
        ):
            column[places] = values

    def _used(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out what the grouping does not look at, or no two sessions would be alike."""
        return names if not self._grouping.is_shared else ("process", "pool", "outcome")

    def _facts(self, row: tuple[Any, ...]) -> SessionFacts:
        if self._grouping.is_shared:
            process, pool, outcome = row
            return SessionFacts(process, pool, None, None, 0, outcome)
        return SessionFacts(*row)

    def _codes(self, facts: SessionFacts) -> tuple[int, int, int, int]:
        spot = self._grouping.session(facts, self._processes)
        unit = self._unit_codes.setdefault(spot.unit, len(self._unit_codes))
        if unit == len(self.units):
            self.units.append(spot.unit)
        group, label = self._lanes.codes(spot.group, spot.label)
        return unit, group, label, spot.number


def _slot_numbers(unit: npt.NDArray[np.int64], start: Times, end: Times) -> npt.NDArray[np.int64]:
    slots = np.zeros(len(unit), np.int64)
    order = np.argsort(unit, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(unit[order])) + 1):
        slots[places] = pack_slots(start[places], end[places])
    return slots


def _lanes_of(
    lanes: Lanes, spots: _Spots, number: npt.NDArray[np.int64], *, is_shared: bool
) -> npt.NDArray[np.int64]:
    if not is_shared:
        return lanes.add(spots.group, spots.label, number, has_sessions=True)
    keys = spots.unit << 32 | number
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    added = lanes.add(spots.group[first], spots.label[first], number[first] + 1, has_sessions=True)
    return added[inverse]


def _add_places(
    lanes: Lanes, places: Sequence[str], grouping: Grouping, processes: Processes
) -> list[int]:
    spots = [grouping.outside(*place_name(place), processes) for place in places]
    codes = [lanes.codes(spot.group, spot.label) for spot in spots]
    groups, labels = [group for group, _ in codes], [label for _, label in codes]
    added: list[int] = lanes.add(groups, labels, [-1] * len(codes), has_sessions=False).tolist()
    return added


def place_name(place: str) -> tuple[int, str]:
    """Read a place outside of sessions: its process, and the lane it names."""
    process, _, lane = place.partition("/")
    return int(process), lane
