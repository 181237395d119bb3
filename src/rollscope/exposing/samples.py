"""What recorded metrics add up to, by name and labels as they were recorded.

Counters and histograms come as what each process added since its last record, gauges as their last
value. Buckets are joined into one for each doubling, which never change whatever comes.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.exposing.columns import Codes, Numbers, numbers, times
from rollscope.metrics.buckets import ZERO_BUCKET
from rollscope.store.corrections import Corrections

__all__ = ["METRIC_COLUMNS", "USER_BOUNDS", "GaugeReading", "Recorded", "Samples", "Series"]

METRIC_COLUMNS: Final = (
    *("process", "type", "name", "labels", "time_ns", "value", "count", "buckets"),
)
_LOWEST: Final = -20
_HIGHEST: Final = 14
USER_BOUNDS: Final = tuple(2.0**power for power in range(_LOWEST, _HIGHEST + 1))
"""From a microsecond to four and a half hours, if seconds are what is recorded."""
_WIDTH: Final = len(USER_BOUNDS) + 1
_PER_DOUBLING: Final = 8


class Series(NamedTuple):
    """One metric with one set of labels."""

    type: str
    name: str
    labels: str
    """JSON, by name."""


class Recorded(msgspec.Struct):
    """What a counter or histogram has come to, over all processes."""

    first_ns: int
    total: float = 0.0
    calls: int = 0
    counts: list[int] = []
    """Of a histogram."""

    def joined(self, other: "Recorded") -> "Recorded":
        """Give both together."""
        counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        first_ns = min(self.first_ns, other.first_ns)
        return Recorded(first_ns, self.total + other.total, self.calls + other.calls, counts)


class GaugeReading(NamedTuple):
    """What a gauge was told last by one process."""

    at_ns: int
    value: float
    calls: int
    first_ns: int


class Samples:
    """Metrics of a run, added up."""

    def __init__(self) -> None:
        self.added: dict[Series, Recorded] = {}
        self.gauges: dict[tuple[int, Series], GaugeReading] = {}

    def copy(self) -> "Samples":
        """Give them once more, to be added to apart."""
        copied = Samples()
        copied.added, copied.gauges = dict(self.added), dict(self.gauges)
        return copied

    def add(self, rows: pa.Table, corrections: Corrections, scrapers: Sequence[int] = ()) -> None:
        """Add rows of the table `metrics`.

        Args:
            rows: The rows.
            corrections: How the times of processes are moved.
            scrapers: Processes whose counters and histograms are not the program's.
        """
        types = rows["type"].cast(pa.string())
        is_scraped = pc.is_in(rows["process"], pa.array(scrapers, pa.uint64()))
        for kind in ("counter", "histogram"):
            chosen = rows.filter(pc.and_not(pc.equal(types, kind), is_scraped))
            if chosen.num_rows:
                self._add_sums(kind, chosen, corrections)
        gauges = rows.filter(pc.equal(types, "gauge"))
        if gauges.num_rows:
            self._add_gauges(gauges, corrections)

    def _add_sums(self, kind: str, rows: pa.Table, corrections: Corrections) -> None:
        keys, codes = _series(kind, rows)
        size = len(keys)
        values = pc.fill_null(rows["value"], 0.0).to_numpy()
        totals = np.bincount(codes, np.where(np.isfinite(values), values, 0.0), size)
        calls = np.bincount(codes, numbers(rows, "count"), size)
        first = _firsts(codes, times(rows, "time_ns", corrections), size)
        counts = _bucket_counts(rows, codes, size) if kind == "histogram" else None
        for place, key in enumerate(keys):
            own = [] if counts is None else counts[place].tolist()
            new = Recorded(int(first[place]), float(totals[place]), int(calls[place]), own)
            known = self.added.get(key)
            self.added[key] = new if known is None else known.joined(new)

    def _add_gauges(self, rows: pa.Table, corrections: Corrections) -> None:
        keys, codes = _series("gauge", rows)
        at = times(rows, "time_ns", corrections)
        values = rows["value"].to_pylist()
        processes: Numbers = rows["process"].to_numpy()
        calls = numbers(rows, "count")
        used, whose = np.unique(processes, return_inverse=True)
        cells = codes * len(used) + whose
        order = np.argsort(at, kind="stable")
        last = np.full(len(keys) * len(used), -1)
        last[cells[order]] = order
        told = np.bincount(cells, calls, len(last))
        first = _firsts(cells, at, len(last))
        for cell in np.flatnonzero(last >= 0).tolist():
            row = int(last[cell])
            if values[row] is None:
                continue
            place = int(used[cell % len(used)]), keys[cell // len(used)]
            known = self.gauges.get(place)
            new = GaugeReading(int(at[row]), values[row], int(told[cell]), int(first[cell]))
            self.gauges[place] = new if known is None else _later(known, new)


def _later(known: GaugeReading, new: GaugeReading) -> GaugeReading:
    latest = new if new.at_ns >= known.at_ns else known
    first_ns = min(known.first_ns, new.first_ns)
    return latest._replace(calls=known.calls + new.calls, first_ns=first_ns)


def _series(kind: str, rows: pa.Table) -> tuple[list[Series], Codes]:
    names = rows["name"].combine_chunks()
    labels = rows["labels"].combine_chunks().dictionary_encode()
    width = max(len(labels.dictionary), 1)
    both = names.indices.to_numpy().astype(np.int64) * width + labels.indices.to_numpy()
    used, codes = np.unique(both, return_inverse=True)
    name_of, labels_of = names.dictionary.to_pylist(), labels.dictionary.to_pylist()
    keys = [Series(kind, name_of[u // width], labels_of[u % width]) for u in used.tolist()]
    return keys, codes


def _firsts(codes: Codes, at: Numbers, size: int) -> Numbers:
    first = np.full(size, np.iinfo(np.int64).max)
    np.minimum.at(first, codes, at)
    return first


def _bucket_counts(rows: pa.Table, codes: Codes, size: int) -> Numbers:
    """Read buckets out of their JSON, all rows at once: a run records them every second."""
    texts = pc.utf8_trim(rows["buckets"].combine_chunks(), "{}")
    pairs = pc.split_pattern(texts, ",")
    flat, parents = pc.list_flatten(pairs), pc.list_parent_indices(pairs).to_numpy()
    is_pair = pc.match_substring(flat, ":")
    flat, parents = flat.filter(is_pair), parents[is_pair.to_numpy(zero_copy_only=False)]
    halves = pc.split_pattern(flat, ":", max_splits=1)
    buckets = pc.utf8_trim(pc.list_element(halves, 0), '"').cast(pa.int64()).to_numpy()
    counts = pc.list_element(halves, 1).cast(pa.int64()).to_numpy()
    places = np.clip(-(-buckets // _PER_DOUBLING) - _LOWEST, 0, _WIDTH - 1)
    places[buckets == ZERO_BUCKET] = 0
    cells = codes[parents] * _WIDTH + places
    counted: Numbers = np.bincount(cells, counts, size * _WIDTH).astype(np.int64)
    return counted.reshape(size, _WIDTH)
