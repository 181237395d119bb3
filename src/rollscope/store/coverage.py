"""How much of each parent's time its children cover, while children still come and go.

`overlap` has the arithmetic. Here is what of it lasts from one batch to the next: the time already
covered that a span which is still open may overlap.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from rollscope.analysis.intervals import Interval
from rollscope.model.kinds import Status
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.openspan import Fate, OpenSpan
from rollscope.store.overlap import Carried, add_to, union_additions
from rollscope.store.rawrows import find_rows, ids_of
from rollscope.store.relatives import FOREVER, Arrivals, Relatives

__all__ = ["Coverage"]

Times = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]


class Coverage:
    """The time that children of one process's spans cover."""

    def __init__(self, state: LedgerState, relatives: Relatives) -> None:
        self._state = state
        self._relatives = relatives

    def add(self, arrivals: Arrivals) -> Times:
        """Say what each ended span adds to the time that its parent's children cover."""
        rows, ended = arrivals.rows, arrivals.ended
        parents = arrivals.parents[: len(ended)]
        low, high = self._bounds(arrivals)
        start = np.maximum(rows.start_ns[ended], low)
        end = np.maximum(np.minimum(rows.end_ns[ended], high), start)
        additions = union_additions(parents, start, end)
        additions[parents == 0] = (rows.end_ns - rows.start_ns)[ended][parents == 0]
        carried = self._state.carried
        if carried:
            # Children of a parent whose earlier children reach into the time of these.
            by_hand = np.nonzero(find_rows(ids_of(carried), parents) >= 0)[0]
            by_hand = by_hand[np.argsort(end[by_hand], kind="stable")]
            times = _stretches(parents, start, end, by_hand)
            additions[by_hand] = [add_to(carried[parent], time) for parent, time in times]
        self._carry(parents, start, end, self._earliest(arrivals))
        return additions

    def _bounds(self, arrivals: Arrivals) -> tuple[Times, Times]:
        """Give between which times a parent can be covered, as far as the parent is known."""
        rows, count = arrivals.rows, len(arrivals.ended)
        parents, places = arrivals.parents[:count], arrivals.parent_places[:count]
        low = np.zeros(count, np.int64)
        high = np.full(count, FOREVER)
        here = places >= 0
        at = arrivals.every[places[here]]
        low[here] = rows.start_ns[at]
        ends = rows.end_ns[at]
        high[here] = np.where(ends > 0, ends, FOREVER)
        away = np.nonzero(~here & (parents > 0))[0]
        unique, inverse = np.unique(parents[away], return_inverse=True)
        for number, parent in enumerate(unique):
            bounds = self._relatives.bounds_of(int(parent))
            if bounds is not None:
                chosen = away[inverse == number]
                low[chosen], high[chosen] = bounds
        return low, high

    def _earliest(self, arrivals: Arrivals) -> dict[int, int]:
        """Give, for each span with open children, when the first of them started."""
        earliest: dict[int, int] = {}
        for span in self._relatives.open.values():
            known = earliest.get(span.parent_id, span.start_ns)
            earliest[span.parent_id] = min(known, span.start_ns)
        rows, started = arrivals.rows, arrivals.started
        begins = rows.parent_id[started].tolist(), rows.start_ns[started].tolist()
        for parent, begun in zip(*begins, strict=True):
            earliest[parent] = min(earliest.get(parent, begun), begun)
        earliest.pop(0, None)
        return earliest

    def _carry(self, parents: Ids, start: Times, end: Times, earliest: dict[int, int]) -> None:
        """Remember the time already covered that a span which is still open may overlap."""
        old = self._state.carried
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
        self._state.carried = carried

    def outlive(self, lost: Sequence[OpenSpan], end_ns: int) -> None:
        """Remember lost spans for siblings that may overlap them."""
        parents = {span.parent_id for span in self._relatives.open.values()} - {0}
        for span in lost:
            if span.parent_id in parents:
                end = max(end_ns, span.start_ns)
                covered = self._state.carried.setdefault(span.parent_id, [])
                add_to(covered, self._within_parent(span, end))

    def fates(
        self, spans: Sequence[OpenSpan], status: Status, end_ns: int, why: str | None
    ) -> list[Fate]:
        """Say how spans without an end are to be shown, as if they ended at a time."""
        covered: Carried = {parent: list(times) for parent, times in self._state.carried.items()}
        fates = []
        for span in spans:
            end = max(end_ns, span.start_ns)
            added = end - span.start_ns
            if span.parent_id:
                mine = covered.setdefault(span.parent_id, [])
                added = add_to(mine, self._within_parent(span, end))
            shown = None if status is Status.OPEN else end
            fates.append(Fate(status, shown, why, end - span.start_ns - added))
        return fates

    def _within_parent(self, span: OpenSpan, end_ns: int) -> Interval:
        low, high = self._relatives.bounds_of(span.parent_id) or (span.start_ns, end_ns)
        return max(span.start_ns, low), min(end_ns, high)


def _stretches(
    parents: Ids, start: Times, end: Times, rows: Times
) -> Iterable[tuple[int, Interval]]:
    """Give parent, start and end of some rows."""
    times = zip(start[rows].tolist(), end[rows].tolist(), strict=True)
    return zip(parents[rows].tolist(), times, strict=True)


def _after(intervals: list[Interval], time_ns: int) -> list[Interval]:
    return [interval for interval in intervals if interval[1] > time_ns]
