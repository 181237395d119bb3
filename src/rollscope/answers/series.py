"""Recorded metrics: which there are, and one of them over time or from step to step."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rollscope.analysis.wording import say_names
from rollscope.answers.serieslines import SeriesLine, make_lines
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


class Series(msgspec.Struct, kw_only=True):
    """One metric along an axis."""

    name: str
    type: str
    """Of the first line, if it is recorded as several."""
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
        axis: Over time, or by the step that its process was in; where that was in none, by the
            step that had begun last.
        points: How many stretches of time there are at most.
        since_ns: Only from then on.
        until_ns: Only until then.

    Raises:
        CommandError: There is no such metric.
    """
    conditions, values = ["m.name = $name"], _bounds(since_ns, until_ns)
    conditions += [f"m.time_ns {'>=' if key == 'since' else '<='} ${key}" for key in values]
    sql = f"""
        SELECT m.labels AS labels, m.type AS type, m.time_ns AS time_ns, m.value AS value,
            m.count AS count, m.min AS min, m.max AS max, m.step AS step,
            CASE WHEN m.type = 'histogram' THEN m.buckets ELSE NULL END AS buckets,
            p.role AS role, p.rank AS rank
        FROM metrics AS m LEFT JOIN processes AS p ON m.process = p.process
        WHERE {" AND ".join(conditions)}"""
    rows = source.query(sql, name=name, **values)
    if not len(rows):
        _check_name(source, name)
    width_ns: int | None = None
    if axis == "step":
        starts, positions = _steps(source)
        places = _step_places(rows, starts, positions)
    else:
        starts, width_ns = _stretches(rows["time_ns"], points)
        positions, places = starts, _time_places(rows, starts)
    lines = make_lines(rows, places, len(positions))
    return Series(
        name=name,
        type=lines[0].type if lines else "",
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
    low, high = pc.min(times).as_py(), pc.max(times).as_py()
    width = max(-(-(high - low + 1) // points), _LEAST_WIDTH_NS)
    return list(range(low, high + 1, width)), width


def _time_places(rows: pa.Table, starts: Sequence[int]) -> npt.NDArray[np.int64]:
    """Find the stretch that had begun last when each row was recorded."""
    found = np.searchsorted(np.array(starts, np.int64), rows["time_ns"].to_numpy(), "right")
    return np.asarray(found, np.int64) - 1


def _step_places(
    rows: pa.Table, starts: Sequence[int], steps: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Find the step that each row names, or else that had begun last."""
    named = pc.index_in(rows["step"], pa.array(steps, pa.int64()))
    places = pc.coalesce(named.cast(pa.int64()), pa.array(_time_places(rows, starts)))
    return np.asarray(places.to_numpy(), np.int64)
