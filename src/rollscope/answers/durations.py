"""How long the sessions and phases of a scope took: as heat map, histograms and points."""

from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.analysis.bins import count_grid, count_lengths, even_edges, length_edges
from rollscope.answers.chosen import choose
from rollscope.answers.phases import in_scope
from rollscope.answers.points import LengthLine, Points, fetch_points, length_lines, to_points
from rollscope.answers.scope import StepScope
from rollscope.answers.source import Source

__all__ = ["Durations", "HeatMap", "LengthHistogram", "durations"]

_COLUMNS: Final = 60
_SESSION: Final = "session"


class HeatMap(msgspec.Struct, kw_only=True):
    """How many sessions started when and ran how long; open and lost ones are left out."""

    start_edges_ns: list[int]
    length_edges_ns: list[int]
    counts: list[list[int]]
    """A list for each bin of lengths, the shortest first, of counts by start."""
    flagged: list[list[int]]
    """How many of them went wrong."""


class LengthHistogram(msgspec.Struct, kw_only=True):
    """Lengths of one phase, or of whole sessions, in the bins that all share."""

    name: str
    """A phase, or `session`."""
    count: int
    total_ns: int
    counts: list[int]


class Durations(msgspec.Struct, kw_only=True):
    """Lengths of a scope's sessions and of their phases."""

    scope: str
    heat: HeatMap
    length_edges_ns: list[int]
    """Of the histograms: logarithmic, eight bins to a decade."""
    histograms: list[LengthHistogram]
    """Sessions first, then phases by total time, the most first."""
    points: Points
    lines: list[LengthLine]
    """p50, p95 and p99 of the sessions, as far as there are enough."""


def durations(source: Source, scope: StepScope, filter_text: str = "") -> Durations:
    """Tell how long sessions and phases took.

    Args:
        source: The run.
        scope: Which steps' sessions.
        filter_text: Which of them, in the filter language. Histograms of phases are of all.

    Raises:
        FilterError: The filter cannot be read.
    """
    table = fetch_points(source, choose(source, scope, filter_text))
    is_measured = table["is_measured"].to_numpy().astype(bool)
    starts = table["start_ns"].to_numpy().astype(np.int64)[is_measured]
    lengths = table["ran_ns"].to_numpy().astype(np.int64)[is_measured]
    flagged = table["is_flagged"].to_numpy().astype(bool)[is_measured]
    by_name = {_SESSION: lengths, **_phase_lengths(source, scope)}
    edges = length_edges(np.concatenate(list(by_name.values())))
    return Durations(
        scope=scope.text,
        heat=_heat_map(starts, lengths, flagged),
        length_edges_ns=edges,
        histograms=[_histogram(name, values, edges) for name, values in by_name.items()],
        points=to_points(table),
        lines=length_lines(table, (50, 95, 99)),
    )


def _phase_lengths(source: Source, scope: StepScope) -> dict[str, npt.NDArray[np.int64]]:
    """Give the lengths of measured phases by name, those with the most time first."""
    where, values = in_scope(source, scope, "session_id")
    sql = f"""
        SELECT name, duration_ns FROM phases
        WHERE end_ns IS NOT NULL AND status <> 'lost' AND session_id IS NOT NULL AND {where}"""
    table = source.query(sql, **values)
    words = table["name"].combine_chunks().dictionary_encode()
    places = words.indices.to_numpy()
    lengths = table["duration_ns"].to_numpy().astype(np.int64)
    found = {name: lengths[places == at] for at, name in enumerate(words.dictionary.to_pylist())}
    return dict(sorted(found.items(), key=lambda item: (-int(item[1].sum()), item[0])))


def _histogram(name: str, lengths: npt.NDArray[np.int64], edges: list[int]) -> LengthHistogram:
    return LengthHistogram(
        name=name,
        count=len(lengths),
        total_ns=int(lengths.sum()),
        counts=count_lengths(lengths, edges) if edges else [],
    )


def _heat_map(
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    flagged: npt.NDArray[np.bool_],
) -> HeatMap:
    if not len(starts):
        return HeatMap(start_edges_ns=[], length_edges_ns=[], counts=[], flagged=[])
    columns = even_edges(int(starts.min()), int(starts.max()) + 1, _COLUMNS)
    rows = length_edges(lengths)
    return HeatMap(
        start_edges_ns=columns,
        length_edges_ns=rows,
        counts=count_grid(starts, lengths, columns, rows),
        flagged=count_grid(starts[flagged], lengths[flagged], columns, rows),
    )
