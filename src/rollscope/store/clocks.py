"""Clock offsets between the hosts of a run, found from what cannot have happened.

A span cannot start before the span that caused it, and nothing can be consumed before it has ended.
Where the records of two hosts say otherwise, the clock of one of them is off. Each such pair of
records is a bound: this host's clock needs at least so much more than that one's. Only the tightest
bound of each pair of hosts is kept, so this is small however long a run is.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.store.openspan import CAUSE_COLUMNS
from rollscope.store.rawrows import Ids, Indices, find_rows

__all__ = ["ClockBounds", "Links", "Offset", "bound_clocks", "estimate_offsets", "find_links"]

_LEAST_MOVE_NS: Final = 1_000_000
"""Hosts that keep time as well as NTP does are left alone."""
_MOST_LINKS: Final = 1_000
"""Links looked at in one piece of rows; the tightest of so many is tight enough."""

ClockBounds = dict[str, dict[str, int]]
"""Later host to earlier host to by how much, at least, the later one's offset is greater."""


class Offset(msgspec.Struct, frozen=True):
    """By how much the times of a host are moved."""

    offset_ns: int = 0
    error_ns: int | None = 0
    """How wrong that may be; None if records bound it on one side only."""


class Links(msgspec.Struct):
    """Effects and their causes: which process recorded each, and when by its clock."""

    later: Ids
    earlier: Ids
    later_ns: npt.NDArray[np.int64]
    earlier_ns: npt.NDArray[np.int64]


def find_links(
    spans: Iterable[pa.Table], facts: Iterable[pa.Table], host_of: Mapping[int, str]
) -> Iterator[Links]:
    """Find links in rows that came in together; causes and effects usually do.

    Args:
        spans: Rows of `spans`, with `CAUSE_COLUMNS` at least. Those whose `parent_path` is empty
            though they have a parent were caused by another process.
        facts: Rows of `facts`.
        host_of: The host of each process.
    """
    tables = [table.select(CAUSE_COLUMNS) for table in spans if table.num_rows]
    if not tables or len(set(host_of.values())) < 2:
        return
    children = _rows([_caused_elsewhere(table) for table in tables])
    consumptions = _rows([_consumptions(table) for table in facts])
    wanted = np.concatenate((children["parent_id"], consumptions["span_id"]))
    known = _Known(tables, np.unique(wanted))
    for effects, cause_id, time, moment in (
        (children, "parent_id", "start_ns", "start_ns"),
        (consumptions, "span_id", "time_ns", "end_ns"),
    ):
        at = known.find(effects[cause_id])
        linked = at >= 0
        caused_ns = known.rows[moment][at[linked]]
        is_told = caused_ns > 0
        yield Links(
            effects["process"][linked][is_told],
            known.rows["process"][at[linked]][is_told],
            effects[time][linked][is_told],
            caused_ns[is_told],
        )


def bound_clocks(bounds: ClockBounds, links: Links, host_of: Mapping[int, str]) -> None:
    """Keep the tightest bound of each pair of hosts."""
    if not len(links.later):
        return
    both = np.stack((links.later, links.earlier))
    pairs, inverse = np.unique(both, axis=1, return_inverse=True)
    greatest = np.full(pairs.shape[1], np.iinfo(np.int64).min)
    np.maximum.at(greatest, inverse.reshape(-1), links.earlier_ns - links.later_ns)
    for (after, before), bound in zip(pairs.T.tolist(), greatest.tolist(), strict=True):
        _merge_bound(bounds, host_of.get(after, ""), host_of.get(before, ""), bound)


_Columns = dict[str, Any]
"""Columns as numpy arrays."""


def _caused_elsewhere(table: pa.Table) -> pa.Table:
    elsewhere = pc.and_(pc.is_valid(table["parent_id"]), _is_empty(table["parent_path"]))
    return table.filter(elsewhere).slice(0, _MOST_LINKS).drop_columns(["parent_path"])


def _is_empty(words: pa.ChunkedArray) -> pa.ChunkedArray:
    """Say which words are empty, looking for that one word and not at each row's."""
    return pa.chunked_array(
        [pc.equal(chunk.indices, chunk.dictionary.index("")) for chunk in words.chunks], pa.bool_()
    )


