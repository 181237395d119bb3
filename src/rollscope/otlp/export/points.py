"""Samples of metrics as points of OpenTelemetry.

A run keeps what counters and histograms grew by; the world wants to know what they have come to.
Series of different processes stay apart, since each process is a resource of its own.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from rollscope.model.kinds import MetricType
from rollscope.otlp.export.position import SeriesState
from rollscope.otlp.export.resources import Resources
from rollscope.otlp.forms import PointForm

__all__ = ["PointMaker"]

_read_labels = msgspec.json.Decoder(dict[str, Any]).decode
_read_buckets = msgspec.json.Decoder(dict[int, int], strict=False).decode
_START_BEFORE_NS: Final = 1
"""A series starts before its first point: at the same time it would say that nothing was seen."""


class PointMaker:
    """Makes points of samples, in the order of their times."""

    def __init__(self, resources: Resources, series: dict[str, SeriesState]) -> None:
        """Make ready.

        Args:
            resources: Who the points are of.
            series: What each series has come to; changed as points are made.
        """
        self._resources = resources
        self._series = series

    def make(self, rows: Iterable[Mapping[str, Any]]) -> list[PointForm]:
        """Make a point of each sample."""
        return [self._make(row) for row in rows]

    def _make(self, row: Mapping[str, Any]) -> PointForm:
        kind, time_ns = MetricType(row["type"]), row["time_ns"]
        labels = {key: str(value) for key, value in _read_labels(row["labels"] or "{}").items()}
        form = PointForm(
            sender=self._resources.of(row["process"]),
            type=kind,
            name=row["name"],
            labels=labels,
            time_ns=time_ns,
            start_ns=0,
            value=row["value"] or 0.0,
        )
        if kind is MetricType.GAUGE:
            return form
        key = f"{row['process']:016x} {kind} {row['name']} {row['labels']}"
        state = self._series.get(key)
        if state is None:
            state = self._series[key] = SeriesState(time_ns - _START_BEFORE_NS)
        _add(state, row)
        form.start_ns, form.value, form.count = state.start_ns, state.value, state.count
        form.min, form.max, form.buckets = state.min, state.max, dict(state.buckets)
        return form


def _add(state: SeriesState, row: Mapping[str, Any]) -> None:
    state.value += row["value"] or 0.0
    state.count += row["count"] or 0
    for bucket, count in _read_buckets(row["buckets"] or "{}").items():
        state.buckets[bucket] = state.buckets.get(bucket, 0) + count
    for name, pick in (("min", min), ("max", max)):
        known = [one for one in (getattr(state, name), row[name]) if one is not None]
        setattr(state, name, pick(known, default=None))
