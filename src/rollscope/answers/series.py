"""Recorded metrics: which there are, and one of them over time or from step to step."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa

from rollscope.analysis.wording import say_names
from rollscope.answers.source import Source, fetch
from rollscope.errors import CommandError
from rollscope.store.dialect import Value

__all__ = ["Axis", "MetricLine", "Metrics", "Series", "SeriesLine", "list_metrics", "series"]

Axis = Literal["time", "step"]

_MOST_LINES: Final = 12
_LEAST_WIDTH_NS: Final = 1_000_000


class MetricLine(msgspec.Struct, kw_only=True):
    """One metric."""

    name: str
    type: str
    """`counter`, `gauge` or `histogram`."""
    label_sets: int
    """How many different labels it has."""
    points: int
    first_ns: int
    last_ns: int
    last: float | None
    """What it was told last, of a gauge."""


class Metrics(msgspec.Struct, kw_only=True):
    """The metrics of a run, by name."""

    metrics: list[MetricLine]


class SeriesLine(msgspec.Struct, kw_only=True):
    """One metric with one set of labels."""

    labels: dict[str, str]
    values: list[float | None]
    """One for each position: a gauge's mean, a counter's sum, a histogram's mean; None where
    nothing was recorded."""
    lows: list[float | None]
    """The least within each position; of a counter, nothing."""
    highs: list[float | None]


class Series(msgspec.Struct, kw_only=True):
    """One metric along an axis."""

    name: str
    type: str
    axis: str
    """`time` or `step`."""
    positions: list[int]
    """Steps, or the moments that stretches of time begin at."""
    width_ns: int | None
    """How long each stretch of time is."""
    lines: list[SeriesLine]
    left_out: int
    """Sets of labels beyond the first few."""


def list_metrics(source: Source) -> Metrics:
    """List the metrics of a run."""
    last = source.dialect.arg_max("value", "time_ns", "process")
    sql = f"""
        SELECT name, type, count(DISTINCT labels) AS label_sets, count(*) AS points,
            min(time_ns) AS first_ns, max(time_ns) AS last_ns,
            CASE WHEN type = 'gauge' THEN {last} ELSE NULL END AS last
        FROM metrics GROUP BY name, type ORDER BY name, type"""
    return Metrics(metrics=fetch(source, MetricLine, sql))


def series(
    source: Source,
    name: str,
    axis: Axis = "time",
    *,
    points: int = 300,
    since_ns: int | None = None,
    until_ns: int | None = None,
) -> Series:
    """Give one metric along an axis.

    Args:
        source: The run.
        name: The metric.
        axis: Over time, or by the step during which it was recorded.
        points: How many stretches of time there are at most.
        since_ns: Only from then on.
        until_ns: Only until then.

    Raises:
        CommandError: There is no such metric.
    """
    conditions, values = ["name = $name"], _bounds(since_ns, until_ns)
    conditions += [f"time_ns {'>=' if key == 'since' else '<='} ${key}" for key in values]
    sql = f"""
        SELECT labels, type, time_ns, value, count, min, max FROM metrics
        WHERE {" AND ".join(conditions)}"""
    rows = source.query(sql, name=name, **values)
    if not len(rows):
        _check_name(source, name)
    if axis == "step":
        starts, positions, width_ns = *_steps(source), None
    else:
        starts, width_ns = _stretches(rows["time_ns"], points)
        positions = starts
    lines = _lines(rows, starts)
    return Series(
        name=name,
        type=rows["type"][0].as_py() if len(rows) else "",
        axis=axis,
        positions=positions,
        width_ns=width_ns,
        lines=lines[:_MOST_LINES],
        left_out=max(len(lines) - _MOST_LINES, 0),
    )


def _bounds(since_ns: int | None, until_ns: int | None) -> dict[str, Value]:
    bounds = {"since": since_ns, "until": until_ns}
    return {name: value for name, value in bounds.items() if value is not None}


def _check_name(source: Source, name: str) -> None:
    known = [line.name for line in list_metrics(source).metrics]
    if name not in known:
        listed = say_names(known, 8) if known else "none"
        raise CommandError(f"the run records no metric {name!r}; it records {listed}")


def _steps(source: Source) -> tuple[list[int], list[int]]:
    """Give when each step began, and its number; it lasts until the next one begins."""
    sql = """
        SELECT step, min(start_ns) AS start_ns FROM steps WHERE step IS NOT NULL
        GROUP BY step ORDER BY start_ns, step"""
    rows = source.query(sql)
    return rows["start_ns"].to_pylist(), rows["step"].to_pylist()


def _stretches(times: pa.ChunkedArray, points: int) -> tuple[list[int], int]:
    """Cut the time that was recorded into equal stretches of at least a millisecond."""
    if not len(times):
        return [], _LEAST_WIDTH_NS
    low, high = pa.compute.min(times).as_py(), pa.compute.max(times).as_py()
    width = max(-(-(high - low + 1) // points), _LEAST_WIDTH_NS)
    return list(range(low, high + 1, width)), width


def _lines(rows: pa.Table, starts: Sequence[int]) -> list[SeriesLine]:
    """Put what was recorded into the stretch that had begun last, and add it up there."""
    places = np.searchsorted(np.array(starts, np.int64), rows["time_ns"].to_numpy(), "right") - 1
    placed = rows.append_column("place", pa.array(places)).filter(pa.array(places >= 0))
    cells = placed.group_by(["labels", "type", "place"]).aggregate(
        [
            *(("value", how) for how in ("sum", "count", "min", "max")),
            ("count", "sum"),
            ("min", "min"),
            ("max", "max"),
        ]
    )
    lines: dict[str, SeriesLine] = {}
    for cell in cells.to_pylist():
        if cell["labels"] not in lines:
            labels = msgspec.json.decode(cell["labels"], type=dict[str, str])
            empty = [None] * len(starts)
            line = SeriesLine(labels=labels, values=[*empty], lows=[*empty], highs=[*empty])
            lines[cell["labels"]] = line
        _fill(lines[cell["labels"]], cell)
    return [line for _, line in sorted(lines.items())]


def _fill(line: SeriesLine, cell: Mapping[str, Any]) -> None:
    """Write one position of a line, from what was added up there."""
    place, total, count = cell["place"], cell["value_sum"], cell["value_count"]
    if not count:
        return
    match cell["type"]:
        case "counter":
            line.values[place] = total
        case "histogram":
            line.values[place] = total / (cell["count_sum"] or 1)
            line.lows[place], line.highs[place] = cell["min_min"], cell["max_max"]
        case _:
            line.values[place] = total / count
            line.lows[place], line.highs[place] = cell["value_min"], cell["value_max"]