def _consumptions(facts: pa.Table) -> pa.Table:
    chosen = facts.select(["span_id", "process", "time_ns", "consumed_step"])
    return chosen.filter(pc.is_valid(chosen["consumed_step"])).slice(0, _MOST_LINKS)


def _rows(tables: list[pa.Table]) -> _Columns:
    if not tables:
        return {name: np.zeros(0, np.uint64) for name in ("span_id", "process", "time_ns")}
    table = pa.concat_tables(tables)
    return {name: pc.fill_null(table[name], 0).to_numpy() for name in table.column_names}


class _Known:
    """Those of many rows that are asked for, by their id."""

    def __init__(self, tables: list[pa.Table], wanted: Ids) -> None:
        kept = [
            table.drop_columns(["parent_path"]).take(_rows_of(table["span_id"].to_numpy(), wanted))
            for table in tables
        ]
        self.rows = _rows(kept)

    def find(self, ids: Ids) -> Indices:
        """Give the row of each id, -1 where it is not known."""
        return find_rows(self.rows["span_id"], ids)


def _rows_of(ids: Ids, wanted: Ids) -> Indices:
    """Find few ids, which are sorted, among many, which are those of a process or of some."""
    low = np.searchsorted(wanted, ids.min())
    found = find_rows(ids, wanted[low : np.searchsorted(wanted, ids.max(), side="right")])
    rows: Indices = np.sort(found[found >= 0])
    return rows


def _merge_bound(bounds: ClockBounds, later: str, earlier: str, least: int) -> None:
    if later != earlier and later and earlier:
        known = bounds.setdefault(later, {})
        known[earlier] = max(known.get(earlier, least), least)


def estimate_offsets(
    bounds: ClockBounds, hosts: Iterable[str], limits: Mapping[str, int] | None = None
) -> dict[str, Offset]:
    """Estimate how far each host's times have to be moved, the first host's staying.

    Args:
        bounds: What is known of pairs of hosts.
        hosts: All hosts; the clock of the first one is the run's.
        limits: Hosts whose clocks are corrected already, and by how much they may at most be moved
            beyond that. They are moved no further than is needed.
    """
    names = list(dict.fromkeys(hosts))
    if not bounds or len(names) < 2:
        return {}
    reference = names[0]
    limits = limits or {}
    known: ClockBounds = {later: dict(befores) for later, befores in bounds.items()}
    for host, limit in limits.items():
        _merge_bound(known, host, reference, -limit)
        _merge_bound(known, reference, host, -limit)
    lowest = _farthest(known, reference, names)
    reverse: ClockBounds = {}
    for later, befores in known.items():
        for earlier, least in befores.items():
            reverse.setdefault(earlier, {})[later] = least
    highest = {host: -low for host, low in _farthest(reverse, reference, names).items()}
    offsets = {}
    for host in names[1:]:
        low, high = lowest.get(host), highest.get(host)
        offset = _between(low, high) if host not in limits else _nearest(low, high, limits[host])
        if abs(offset.offset_ns) >= _LEAST_MOVE_NS or (host in limits and offset.offset_ns):
            offsets[host] = offset
    return offsets


def _farthest(bounds: ClockBounds, reference: str, names: list[str]) -> dict[str, int]:
    """Give the tightest bound of each host against the reference, through any others."""
    reached = {reference: 0}
    for _ in names:  # bounds that contradict each other would go round for ever
        changed = False
        for later, befores in bounds.items():
            for earlier, least in befores.items():
                if earlier in reached and later != reference:
                    bound = reached[earlier] + least
                    if bound > reached.get(later, bound - 1):
                        reached[later] = bound
                        changed = True
        if not changed:
            break
    return reached


def _between(low: int | None, high: int | None) -> Offset:
    if low is not None and high is not None:
        if low <= 0 <= high:
            return Offset()
        return Offset((low + high) // 2, abs(high - low) // 2)
    if low is not None and low > 0:
        return Offset(low, None)
    if high is not None and high < 0:
        return Offset(high, None)
    return Offset()


def _nearest(low: int | None, high: int | None, limit: int) -> Offset:
    """Give the least move that bounds ask for; their middle where they contradict each other."""
    low, high = (-limit if low is None else low), (limit if high is None else high)
    offset = (low + high) // 2 if low > high else max(low, 0) or min(high, 0)
    return Offset(max(-limit, min(limit, offset)), None)
