"""An area drawn on the timeline: what the spans in it add up to, by name, host and outcome."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.analysis.ranks import NEEDED_FOR_P95, rank_of
from rollscope.store.overlap import union_additions
from rollscope.timeline.columns import Times
from rollscope.timeline.grouping import Processes
from rollscope.timeline.spanindex import SpanIndex

__all__ = ["Area", "AreaRow", "sum_area"]

_NONE: Final = "none"
_NO_ID: Final = np.uint64(2**64 - 1)
_COLUMNS: Final = """
    process, span_id, session_id, kind, name, lane, start_ns, end_ns, duration_ns"""


class AreaRow(msgspec.Struct, frozen=True):
    """Spans that have something in common."""

    key: str
    count: int
    total_ns: int
    self_ns: int
    """What is not covered by spans inside of them."""
    p50_ns: int | None
    p95_ns: int | None
    """None if there are fewer than 20; the maximum is there always."""
    max_ns: int | None
    open: int
    """Spans without an end, which count nowhere else than in `count`."""


class Area(msgspec.Struct, frozen=True):
    """Everything that touches an area, whole; rows with most time come first."""

    t0_ns: int
    t1_ns: int
    count: int
    sessions: int
    by_name: list[AreaRow]
    by_host: list[AreaRow]
    by_outcome: list[AreaRow]


def sum_area(index: SpanIndex, t0_ns: int, t1_ns: int, first: int, lanes: int) -> Area:
    """Add up all spans that touch a window on some lanes.

    Args:
        index: The timeline.
        t0_ns: When the window begins.
        t1_ns: When it ends.
        first: Position of the first lane, in the order in which lanes are shown.
        lanes: How many lanes.
    """
    with index.lock:
        table = _spans_between(index, t0_ns, t1_ns, _COLUMNS)
        chosen = index.lanes.order[first : first + lanes]
        table = table.filter(pa.array(np.isin(index.lanes_of(table), chosen)))
        self_ns = _self_times(index, table)
        processes = Processes(index.store)
        outcomes = _outcomes(index, table)
    hosts = table["process"].combine_chunks().dictionary_encode()
    names = table["name"].combine_chunks().dictionary_encode()
    return Area(
        t0_ns=t0_ns,
        t1_ns=t1_ns,
        count=table.num_rows,
        sessions=pc.count_distinct(table["session_id"]).as_py(),
        by_name=_rows(names, table, self_ns, str),
        by_host=_rows(hosts, table, self_ns, processes.host),
        by_outcome=_rows(outcomes, table, self_ns, str),
    )


def _spans_between(index: SpanIndex, t0_ns: int, t1_ns: int, columns: str) -> pa.Table:
    """Give what touches a window."""
    moved = index.store.clocks.corrections.values()
    sql = f"""
        SELECT {columns} FROM spans
        WHERE start_ns < $high AND (end_ns IS NULL OR end_ns > $low OR start_ns >= $low)
            AND recorded_start_ns < $files_high
            AND (recorded_end_ns IS NULL OR recorded_end_ns >= $files_low)"""  # noqa: S608
    return index.store.query(
        sql,
        low=t0_ns,
        high=t1_ns,
        files_low=min((t0_ns, *(one.undo(t0_ns) for one in moved))),
        files_high=max((t1_ns, *(one.undo(t1_ns) for one in moved))),
    )


def _self_times(index: SpanIndex, table: pa.Table) -> Times:
    """Give of each span the time that none of its children covers."""
    start, end = _times(index, table)
    alone = end - start
    if not len(start):
        return alone
    ids = table["span_id"].to_numpy()
    order = np.argsort(ids)
    # Children may stand outside of the window that their parents reach into.
    children = _spans_between(
        index, int(start.min()), int(end.max()) + 1, "parent_id, start_ns, end_ns"
    )
    parent = children["parent_id"].fill_null(0).to_numpy()
    place = order[np.minimum(np.searchsorted(ids[order], parent), len(ids) - 1)]
    known = ids[place] == parent
    place = place[known]
    low, high = (times[known] for times in _times(index, children))
    low, high = np.maximum(low, start[place]), np.minimum(high, end[place])
    added = union_additions(parent[known], low, np.maximum(low, high))
    np.subtract.at(alone, place, added)
    return alone


def _times(index: SpanIndex, table: pa.Table) -> tuple[Times, Times]:
    start = table["start_ns"].to_numpy()
    return start, np.maximum(table["end_ns"].fill_null(index.now_ns).to_numpy(), start)


def _outcomes(index: SpanIndex, table: pa.Table) -> pa.DictionaryArray:
    """Give the verdict on the session of each span."""
    known = index.store.query("SELECT session_id, outcome FROM sessions ORDER BY session_id")
    ids = np.append(known["session_id"].to_numpy(), _NO_ID)
    wanted = table["session_id"].fill_null(0).to_numpy()
    place = np.searchsorted(ids[:-1], wanted)
    place[ids[place] != wanted] = len(ids) - 1
    outcomes = pa.concat_arrays(
        [known["outcome"].fill_null(_NONE).combine_chunks(), pa.array([_NONE])]
    )
    return outcomes.take(pa.array(place)).dictionary_encode()


def _rows(
    keys: pa.DictionaryArray, table: pa.Table, self_ns: Times, label: Callable[[Any], str]
) -> list[AreaRow]:
    duration = table["duration_ns"].fill_null(-1).to_numpy()
    codes = keys.indices.to_numpy()
    order = np.lexsort((duration, codes))
    edges = np.searchsorted(codes[order], np.arange(len(keys.dictionary) + 1))
    words: dict[str, list[npt.NDArray[np.int64]]] = {}
    for code, word in enumerate(keys.dictionary.to_pylist()):
        words.setdefault(label(word), []).append(order[edges[code] : edges[code + 1]])
    rows = []
    for word, places in words.items():
        own = np.concatenate(places)
        rows.append(_row(word, duration[own], self_ns[own]))
    return sorted(rows, key=lambda row: (-row.total_ns, row.key))


def _row(key: str, duration: Times, self_ns: Times) -> AreaRow:
    ended = duration >= 0
    lengths = np.sort(duration[ended])
    count = len(lengths)

    def at(percent: int) -> int:
        return int(lengths[rank_of(percent, count) - 1])

    return AreaRow(
        key=key,
        count=len(duration),
        total_ns=int(lengths.sum()),
        self_ns=int(self_ns[ended].sum()),
        p50_ns=at(50) if count else None,
        p95_ns=at(95) if count >= NEEDED_FOR_P95 else None,
        max_ns=int(lengths[-1]) if count else None,
        open=len(duration) - count,
    )
