"""Sums over all of a run, without reading the same rows twice.

A segment never changes, so it is added once. Of what is not sealed yet, the rows that have come
since the last look are added to a copy of that, which is thrown away when anything is sealed. If
segments are gone, because they were joined or retired, everything is read again: what was shown is
held elsewhere.
"""

from collections import Counter
from pathlib import Path
from typing import Final
from weakref import ReferenceType, ref

from rollscope.exposing.columns import read_rows
from rollscope.exposing.samples import METRIC_COLUMNS, Samples
from rollscope.exposing.spansums import PHASE_COLUMNS, SHOWN_COLUMNS, SPAN_COLUMNS
from rollscope.exposing.sums import (
    EVENT_COLUMNS,
    FACT_COLUMNS,
    OTHER_KINDS,
    PHASE,
    Moment,
    Piece,
    Sums,
)
from rollscope.model.serverroles import SCRAPER
from rollscope.store.embedded import RunStore
from rollscope.store.schema import TABLES
from rollscope.store.sealer import Sealer
from rollscope.store.segments import Segment

__all__ = ["Tally"]

_COLUMNS: Final = {
    "events": EVENT_COLUMNS,
    "facts": FACT_COLUMNS,
    "metrics": METRIC_COLUMNS,
    "spans": SPAN_COLUMNS,
}
_EMPTY: Final = {name: TABLES[name].empty_table().select(_COLUMNS[name]) for name in _COLUMNS}
_NOTHING: Final = Piece(_EMPTY["spans"], _EMPTY["spans"], _EMPTY["facts"], _EMPTY["events"])
_SHOWN_SEGMENTS: Final = 2
"""Segments whose phases serve as exemplars when a run is first read; Prometheus takes only new
ones anyway."""


class _Both:
    """Sums over the rows of all tables."""

    def __init__(self) -> None:
        self.sums = Sums()
        self.samples = Samples()

    def copy(self) -> "_Both":
        copied = _Both()
        copied.sums, copied.samples = self.sums.copy(), self.samples.copy()
        return copied


class Tally:
    """What a run adds up to; used by the thread that owns the store."""

    def __init__(self) -> None:
        self._sealed = _Both()
        self._files: set[str] = set()
        self._grown = _Both()
        """With the rows of the tail that were there at the last look."""
        self._taken: Counter[str] = Counter()
        """How many those are, by table."""
        self._sealer: ReferenceType[Sealer] | None = None
        self._number = -1

    def catch_up(self, store: RunStore) -> bool:
        """Add the next segment that is not added yet; say whether there are more.

        Raises:
            StoreError: It is damaged or gone.
        """
        fresh = self._fresh(store)
        if fresh:
            newest = [one.file for one in fresh if one.table == "spans"][-_SHOWN_SEGMENTS:]
            self._add(store, fresh[0], shows=fresh[0].file in newest)
        return len(fresh) > 1

    def look(self, store: RunStore) -> tuple[Sums, Samples]:
        """Give the sums as of now.

        Raises:
            StoreError: A segment is damaged or gone.
        """
        while self.catch_up(store):
            pass
        self._follow(store)
        sums, samples = self._grown.sums.copy(), self._grown.samples
        open_spans = store.query("SELECT * FROM open_spans").select(SPAN_COLUMNS)
        if open_spans.num_rows:
            spans = open_spans.cast(_EMPTY["spans"].schema)
            sums.add(_NOTHING._replace(phases=spans, spans=spans), _moment(store))
        return sums, samples

    def _follow(self, store: RunStore) -> None:
        """Add what has come to the tail; it grows at its end, and starts anew with a manifest."""
        sealer = store.sealer
        is_same = self._sealer is not None and self._sealer() is sealer
        if not is_same or self._number != sealer.manifest.number:
            self._grown = self._sealed.copy()
            self._taken.clear()
            self._sealer, self._number = ref(sealer), sealer.manifest.number
        fresh = {}
        for name in _COLUMNS:
            tail = sealer.tail_table(name)
            fresh[name] = tail.slice(self._taken[name]).select(_COLUMNS[name])
            self._taken[name] = tail.num_rows
        if any(fresh[name].num_rows for name in ("spans", "facts", "events")):
            piece = Piece(fresh["spans"], fresh["spans"], fresh["facts"], fresh["events"])
            self._grown.sums.add(piece, _moment(store))
        if fresh["metrics"].num_rows:
            rows = fresh["metrics"]
            self._grown.samples.add(rows, store.clocks.corrections, _scrapers(store))

    def _fresh(self, store: RunStore) -> list[Segment]:
        """Give the segments that are not added yet; all of them if others are gone."""
        segments = [one for one in store.sealer.manifest.segments if one.table in _COLUMNS]
        if not self._files <= {one.file for one in segments}:
            self._sealed, self._files, self._number = _Both(), set(), -1
        return [one for one in segments if one.file not in self._files]

    def _add(self, store: RunStore, segment: Segment, *, shows: bool) -> None:
        shelf = store.sealer.shelf
        assert shelf is not None  # noqa: S101  (there are no segments without one)
        if segment.table == "metrics":
            rows = read_rows(shelf.folder, segment, METRIC_COLUMNS)
            self._sealed.samples.add(rows, store.clocks.corrections, _scrapers(store))
        else:
            self._sealed.sums.add(_piece(shelf.folder, segment, shows=shows), _moment(store))
        self._files.add(segment.file)


def _piece(folder: Path, segment: Segment, *, shows: bool) -> Piece:
    if segment.table != "spans":
        rows = read_rows(folder, segment, _COLUMNS[segment.table])
        return _NOTHING._replace(**{segment.table: rows})
    columns = (*PHASE_COLUMNS, *SHOWN_COLUMNS) if shows else PHASE_COLUMNS
    phases = read_rows(folder, segment, columns, (PHASE,))
    return _NOTHING._replace(
        phases=phases, spans=read_rows(folder, segment, SPAN_COLUMNS, OTHER_KINDS)
    )


def _moment(store: RunStore) -> Moment:
    headers = [(one.process, one.state.header) for one in store.sealer.intake.ledgers.values()]
    ranks = {process: header.rank or 0 for process, header in headers if header is not None}
    return Moment(store.clocks.corrections, ranks)


def _scrapers(store: RunStore) -> list[int]:
    """Give the logs of what engines say, who may be asked by others too."""
    return [
        one.process
        for one in store.sealer.intake.ledgers.values()
        if one.state.header is not None and one.state.header.role == SCRAPER
    ]
