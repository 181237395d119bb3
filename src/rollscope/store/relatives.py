"""Spans that rows still to come may name as their parent: their paths, and when they were open.

Those are the open spans of a process, the ended ones that an open one calls its parent, and its
latest sessions. What their children cover of them is left to `coverage`.
"""

from collections import ChainMap
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from rollscope.analysis.intervals import Interval
from rollscope.model.kinds import KIND_CODES, Kind
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.openspan import OpenSpan
from rollscope.store.paths import PathTable
from rollscope.store.rawrows import RawRows, find_rows, ids_of

__all__ = ["FOREVER", "Arrivals", "Relatives"]

FOREVER: Final = int(np.iinfo(np.int64).max)
"""When a span ends of which no end is known."""

_IS_ROOT: Final = np.zeros(256, bool)
_IS_ROOT[[KIND_CODES[kind] for kind in (Kind.STEP, Kind.TASK, Kind.SESSION, Kind.STATE)]] = True
_SESSION_CODE: Final = KIND_CODES[Kind.SESSION]
_MOST_SESSIONS: Final = 512

Rows = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.int32]


class Arrivals(NamedTuple):
    """Every row that may have children or be one: the spans that ended, then the newly open."""

    rows: RawRows
    ended: Rows
    started: Rows
    every: Rows
    parents: Ids
    parent_places: Codes
    """Where among them each one's parent is, -1 if it is not there."""

    @classmethod
    def of(cls, rows: RawRows, ended: Rows, started: Rows) -> Self:
        """Find the parents of rows among each other."""
        every = np.concatenate((ended, started))
        parents = rows.parent_id[every]
        return cls(rows, ended, started, every, parents, find_rows(rows.span_id[every], parents))


class Relatives:
    """What one process's spans have to know of their parents.

    Args:
        state: Where ended spans are remembered.
        open_spans: The open ones, by id.
        paths: The paths of the run.
    """

    def __init__(
        self, state: LedgerState, open_spans: dict[int, OpenSpan], paths: PathTable
    ) -> None:
        self.open = open_spans
        self._state = state
        self._paths = paths

    @property
    def _ended(self) -> ChainMap[int, tuple[int, int, str]]:
        return ChainMap(self._state.ended_parents, self._state.ended_sessions)

    def bounds_of(self, span_id: int) -> Interval | None:
        """Give between which times a span can be covered, if it is known."""
        span = self.open.get(span_id)
        if span is not None:
            return span.start_ns, span.missed_ns or FOREVER
        ended = self._ended.get(span_id)
        return None if ended is None else ended[:2]

    def _path_of(self, span_id: int) -> str:
        span = self.open.get(span_id)
        if span is not None:
            return span.path
        ended = self._ended.get(span_id)
        return "" if ended is None else ended[2]

    def resolve_paths(self, arrivals: Arrivals) -> tuple[Codes, Codes]:
        """Find the path of each, and that of its parent."""
        rows, every, parents = arrivals.rows, arrivals.every, arrivals.parents
        elsewhere = np.zeros(len(every), np.int32)
        away = np.nonzero((arrivals.parent_places < 0) & (parents > 0))[0]
        unique, inverse = np.unique(parents[away], return_inverse=True)
        codes = [self._paths.code_of(self._path_of(int(parent))) for parent in unique]
        if codes:
            elsewhere[away] = np.array(codes, np.int32)[inverse]
        is_root = _IS_ROOT[rows.what[every]]
        return self._paths.resolve(
            rows.names, rows.name[every], is_root, arrivals.parent_places, elsewhere
        )

    def close(self, ended_ids: Ids) -> int:
        """Take spans that ended off the open ones, and say how many those were."""
        known = ids_of(self.open)
        closed = known[find_rows(ended_ids, known) >= 0]
        for span_id in closed:
            del self.open[int(span_id)]
        return len(closed)

    def keep_open(
        self, rows: RawRows, starts: Rows, places: Rows, paths: Codes, above: Codes
    ) -> None:
        """Remember spans that started.

        Args:
            rows: The rows.
            starts: Those of them that have no end.
            places: Which of these are news.
            paths: The path of each of those.
            above: The path of its parent.
        """
        names, texts = rows.names, self._paths.paths
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

    def remember(self, rows: RawRows, ended: Rows, paths: Codes) -> None:
        """Remember of spans that ended those that others may still call their parent."""
        self._remember_parents(rows, ended, paths)
        self._remember_sessions(rows, ended, paths)

    def _remember_parents(self, rows: RawRows, ended: Rows, paths: Codes) -> None:
        wanted = {span.parent_id for span in self.open.values()} - self.open.keys() - {0}
        kept = {key: value for key, value in self._state.ended_parents.items() if key in wanted}
        if wanted:
            missing = ids_of(wanted - kept.keys())
            places = find_rows(rows.span_id[ended], missing)
            for span_id, place in zip(missing, places, strict=True):
                if place >= 0:
                    row = ended[place]
                    path = self._paths.paths[paths[place]]
                    kept[int(span_id)] = (int(rows.start_ns[row]), int(rows.end_ns[row]), path)
        self._state.ended_parents = kept

    def _remember_sessions(self, rows: RawRows, ended: Rows, paths: Codes) -> None:
        sessions = np.nonzero(rows.what[ended] == _SESSION_CODE)[0][-_MOST_SESSIONS:]
        latest, texts = self._state.ended_sessions, self._paths.paths
        at = ended[sessions]
        columns = (rows.span_id[at], rows.start_ns[at], rows.end_ns[at], paths[sessions])
        for span_id, start_ns, end_ns, path in zip(*(c.tolist() for c in columns), strict=True):
            latest[span_id] = start_ns, end_ns, texts[path]
        for span_id in list(latest)[:-_MOST_SESSIONS]:
            del latest[span_id]

    def outlive(self, lost: Sequence[OpenSpan], end_ns: int) -> None:
        """Remember lost spans for the children they leave behind."""
        parents = {span.parent_id for span in self.open.values()}
        for span in lost:
            if span.span_id in parents:
                end = max(end_ns, span.start_ns)
                self._state.ended_parents[span.span_id] = (span.start_ns, end, span.path)
