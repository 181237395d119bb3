"""Which lane each session stands on: those of the build, and those that have come since.

A new session takes the lowest slot of its unit that is free, or where lanes are not shared a lane
of its own.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.store.embedded import RunStore
from rollscope.timeline.building import Layout
from rollscope.timeline.columns import NEVER
from rollscope.timeline.grouping import Grouping, Processes, SessionFacts, Spot
from rollscope.timeline.news import Batch
from rollscope.timeline.slots import Slots

__all__ = ["Seats"]

Numbers = npt.NDArray[np.int64]


class _Seat(msgspec.Struct, frozen=True):
    """Where sessions of a kind belong."""

    spot: Spot
    unit: int
    group: int
    label: int


_Newcomer = tuple[int, int, _Seat]
"""Id and first start of a session that has no lane yet, and where it belongs."""


class _Unit:
    """Slots that sessions share."""

    def __init__(self) -> None:
        self.lanes: list[int] = []
        self.until: list[int] = []
        """When each slot is free again."""
        self.slots: dict[int, int] = {}
        """The slot of each lane."""

    def add(self, lane: int) -> None:
        """Add a slot, which is free."""
        self.slots[lane] = len(self.lanes)
        self.lanes.append(lane)
        self.until.append(0)


class Seats:
    """The sessions of an index, by number, and the lane of each."""

    def __init__(
        self, store: RunStore, grouping: Grouping, processes: Processes, layout: Layout
    ) -> None:
        self._store, self._grouping, self._processes = store, grouping, processes
        self._lanes, self._known = layout.lanes, layout.sessions
        self.ids = layout.sessions.ids
        """The ids of all sessions, by their number."""
        self.lane: npt.NDArray[np.uint32] = layout.sessions.lane
        self._unit: npt.NDArray[np.uint32] = layout.sessions.unit
        self._later: dict[int, int] = {}
        """Sessions that came after the build: id to number."""
        self._unit_codes = {unit: code for code, unit in enumerate(layout.units)}
        self._seats: dict[tuple[Any, ...], _Seat] = {}
        self._units: dict[int, _Unit] = {}

    def numbers(self, ids: npt.NDArray[np.uint64]) -> Numbers:
        """Give the numbers of sessions; -1 for one that has no lane yet."""
        known = self._known.ids
        numbers = np.searchsorted(known, ids)
        if len(known):
            is_later = known[np.minimum(numbers, len(known) - 1)] != ids
        else:
            is_later = np.ones(len(ids), bool)
        later = self._later
        numbers[is_later] = [later.get(one, -1) for one in ids[is_later].tolist()]
        return numbers

    def processes(self, process: int) -> Processes:
        """Give how the run calls its processes, this one among them."""
        if process not in self._processes:
            self._processes = Processes(self._store)
        return self._processes

    def take_in(self, batches: Sequence[Batch]) -> list[Numbers]:
        """Give every new session a lane, the earliest first; give the numbers of each batch's.

        What has ended meanwhile makes room first: many sessions may have come and gone since the
        last look, and share a slot.
        """
        ends: dict[int, int] = {}
        for batch in batches:
            if batch.is_final:
                ends |= batch.session_ends()
        if self._grouping.is_shared:
            self._free_slots(ends)
        numbers = [self.numbers(batch.sessions) for batch in batches]
        if any((known < 0).any() for known in numbers):
            self._seat(self._newcomers(batches, numbers), ends)
            numbers = [self.numbers(batch.sessions) for batch in batches]
        return numbers

    def _newcomers(self, batches: Sequence[Batch], numbers: Sequence[Numbers]) -> list[_Newcomer]:
        """Give the sessions that have no lane, in the order of their first spans."""
        found: list[tuple[int, int, int, int, _Seat]] = []
        for which, (batch, known) in enumerate(zip(batches, numbers, strict=True)):
            places = batch.first_spans()[known < 0]
            seats, wanted = self._seats_at(batch, places)
            starts, ids = batch.block.start[places], batch.block.session_id[places]
            columns = (column.tolist() for column in (starts, places, ids, wanted))
            found += [
                (start, which, place, session, seats[seat])
                for start, place, session, seat in zip(*columns, strict=True)
            ]
        found.sort(key=itemgetter(0, 1, 2))
        first = dict[int, _Newcomer]()
        for start, _, _, session, seat in found:
            first.setdefault(session, (session, start, seat))
        return list(first.values())

    def stand_where_they_belong(self, batch: Batch, numbers: Numbers, places: Numbers) -> bool:
        """Say whether sessions have the lanes that they should, now that they are there themselves.

        Until then their places were guessed from their first spans, which may be of another
        process.
        """
        seats, which = self._seats_at(batch, places)
        lane = self.lane[numbers[batch.session[places]]]
        group = np.array([seat.group for seat in seats])[which]
        label = np.array([seat.label for seat in seats])[which]
        return self._lanes.are_at(lane, group, label)

    def _seats_at(self, batch: Batch, places: Numbers) -> tuple[list[_Seat], Numbers]:
        """Give the seats that spans ask for, and which of them each does."""
        told, which = batch.facts.at(places, is_shared=self._grouping.is_shared)
        return [self._seats.get(facts) or self._new_seat(facts) for facts in told], which

    def _new_seat(self, told: tuple[Any, ...]) -> _Seat:
        facts = SessionFacts(*told)
        spot = self._grouping.session(facts, self.processes(facts.process))
        unit = self._unit_codes.setdefault(spot.unit, len(self._unit_codes))
        seat = _Seat(spot, unit, *self._lanes.codes(spot.group, spot.label))
        if self._grouping.is_shared:
            self._seats[told] = seat
        return seat

    def _seat(self, newcomers: Sequence[_Newcomer], ends: dict[int, int]) -> None:
        seats = [seat for _, _, seat in newcomers]
        if self._grouping.is_shared:
            lanes = self._take_slots(newcomers, ends)
        else:
            groups, labels = [seat.group for seat in seats], [seat.label for seat in seats]
            numbers = [seat.spot.number for seat in seats]
            lanes = self._lanes.add(groups, labels, numbers, has_sessions=True).tolist()
        first = len(self.ids)
        self._later |= {one[0]: first + place for place, one in enumerate(newcomers)}
        ids = np.array([session for session, _, _ in newcomers], np.uint64)
        self.ids = np.append(self.ids, ids)
        self.lane = np.append(self.lane, np.array(lanes, np.uint32))
        self._unit = np.append(self._unit, np.array([seat.unit for seat in seats], np.uint32))

    def _take_slots(self, newcomers: Sequence[_Newcomer], ends: dict[int, int]) -> list[int]:
        """Give sessions, which are in order of their start, the lowest slot that is free."""
        taken = dict[int, Slots]()
        lanes = []
        for session, start, seat in newcomers:
            unit = self._unit_of(seat.unit)
            slots = taken.get(seat.unit)
            if slots is None:
                slots = taken[seat.unit] = Slots(unit.until)
            end = ends.get(session, NEVER)
            slot = slots.place(start, end)
            if slot == len(unit.lanes):
                new = self._lanes.add([seat.group], [seat.label], [slot + 1], has_sessions=True)
                unit.add(int(new[0]))
            unit.until[slot] = end
            lanes.append(unit.lanes[slot])
        return lanes

    def _free_slots(self, ends: dict[int, int]) -> None:
        numbers = self.numbers(np.fromiter(ends, np.uint64, len(ends)))
        known = numbers >= 0
        units, lanes = self._unit[numbers[known]], self.lane[numbers[known]]
        until = np.fromiter(ends.values(), np.int64, len(ends))[known]
        for number, lane, end in zip(units.tolist(), lanes.tolist(), until.tolist(), strict=True):
            unit = self._unit_of(number)
            unit.until[unit.slots[lane]] = end

    def _unit_of(self, number: int) -> _Unit:
        unit = self._units.get(number)
        if unit is None:
            known = self._known
            own = np.flatnonzero(known.unit == number)
            lanes, inverse = np.unique(known.lane[own], return_inverse=True)
            until = np.zeros(len(lanes), np.int64)
            np.maximum.at(until, inverse, known.end[own])
            unit = self._units[number] = _Unit()
            for lane in lanes.tolist():
                unit.add(lane)
            unit.until = until.tolist()
        return unit
