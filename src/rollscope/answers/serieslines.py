"""The lines of a metric: what was recorded, put into positions along an axis and added up there.

Processes that recorded the same labels make one line. Gauges of different roles or ranks are kept
apart: what two of them stand at makes no sum.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.metrics.buckets import bucket_rank
from rollscope.model.kinds import MetricType

__all__ = ["SeriesLine", "make_lines"]

_LINE: Final = ("type", "labels", "role", "rank")
"""What tells lines apart."""
_MOST_READ: Final = 200_000
"""Histograms beyond this are not read: it would take longer than the rest of the answer."""
_buckets: Final = msgspec.json.Decoder(dict[int, int])

_LineKey = tuple[str, str, str | None, int | None]


class SeriesLine(msgspec.Struct, kw_only=True):
    """One metric with one set of labels."""

    labels: dict[str, str]
    """Where a gauge comes from several roles or ranks, these are among them."""
    type: str
    """`counter`, `gauge` or `histogram`."""
    values: list[float | None]
    """One for each position: a gauge's mean, a counter's sum, a histogram's mean; None where
    nothing was recorded."""
    lows: list[float | None]
    """The least within each position; of a counter, nothing."""
    highs: list[float | None]
    p50: list[float | None]
    """Of a histogram, the value that half of those in each position do not exceed, within 5 %;
    empty for others, and where there are too many records to read."""
    p95: list[float | None]


def make_lines(rows: pa.Table, places: npt.NDArray[np.int64], size: int) -> list[SeriesLine]:
    """Add up what was recorded.

    Args:
        rows: Of the view `metrics`, with the role and rank of their process.
        places: The position of each; below 0 for none.
        size: How many positions there are.
    """
    placed = _with_origin(rows).append_column("place", pa.array(places))
    placed = placed.filter(pa.array(places >= 0))
    cells = placed.group_by([*_LINE, "place"]).aggregate(
        [
            *(("value", how) for how in ("sum", "count")),
            ("count", "sum"),
            ("min", "min"),
            ("max", "max"),
        ]
    )
    lines: dict[_LineKey, SeriesLine] = {}
    for cell in cells.to_pylist():
        key = _key_of(cell)
        if key not in lines:
            lines[key] = _empty_line(key, size)
        _fill(lines[key], cell)
    for key, place, buckets in _histograms(placed):
        line = lines[key]
        line.p50 = line.p50 or [None] * size
        line.p95 = line.p95 or [None] * size
        line.p50[place], line.p95[place] = bucket_rank(buckets, 50), bucket_rank(buckets, 95)
    return [line for _, line in sorted(lines.items(), key=lambda item: _order(item[0]))]


def _with_origin(rows: pa.Table) -> pa.Table:
    """Keep role and rank of gauges only, and only where they differ; and a gauge's extremes."""
    is_gauge = pc.equal(rows["type"].cast(pa.string()), str(MetricType.GAUGE))
    origins = set(
        zip(
            rows["role"].filter(is_gauge).to_pylist(),
            rows["rank"].filter(is_gauge).to_pylist(),
            strict=True,
        )
    )
    is_apart = pc.and_(is_gauge, len(origins) > 1)
    changed = {
        "role": pc.if_else(is_apart, rows["role"].cast(pa.string()), pa.scalar(None, pa.string())),
        "rank": pc.if_else(is_apart, rows["rank"], pa.scalar(None, pa.int64())),
        # Older records of gauges have none of their own.
        "min": pc.if_else(is_gauge, pc.coalesce(rows["min"], rows["value"]), rows["min"]),
        "max": pc.if_else(is_gauge, pc.coalesce(rows["max"], rows["value"]), rows["max"]),
    }
    for name, column in changed.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _key_of(row: Mapping[str, Any]) -> _LineKey:
    return row["type"], row["labels"], row["role"], row["rank"]


def _order(key: _LineKey) -> tuple[str, str, str, int]:
    type_, labels, role, rank = key
    return labels, type_, role or "", -1 if rank is None else rank


def _empty_line(key: _LineKey, size: int) -> SeriesLine:
    type_, text, role, rank = key
    origin = {} if role is None else {"role": role, "rank": "" if rank is None else str(rank)}
    return SeriesLine(
        labels=origin | msgspec.json.decode(text, type=dict[str, str]),
        type=type_,
        values=[None] * size,
        lows=[None] * size,
        highs=[None] * size,
        p50=[],
        p95=[],
    )


def _fill(line: SeriesLine, cell: Mapping[str, Any]) -> None:
    """Write one position of a line, from what was added up there."""
    place, total, count = cell["place"], cell["value_sum"], cell["value_count"]
    if not count:
        return
    match cell["type"]:
        case MetricType.COUNTER:
            line.values[place] = total
            return
        case MetricType.HISTOGRAM:
            line.values[place] = total / (cell["count_sum"] or 1)
        case _:
            line.values[place] = total / count
    line.lows[place], line.highs[place] = cell["min_min"], cell["max_max"]


def _histograms(placed: pa.Table) -> Iterator[tuple[_LineKey, int, Counter[int]]]:
    """Give the buckets of each position of each line, added up."""
    chosen = placed.filter(pc.is_valid(placed["buckets"]))
    if len(chosen) > _MOST_READ:
        return
    found: dict[tuple[_LineKey, int], Counter[int]] = {}
    for row in chosen.select([*_LINE, "place", "buckets"]).to_pylist():
        found.setdefault((_key_of(row), row["place"]), Counter()).update(
            _buckets.decode(row["buckets"])
        )
    for (key, place), buckets in found.items():
        yield key, place, buckets
