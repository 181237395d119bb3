"""How many sessions fit: the slots that pools declare, and the most that were ever seen."""

from typing import Final
from weakref import WeakKeyDictionary

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.answers.sharing import shared
from rollscope.answers.source import Source
from rollscope.store.dialect import Value

__all__ = [
    "SLOTS_GAUGE",
    "Declaration",
    "declarations",
    "declared_slots",
    "known_capacity",
    "most_at_once",
    "most_overlapping",
]

SLOTS_GAUGE: Final = "slots"
"""The gauge with which a pool declares its slots, its label `pool` naming the pool."""
_MOST_FOR_CAPACITY: Final = 100_000
"""Sessions that are looked at to find the most that ever ran at once."""
_SLACK_NS: Final = 300 * 1_000_000_000
"""How late the end of a session may be heard of, and by how much clocks may be off."""

_known: WeakKeyDictionary[Source, tuple[int, dict[str, int]]] = WeakKeyDictionary()
"""What is known of a run, and from when on sessions have to be looked at again."""


class Declaration(msgspec.Struct, frozen=True):
    """What a process last said of the slots of a pool."""

    process: int
    pool: str
    slots: int


def declarations(source: Source) -> list[Declaration]:
    """Give the latest declaration of each pool and set of labels."""
    return shared(source, "declarations", lambda: _declarations(source))


def _declarations(source: Source) -> list[Declaration]:
    latest = [source.dialect.arg_max(one, "time_ns", "process") for one in ("value", "process")]
    sql = f"""
        SELECT labels, {latest[0]} AS slots, {latest[1]} AS process FROM metrics
        WHERE name = $name GROUP BY labels ORDER BY labels"""
    found = []
    for row in source.query(sql, name=SLOTS_GAUGE).to_pylist():
        labels = msgspec.json.decode(row["labels"], type=dict[str, str])
        if row["slots"] is not None and "pool" in labels:
            found.append(Declaration(row["process"], labels["pool"], int(row["slots"])))
    return found


def declared_slots(source: Source) -> dict[str, int]:
    """Give the slots that pools declare."""
    slots: dict[str, int] = {}
    for one in declarations(source):
        slots[one.pool] = slots.get(one.pool, 0) + one.slots
    return slots


def most_at_once(source: Source) -> dict[str, int]:
    """Give the most sessions that ever ran at once, by pool.

    While a run stays open, only the sessions that came or went since the last time are looked at:
    those that were over by then overlap with nothing that starts later.
    """
    return shared(source, "most at once", lambda: _most_at_once(source))


def _most_at_once(source: Source) -> dict[str, int]:
    until_ns, known = _known.get(source, (None, {}))
    found = _most_since(source, until_ns)
    most = {pool: max(known.get(pool, 0), found.get(pool, 0)) for pool in {**known, **found}}
    # By the clocks of the processes, which need not be that of whoever reads.
    seen = source.query("SELECT max(last_seen_ns) AS seen FROM processes")["seen"][0].as_py()
    _known[source] = (seen or 0) - _SLACK_NS, most
    return most


def _most_since(source: Source, since_ns: int | None) -> dict[str, int]:
    values: dict[str, Value] = {} if since_ns is None else {"since": since_ns}
    is_new = "TRUE" if since_ns is None else "(s.end_ns IS NULL OR s.recorded_end_ns >= $since)"
    sql = f"""
        SELECT coalesce(s.replica, w.title, '') AS pool, s.start_ns AS start_ns, s.end_ns AS end_ns
        FROM spans AS s LEFT JOIN processes AS w ON s.process = w.process
        WHERE s.kind = 'session' AND {is_new} ORDER BY start_ns DESC
        LIMIT {_MOST_FOR_CAPACITY}"""
    recent = source.query(sql, **values)
    pools = recent["pool"].combine_chunks().dictionary_encode()
    numbers = pools.indices.to_numpy()
    most = {}
    for number, pool in enumerate(pools.dictionary.to_pylist()):
        own = recent.filter(pa.array(numbers == number))
        ends = own["end_ns"].drop_null().to_numpy()
        most[pool] = most_overlapping(own["start_ns"].to_numpy(), ends)
    return most


def most_overlapping(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> int:
    """Count those that have started and not ended, at each start; what ends just then is over."""
    starts, ends = np.sort(starts), np.sort(ends)
    running = np.arange(1, len(starts) + 1) - np.searchsorted(ends, starts, side="right")
    return int(running.max())


def known_capacity(source: Source) -> tuple[int | None, bool]:
    """Give how many sessions fit over all pools, and whether any of it is assumed.

    Of a pool that declares nothing the most sessions that ever ran at once count.
    """
    declared, seen = declared_slots(source), most_at_once(source)
    pools = {*declared, *seen}
    if not pools:
        return None, False
    return sum(declared.get(pool, seen.get(pool, 0)) for pool in pools), not pools <= {*declared}
