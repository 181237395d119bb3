"""Following a run: which rows of the store are new, and where they belong."""

from operator import attrgetter
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.store.corrections import Correction, Corrections
from rollscope.store.embedded import RunStore
from rollscope.timeline.building import Layout, place_name, span_count
from rollscope.timeline.columns import NEVER, NO_SESSION, STUCK, Rows
from rollscope.timeline.grouping import Grouping, Processes
from rollscope.timeline.growth import CannotFollow, Growth, News, Placed
from rollscope.timeline.news import Batch
from rollscope.timeline.reading import SpanReader
from rollscope.timeline.seating import Seats

__all__ = ["Follower", "Step"]

_TOLERANCE_NS: Final = 5_000_000
"""How far the estimate of a clock may wander before everything is placed anew."""
_UNMOVED: Final = Correction.constant(0)


class Step(msgspec.Struct):
    """What one look at the run brought."""

    settled: Rows
    """Spans that came with their end."""
    opened: list[Placed]
    changed: list[Placed]
    """Spans that were open before, and have ended or look otherwise now."""


class Follower:
    """Gives what is new to the growth of an index."""

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
        self._layout = layout
        self._intake = store.sealer.intake
        self._removed = store.sealer.manifest.removed_rows
        self._seen = seen
        self._seats = Seats(store, grouping, processes, layout)
        self._facts_seen = _fact_rows(store)

    @property
    def session_ids(self) -> npt.NDArray[np.uint64]:
        """The ids of all sessions, by their number."""
        return self._seats.ids

    @property
    def moved(self) -> Corrections:
        """How the times of processes are moved."""
        return self._reader.moved

    def lanes_of(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """Give the lane of each span of a table; -1 for one that is not placed yet."""
        wanted = table["session_id"].fill_null(0).to_numpy()
        number = self._seats.numbers(wanted)
        lanes = np.append(self._seats.lane.astype(np.int64), -1)[number]
        outside = self._reader.places_of(table)
        placed = np.append(np.array(self._layout.place_lane, np.int64), -1)
        is_outside = wanted == 0
        lanes[is_outside] = placed[np.minimum(outside[is_outside], len(placed) - 1)]
        return lanes

    def follow(self, growth: Growth) -> Step:
        """Place what is new.

        Raises:
            CannotFollow: The run has changed in a way that asks for building anew.
        """
        batches = [
            Batch(self._reader, self._new_rows(), is_final=True),
            Batch(self._reader, self._store.open_rows, is_final=False),
        ]
        numbers = self._seats.take_in(batches)
        unseen = set(growth.open)
        changed: list[Placed] = []
        places = [self._update(batch, growth, unseen, changed) for batch in batches]
        if unseen:
            raise CannotFollow
        news = map(self._news, batches, numbers, places)
        settled, opened = growth.place(_joined(list(news)))
        return Step(settled, opened, sorted(changed, key=attrgetter("start")))

    def _update(
        self,
        batch: Batch,
        growth: Growth,
        unseen: set[int],
        changed: list[Placed],
    ) -> npt.NDArray[np.int64]:
        """Note what has become of spans that were open; give the places of the others."""
        block = batch.block
        is_new = np.ones(len(batch), bool)
        places = np.flatnonzero(_are_in(batch.ids, growth.open))
        places = places[np.lexsort((block.depth[places], block.start[places]))]
        columns = (batch.ids, block.start, block.end, block.flags)
        for place, span_id, start, end, flags in zip(
            places.tolist(), *(column[places].tolist() for column in columns), strict=True
        ):
            known = growth.open.get(span_id)
            if known is None:
                continue  # it came twice
            is_new[place] = False
            unseen.discard(span_id)
            end = _moved_end(start, end, known)
            if batch.is_final:
                changed.append(growth.end(span_id, end, flags))
            elif (known.end, known.flags & ~STUCK) != (end, flags):
                growth.change(known, end, flags | (known.flags & STUCK))
                changed.append(known)
        return np.flatnonzero(is_new)

    def _news(
        self, batch: Batch, numbers: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
    ) -> News:
        """Give spans with their sessions, of which the batch's have these numbers, and lanes."""
        block = batch.block
        which = batch.session[places]
        is_inside = which >= 0
        session = np.full(len(places), NO_SESSION, np.int64)
        lane = np.zeros(len(places), np.uint32)
        session[is_inside] = numbers[which[is_inside]]
        lane[is_inside] = self._seats.lane[session[is_inside]]
        lane[~is_inside] = self._place_lanes()[block.outside[places[~is_inside]]]
        own = np.intersect1d(batch.session_rows(), places, assume_unique=True)
        if len(own) and not self._seats.stand_where_they_belong(batch, numbers, own):
            raise CannotFollow
        rows = Rows(
            start=block.start[places],
            end=block.end[places],
            session=session.astype(np.uint32),
            name=block.name[places],
            flags=block.flags[places],
            lane=lane,
            row=np.zeros(len(places), np.uint16),
        )
        is_final = np.full(len(places), batch.is_final)
        return News(batch.ids[places], rows, block.depth[places], is_final)

    def _new_rows(self) -> pa.Table:
        sealer = self._store.sealer
        total = span_count(self._store)
        new = total - self._seen
        tail = sealer.tail_table("spans")
        if (
            sealer.intake is not self._intake
            or sealer.manifest.removed_rows != self._removed
            or not 0 <= new <= tail.num_rows
            or self._clocks_have_moved()
            or self._verdicts_have_come(new)
        ):
            raise CannotFollow
        self._seen = total
        return tail.slice(tail.num_rows - new)

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

    def _place_lanes(self) -> npt.NDArray[np.uint32]:
        """Give the lane of each place outside of sessions, new ones included."""
        lanes, place_lane = self._layout.lanes, self._layout.place_lane
        for place in self._reader.places.words[len(place_lane) :]:
            process, lane = place_name(place)
            spot = self._grouping.outside(process, lane, self._seats.processes(process))
            group, label = lanes.codes(spot.group, spot.label)
            place_lane.append(int(lanes.add([group], [label], [-1], has_sessions=False)[0]))
        return np.array(place_lane, np.uint32)


def _are_in(ids: npt.NDArray[np.uint64], known: dict[int, Placed]) -> npt.NDArray[np.bool_]:
    if not known:
        return np.zeros(len(ids), bool)
    found = np.sort(np.fromiter(known, np.uint64, len(known)))
    is_in: npt.NDArray[np.bool_] = (
        found[np.minimum(np.searchsorted(found, ids), len(found) - 1)] == ids
    )
    return is_in


def _moved_end(start: int, end: int, known: Placed) -> int:
    """Give the end of a span that stays where it began: clocks are read anew, lengths stay."""
    shift_ns = known.start - start
    if abs(shift_ns) > _TOLERANCE_NS:
        raise CannotFollow
    return end if end == NEVER else end + shift_ns


def _joined(news: list[News]) -> News:
    return News(
        np.concatenate([one.ids for one in news]),
        Rows.join([one.rows for one in news]),
        np.concatenate([one.depth for one in news]),
        np.concatenate([one.is_final for one in news]),
    )


def _fact_rows(store: RunStore) -> int:
    sealer = store.sealer
    sealed = sum(segment.rows for segment in sealer.manifest.segments if segment.table == "facts")
    unsealed: int = sealer.tail_table("facts").num_rows
    return sealed + unsealed
