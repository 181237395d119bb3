"""Following a run: which rows of the store are new, and which session they belong to."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.store.corrections import Correction, Corrections
from rollscope.store.embedded import RunStore
from rollscope.timeline.building import Layout, place_name, span_count
from rollscope.timeline.columns import IS_SESSION, NEVER, NO_SESSION, STUCK
from rollscope.timeline.grouping import Grouping, Processes, Spot
from rollscope.timeline.growth import CannotFollow, Placed, Young
from rollscope.timeline.news import Batch, FactRows
from rollscope.timeline.reading import SpanReader

__all__ = ["Follower"]

_TOLERANCE_NS: Final = 5_000_000
"""How far the estimate of a clock may wander before everything is placed anew."""
_UNMOVED: Final = Correction.constant(0)
_FEW_NEW: Final = 20_000
_NEW_SHARE: Final = 8
_MOST_NEW: Final = 200_000
"""To place new rows one by one is quicker than to build anew if they are few, or less than this
part of those there are; and never more than so many."""


_News = tuple[int, Placed, int, bool]
"""Id, span, depth, and whether it has ended for good."""


class Follower:
    """Gives what is new to the young part of an index."""

    def __init__(
        self,
        store: RunStore,
        reader: SpanReader,
        grouping: Grouping,
        processes: Processes,
        layout: Layout,
        seen: int,
    ) -> None:
        """Begin to follow.

        Args:
            store: The run.
            reader: What the spans of the layout were read with.
            grouping: How lanes are grouped.
            processes: How the run calls its processes.
            layout: What has a place.
            seen: How many spans that have ended are in it.
        """
        self._store, self._reader, self._grouping = store, reader, grouping
        self._processes, self._layout = processes, layout
        self._intake = store.sealer.intake
        self._removed = store.sealer.manifest.removed_rows
        self._seen = seen
        self._numbers: dict[int, int] = {}
        """Sessions that came after the build: id to number."""
        self._lanes: list[int] = []
        self._units: list[int] = []
        self._unit_codes = {unit: code for code, unit in enumerate(layout.units)}
        self._facts_seen = _fact_rows(store)

    def session_ids(self) -> npt.NDArray[np.uint64]:
        """Give the ids of all sessions, by their number."""
        added = np.fromiter(self._numbers, np.uint64, len(self._numbers))
        return np.concatenate([self._layout.sessions.ids, added])

    @property
    def moved(self) -> Corrections:
        """How the times of processes are moved."""
        return self._reader.moved

    def lanes_of(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """Give the lane of each span of a table; -1 for one that is not placed yet."""
        ids = self.session_ids()
        order = np.argsort(ids)
        wanted = table["session_id"].fill_null(0).to_numpy()
        place = np.searchsorted(ids[order], wanted)
        number = order[np.minimum(place, max(len(ids) - 1, 0))] if len(ids) else place
        lane_of = np.concatenate([self._layout.sessions.lane, np.array(self._lanes, np.int64)])
        lanes = np.full(table.num_rows, -1, np.int64)
        if len(ids):
            known = ids[number] == wanted
            lanes[known] = lane_of[number[known]]
        outside = self._reader.places_of(table)
        placed = np.append(np.array(self._layout.place_lane, np.int64), -1)
        is_outside = wanted == 0
        lanes[is_outside] = placed[np.minimum(outside[is_outside], len(placed) - 1)]
        return lanes

    def follow(self, young: Young) -> tuple[list[Placed], list[Placed]]:
        """Place what is new; give what was added and what has changed.

        Raises:
            CannotFollow: The run has changed in a way that asks for building anew.
        """
        batches = [
            Batch(self._reader, self._new_rows(), is_final=True),
            Batch(self._reader, self._open_rows(), is_final=False),
        ]
        self._seat_sessions(batches, young)
        added: list[Placed] = []
        changed: list[Placed] = []
        gone = set(young.open)
        news = [one for batch in batches for one in self._read(batch, young)]
        # The earliest first, and sessions before what is in them: so they get the upper rows.
        for span_id, span, depth, is_final in sorted(news, key=_by_start):
            known = young.open.get(span_id)
            gone.discard(span_id)
            if known is not None:
                _keep_start(span, known)
            if known is None:
                young.place(span, depth, None if is_final else span_id)
                added.append(span)
            elif is_final:
                changed.append(young.end(span_id, span.end, span.flags))
            elif (known.end, known.flags & ~STUCK) != (span.end, span.flags):
                young.change(known, span.end, span.flags | (known.flags & STUCK))
                changed.append(known)
        if gone:
            raise CannotFollow
        return added, changed

    def _new_rows(self) -> pa.Table:
        sealer = self._store.sealer
        total = span_count(self._store)
        new = total - self._seen
        tail = sealer.tail_table("spans")
        if (
            sealer.intake is not self._intake
            or sealer.manifest.removed_rows != self._removed
            or not 0 <= new <= min(tail.num_rows, self._most_new)
            or self._clocks_have_moved()
            or self._verdicts_have_come(new)
        ):
            raise CannotFollow
        self._seen = total
        return tail.slice(tail.num_rows - new)

    @property
    def _most_new(self) -> int:
        return min(max(_FEW_NEW, self._seen // _NEW_SHARE), _MOST_NEW)

    def _clocks_have_moved(self) -> bool:
        before, now = self._reader.moved, self._store.clocks.corrections
        return any(
            before.get(ledger.process, _UNMOVED).differs(
                now.get(ledger.process, _UNMOVED), ledger.state.first_seen_ns, ledger.last_seen_ns
            )
            > _TOLERANCE_NS
            for ledger in self._intake.ledgers.values()
            if ledger.process in before or ledger.process in now
        )

    def _verdicts_have_come(self, new_rows: int) -> bool:
        if not self._grouping.follows_verdicts:
            return False
        return new_rows > 0 or _fact_rows(self._store) != self._facts_seen

    def _open_rows(self) -> pa.Table:
        return self._store.sealer.intake.open_rows(self._store.now_ns, self._store.clocks)

    def _seat_sessions(self, batches: Sequence[Batch], young: Young) -> None:
        """Give every new session a lane, the earliest first.

        What has ended meanwhile makes room first: many sessions may have come and gone since the
        last look, and share a slot.
        """
        ends = batches[0].session_ends()
        for session_id, end in ends.items():
            number = self._number(session_id)
            if number is not None:
                self._free_slot(number, end, young)
        new: dict[int, tuple[int, int, int]] = {}
        for which, batch in enumerate(batches):
            for session_id, start, place in batch.first_spans():
                if self._number(session_id) is None:
                    first = start, which, place
                    new[session_id] = min(new.get(session_id, first), first)
        for session_id, (start, which, place) in sorted(new.items(), key=lambda item: item[1]):
            self._numbers[session_id] = len(self._layout.sessions.ids) + len(self._lanes)
            spot = self._spot(place, batches[which].facts)
            unit = self._unit_codes.setdefault(spot.unit, len(self._unit_codes))
            self._units.append(unit)
            end = ends.get(session_id, NEVER)
            self._lanes.append(self._take_lane(spot, unit, start, end, young))

    def _number(self, session_id: int) -> int | None:
        ids = self._layout.sessions.ids
        found = int(np.searchsorted(ids, np.uint64(session_id)))
        if found < len(ids) and int(ids[found]) == session_id:
            return found
        return self._numbers.get(session_id)

    def _read(self, batch: Batch, young: Young) -> Iterator[_News]:
        """Give spans with their lanes."""
        for place, span_id, session_id, (start, end, name, flags, depth) in batch.spans():
            known = young.open.get(span_id)
            if known is not None:
                session, lane = known.session, known.lane
            elif session_id:
                number = self._number(session_id)
                if number is None:  # seated above, like all of its batch
                    raise CannotFollow
                session = number
                lane = self._lane_of(session)
                if flags & IS_SESSION:
                    self._check_spot(lane, self._spot(place, batch.facts))
            else:
                session, lane = NO_SESSION, self._outside(batch.outside[place])
            span = Placed(start, end, session, name, flags, lane, row=0, handle=0)
            yield span_id, span, depth, batch.is_final

    def _take_lane(self, spot: Spot, unit: int, start: int, end: int, young: Young) -> int:
        lanes = self._layout.lanes
        if not self._grouping.is_shared:
            group, label = lanes.codes(spot.group, spot.label)
            return int(lanes.add([group], [label], [spot.number], has_sessions=True)[0])
        lane = young.slot(unit, start, end)
        if lane is None:
            group, label = lanes.codes(spot.group, spot.label)
            number = young.slot_count(unit) + 1
            lane = int(lanes.add([group], [label], [number], has_sessions=True)[0])
            young.occupy(unit, lane, end)
        return lane

    def _free_slot(self, number: int, end: int, young: Young) -> None:
        if self._grouping.is_shared:
            known = self._layout.sessions
            later = number - len(known.ids)
            unit = int(known.unit[number]) if later < 0 else self._units[later]
            young.occupy(unit, self._lane_of(number), end)

    def _lane_of(self, number: int) -> int:
        known = self._layout.sessions.lane
        return int(known[number]) if number < len(known) else self._lanes[number - len(known)]

    def _outside(self, place: int) -> int:
        lanes = self._layout.lanes
        while len(self._layout.place_lane) <= place:
            process, lane = place_name(self._reader.places.words[len(self._layout.place_lane)])
            spot = self._grouping.outside(process, lane, self._refreshed(process))
            group, label = lanes.codes(spot.group, spot.label)
            added = lanes.add([group], [label], [-1], has_sessions=False)
            self._layout.place_lane.append(int(added[0]))
        return self._layout.place_lane[place]

    def _spot(self, place: int, facts: FactRows) -> Spot:
        known = facts.at(place)
        return self._grouping.session(known, self._refreshed(known.process))

    def _check_spot(self, lane: int, spot: Spot) -> None:
        """Make sure that a session stands where it belongs, now that it is there itself.

        Until then its place was guessed from its first span, which may be of another process.
        """
        if not self._layout.lanes.is_at(lane, spot.group, spot.label):
            raise CannotFollow

    def _refreshed(self, process: int) -> Processes:
        if process not in self._processes:
            self._processes = Processes(self._store)
        return self._processes


def _keep_start(span: Placed, known: Placed) -> None:
    """Let a span begin where it was placed: clocks are read anew, lengths stay as they are."""
    shift_ns = known.start - span.start
    if abs(shift_ns) > _TOLERANCE_NS:
        raise CannotFollow
    span.start = known.start
    span.end = span.end if span.end == NEVER else span.end + shift_ns


def _by_start(news: _News) -> tuple[int, int]:
    return news[1].start, news[2]


def _fact_rows(store: RunStore) -> int:
    sealer = store.sealer
    sealed = sum(segment.rows for segment in sealer.manifest.segments if segment.table == "facts")
    unsealed: int = sealer.tail_table("facts").num_rows
    return sealed + unsealed
