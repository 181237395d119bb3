"""The timeline of a run in memory: every span in its lane and row, and how that grows."""

import threading
from collections.abc import Collection
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.store.corrections import Corrections
from rollscope.store.embedded import RunStore
from rollscope.timeline.building import Layout, build_layout, span_count
from rollscope.timeline.changes import Change, Changes
from rollscope.timeline.columns import NEVER, Part, Rows
from rollscope.timeline.following import Follower, Step
from rollscope.timeline.grouping import Processes, find_grouping
from rollscope.timeline.growth import CannotFollow, Growth, rows_of
from rollscope.timeline.keeping import Keepsake, restore, take_keepsake
from rollscope.timeline.reading import SpanReader

__all__ = ["SpanIndex"]

_MOST_TICKS: Final = 0xFFFFFFFE
_FIRST_TICK_NS: Final = 1000
_MERGE_AT: Final = 50_000


class SpanIndex:
    """All spans of a run as columns, by lane, row and start; safe to use from several threads."""

    def __init__(
        self, store: RunStore, by: str = "host", *, stuck: Collection[int] = frozenset()
    ) -> None:
        """Read the run as the store shows it now.

        Args:
            store: The run.
            by: How lanes are grouped: host, replica, rank, task or outcome.
            stuck: Ids of the open spans that are taken for stuck.

        Raises:
            QueryError: There is no such grouping.
        """
        self.store = store
        self.by = by
        self.lock = threading.RLock()
        self._grouping = find_grouping(by)
        self._stuck = frozenset(stuck)
        self.changes = Changes()
        self.overviews: dict[object, Any] = {}
        """Pictures of the run as it is now, by what was asked for; who makes them keeps them."""
        self._keepsake: Keepsake | None = None
        """What to write for the next who opens the run; gone once it has been taken."""
        if not self._restore():
            self._build(is_first=True)

    def _restore(self) -> bool:
        """Start from a timeline that was kept, if there is one; say whether there was."""
        processes = Processes(self.store)
        kept = restore(self.store, self.by, processes)
        if kept is None:
            return False
        self._adopt(kept.layout, kept.reader, processes, kept.seen)
        try:
            self._follower.follow(self._growth)
        except CannotFollow:
            return False
        self._settle_in()
        return True

    def _build(self, *, is_first: bool = False) -> None:
        store = self.store
        reader = SpanReader(store)
        processes = Processes(store)
        layout = build_layout(store, reader, self._grouping, processes)
        if is_first:
            self._keepsake = take_keepsake(store, self.by, layout, reader, processes)
        self._adopt(layout, reader, processes, span_count(store))
        self._settle_in()

    def take_keepsake(self) -> Keepsake | None:
        """Give what is to be written for the next who opens the run, once."""
        taken, self._keepsake = self._keepsake, None
        return taken

    def _adopt(self, layout: Layout, reader: SpanReader, processes: Processes, seen: int) -> None:
        self.layout, self.lanes, self.names = layout, layout.lanes, reader.names
        self._growth = Growth(layout)
        self._follower = Follower(self.store, reader, self._grouping, processes, layout, seen)

    def _settle_in(self) -> None:
        store = self.store
        self._growth.mark_stuck(self._stuck)
        self._show_open()
        starts = [int(part.start.min()) for part in self.parts if len(part)]
        self.t0_ns = min(starts, default=store.now_ns)
        self._ended_last_ns = max(_last_edge(part, self.t0_ns) for part in self.parts[:2])
        self.tick_ns = self._fitting_tick()

    def _fitting_tick(self) -> int:
        """Give the smallest tick that fits; a run that goes on gets twice the room it needs."""
        length_ns = self.last_ns - self.t0_ns
        if any(span.end == NEVER for span in self._growth.open.values()):
            length_ns = 2 * max(length_ns, self.store.now_ns - self.t0_ns)
        tick_ns = _FIRST_TICK_NS
        while length_ns // tick_ns > _MOST_TICKS:
            tick_ns *= 10
        return tick_ns

    def _show_open(self) -> None:
        self._open = Part(rows_of([*self._growth.open.values()]))
        self.overviews.clear()

    def line_depths(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """Give how deep the spans of each line are, for all parts."""
        _, recent, still = self.parts
        return self.layout.depths, self._growth.depths_in(recent), self._growth.depths_in(still)

    @property
    def parts(self) -> tuple[Part, Part, Part]:
        """What was sorted at the last build or merge, what ended since, and what may still change.

        Together they have every span once.
        """
        return self.layout.part, self._growth.recent, self._open

    @property
    def seq(self) -> int:
        """The number of the latest change."""
        return self.changes.number

    @property
    def now_ns(self) -> int:
        """The time that counts as now."""
        return self.store.now_ns

    @property
    def total_spans(self) -> int:
        """How many spans there are."""
        return len(self.layout.part) + len(self._growth)

    @property
    def last_ns(self) -> int:
        """When the last of what has ended did so, or the last of what is open began."""
        return max(_last_edge(self._open, self.t0_ns), self._ended_last_ns)

    @property
    def session_ids(self) -> npt.NDArray[np.uint64]:
        """The ids of the sessions, by their number."""
        return self._follower.session_ids

    @property
    def nbytes(self) -> int:
        """How much memory the columns take."""
        sessions = self.layout.sessions
        columns = (sessions.ids, sessions.lane, sessions.unit, sessions.end)
        of_parts = sum(part.nbytes for part in self.parts)
        return of_parts + sum(column.nbytes for column in columns)

    def extend(self, stuck: Collection[int] | None = None) -> int:
        """Take in what the store has learnt since, and give the number of the latest change.

        What has a place keeps it. Where that is not possible everything is placed anew, and what
        changed since an earlier number cannot be told any more.

        Args:
            stuck: Ids of the open spans that are taken for stuck now, if that has been found out.
        """
        with self.lock:
            if stuck is not None:
                self._stuck = frozenset(stuck)
            try:
                step = self._follower.follow(self._growth)
            except CannotFollow:
                self.changes.forget()
                self._build()
                return self.seq
            changed = step.changed + self._growth.mark_stuck(self._stuck)
            if len(step.settled) or step.opened or changed:
                self.changes.add(step.settled, step.opened, changed)
                self._tidy(step)
            return self.seq

    def _tidy(self, step: Step) -> None:
        ended = Rows.join([step.settled, rows_of(step.changed)])
        self._show_open()
        if self._needs_new_ticks(ended):
            self.changes.forget()
            self._build()
            return
        self._ended_last_ns = max(self._ended_last_ns, _last_edge(ended, self.t0_ns))
        base, recent, _ = self.parts
        if len(recent) > max(_MERGE_AT, len(base) // 8):
            self._growth.merge()

    def _needs_new_ticks(self, ended: Rows) -> bool:
        for rows in (ended, self._open):
            if rows.start.min(initial=self.t0_ns) < self.t0_ns:
                return True
            reached = np.where(rows.end < NEVER, rows.end, self.now_ns).max(initial=self.t0_ns)
            if int(reached) - self.t0_ns > _MOST_TICKS * self.tick_ns:
                return True
        return False

    @property
    def moved(self) -> Corrections:
        """How the times of processes are moved here."""
        return self._follower.moved

    def lanes_of(self, table: pa.Table) -> npt.NDArray[np.int64]:
        """Give the lane of each span of a table; -1 for one that is not here yet."""
        return self._follower.lanes_of(table)

    def open_handles(self) -> list[tuple[int, int, int, int]]:
        """Give lane, row, start and handle of every span that may still change."""
        return [
            (span.lane, span.row, span.start, span.handle) for span in self._growth.open.values()
        ]

    def changed_since(self, number: int) -> Change:
        """Give what changed since a number.

        Raises:
            DeltaTooOld: That is not known any more.
        """
        return self.changes.since(number)


def _last_edge(part: Part | Rows, t0_ns: int) -> int:
    ended = part.end[part.end < NEVER].max(initial=t0_ns)
    return int(max(ended, part.start.max(initial=t0_ns)))
