"""Clock offsets between the hosts of a run, found from what cannot have happened.

A span cannot start before the span that caused it, and nothing can be consumed before it has ended.
Where the records of two hosts say otherwise, the clock of one of them is off. Each such pair of
records is a bound: this host's clock needs at least so much more than that one's. Only the tightest
bound of each pair of hosts is kept, so this is small however long a run is.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.store.rawrows import Ids, find_rows

__all__ = ["ClockBounds", "Offset", "estimate_offsets", "find_bounds", "merge_bound"]

_LEAST_MOVE_NS: Final = 1_000_000
"""Hosts that keep time as well as NTP does are left alone."""
_MOST_LINKS: Final = 50_000
"""Links looked at in one go; the tightest of so many is tight enough."""

ClockBounds = dict[str, dict[str, int]]
"""Later host to earlier host to by how much, at least, the later one's offset is greater."""


class Offset(msgspec.Struct, frozen=True):
    """By how much the times of a host are moved."""

    offset_ns: int = 0
    error_ns: int | None = 0
    """How wrong that may be; None if records bound it on one side only."""


def find_bounds(
    spans: Iterable[pa.Table], facts: Iterable[pa.Table], host_of: Mapping[int, str]
) -> ClockBounds:
    """Find bounds in rows that came in together; causes and effects usually do."""
    tables = [table for table in spans if table.num_rows]
    if not tables or len(set(host_of.values())) < 2:
        return {}
    columns = ["span_id", "parent_id", "process", "start_ns", "end_ns"]
    rows = pa.concat_tables([table.select(columns) for table in tables])
    ids = rows["span_id"].to_numpy()
    process = rows["process"].to_numpy()
    start = rows["start_ns"].to_numpy()
    bounds: ClockBounds = {}
    parents = pc.fill_null(rows["parent_id"], 0).to_numpy()
    at = find_rows(ids, parents)
    linked = np.nonzero((at >= 0) & (process != process[np.maximum(at, 0)]))[0][:_MOST_LINKS]
    cause = at[linked]
    _tighten(bounds, host_of, process[linked], process[cause], start[cause] - start[linked])
    ends = pc.fill_null(rows["end_ns"], 0).to_numpy()
    for table in facts:
        _consumptions(bounds, host_of, table, ids, process, ends)
    return bounds


def _consumptions(
    bounds: ClockBounds,
    host_of: Mapping[int, str],
    facts: pa.Table,
    ids: Ids,
    process: Ids,
    ends: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
) -> None:
    consumed = facts.filter(pc.is_valid(facts["consumed_step"])).slice(0, _MOST_LINKS)
    if not consumed.num_rows:
        return
    at = find_rows(ids, consumed["span_id"].to_numpy())
    known = np.nonzero((at >= 0) & (ends[np.maximum(at, 0)] > 0))[0]
    of = at[known]
    times = consumed["time_ns"].to_numpy()[known]
    by = consumed["process"].to_numpy()[known]
    _tighten(bounds, host_of, by, process[of], ends[of] - times)


def _tighten(
    bounds: ClockBounds,
    host_of: Mapping[int, str],
    later: Ids,
    earlier: Ids,
    least: "np.ndarray[tuple[int, ...], np.dtype[np.int64]]",
) -> None:
    """Keep the greatest bound of each pair of hosts."""
    if not len(later):
        return
    pairs, inverse = np.unique(np.stack((later, earlier)), axis=1, return_inverse=True)
    greatest = np.full(pairs.shape[1], np.iinfo(np.int64).min)
    np.maximum.at(greatest, inverse.reshape(-1), least)
    for (after, before), bound in zip(pairs.T.tolist(), greatest.tolist(), strict=True):
        merge_bound(bounds, host_of.get(after, ""), host_of.get(before, ""), bound)


def merge_bound(bounds: ClockBounds, later: str, earlier: str, least: int) -> None:
    """Keep a bound if it is tighter than the one known."""
    if later != earlier and later and earlier:
        known = bounds.setdefault(later, {})
        known[earlier] = max(known.get(earlier, least), least)


def estimate_offsets(bounds: ClockBounds, hosts: Iterable[str]) -> dict[str, Offset]:
    """Estimate how far each host's times have to be moved, the first host's staying.

    Args:
        bounds: What is known of pairs of hosts.
        hosts: All hosts; the clock of the first one is the run's.
    """
    names = list(dict.fromkeys(hosts))
    if not bounds or len(names) < 2:
        return {}
    reference = names[0]
    lowest = _farthest(bounds, reference, names)
    reverse: ClockBounds = {}
    for later, befores in bounds.items():
        for earlier, least in befores.items():
            reverse.setdefault(earlier, {})[later] = least
    highest = {host: -low for host, low in _farthest(reverse, reference, names).items()}
    offsets = {}
    for host in names[1:]:
        offset = _between(lowest.get(host), highest.get(host))
        if abs(offset.offset_ns) >= _LEAST_MOVE_NS:
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
