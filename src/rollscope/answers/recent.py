"""The last minutes of a run as columns: its sessions and phases, and what came of them when."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollscope.analysis.flight import (
    FOREVER,
    Grid,
    PhaseColumns,
    SessionColumns,
    count_phases,
    count_sessions,
)
from rollscope.answers.moment import Moment
from rollscope.answers.source import Source
from rollscope.store.dialect import Value

__all__ = ["Recent", "fetch_between", "fetch_recent", "in_bins"]

Numbers = npt.NDArray[np.int64]

_OVERLAPPING: Final = """
    recorded_start_ns <= $files_high AND (recorded_end_ns IS NULL OR recorded_end_ns >= $files_low)
    AND start_ns <= $high AND (end_ns IS NULL OR end_ns >= $low)"""


class Recent(NamedTuple):
    """What was open at some time between two moments, and what ended."""

    sessions: SessionColumns
    session_ends: Numbers
    """When sessions ended that were not lost."""
    phases: PhaseColumns
    names: list[str]
    """Of the phases, by number."""
    token_ends: Numbers
    """When output tokens were told of, to the second, and how many each time."""
    token_counts: Numbers

    def count_phases(self, grid: Grid) -> list[Numbers]:
        """Count for each name the sessions that are in that phase at each tick."""
        return count_phases(self.sessions, self.phases, len(self.names), grid)

    def count_sessions(self, grid: Grid) -> Numbers:
        """Count the sessions in flight at each tick."""
        return count_sessions(self.sessions, grid)

    def ended(self, grid: Grid) -> Numbers:
        """Count the sessions that ended in each step of the grid, up to its tick."""
        return in_bins(self.session_ends, grid)

    def tokens(self, grid: Grid) -> Numbers:
        """Add up the output tokens that were told of in each step of the grid."""
        return in_bins(self.token_ends, grid, self.token_counts)

    def oldest_open(self) -> tuple[int, int] | None:
        """Give id and start of the session that has been open longest; None if none is open."""
        ids, starts, ends = self.sessions
        is_open = np.flatnonzero(ends == FOREVER)
        if not len(is_open):
            return None
        first = is_open[np.lexsort((ids[is_open], starts[is_open]))[0]]
        return int(ids[first]), int(starts[first])

    def oldest(self, grid: Grid) -> Numbers:
        """Give how old the oldest session in flight is at each tick."""
        starts, ends = self.sessions.starts, self.sessions.ends
        ages = []
        for tick in range(grid.ticks):
            time_ns = grid.start_ns + tick * grid.step_ns
            is_open = (starts <= time_ns) & (ends > time_ns)
            ages.append(time_ns - starts[is_open].min() if is_open.any() else 0)
        return np.array(ages, np.int64)


def in_bins(times: Numbers, grid: Grid, weights: Numbers | None = None) -> Numbers:
    """Count, or add up, what happened after each tick's predecessor and not after the tick."""
    inside = (times > grid.start_ns - grid.step_ns) & (times <= grid.end_ns)
    places = grid.first_at(times[inside])
    chosen = None if weights is None else weights[inside]
    counted: Numbers = np.bincount(places, chosen, grid.ticks).astype(np.int64)
    return counted


def fetch_recent(source: Source, moment: Moment, length_ns: int, tick_ns: int) -> Recent:
    """Fetch the sessions and phases of the last minutes.

    Args:
        source: The run.
        moment: When now is.
        length_ns: How far to look back.
        tick_ns: Phases will be counted at moments so far apart, the last one now.
    """
    low_ns = moment.now_ns - length_ns
    return fetch_between(source, low_ns, moment.now_ns, moment.moved_ns, tick_ns=tick_ns)


def fetch_between(
    source: Source, low_ns: int, high_ns: int, moved_ns: int, *, tick_ns: int
) -> Recent:
    """Fetch the sessions and phases that were open at some time between two times.

    Args:
        source: The run.
        low_ns: From here.
        high_ns: To here.
        moved_ns: The most by which times of any process are moved.
        tick_ns: Leave out phases that no moment falls into, these being so far apart, the last one
            at `high_ns`.
    """
    values: dict[str, Value] = {
        "low": low_ns,
        "high": high_ns,
        "files_low": low_ns - moved_ns,
        "files_high": high_ns + moved_ns,
    }
    sessions = source.query(
        f"""SELECT span_id, status, start_ns, end_ns, tokens_out FROM spans
            WHERE kind = 'session' AND {_OVERLAPPING}""",
        **values,
    )
    # A phase that no tick falls into need not be fetched; most are so short in a busy run.
    phases = source.query(
        f"""SELECT span_id, session_id, name, start_ns, end_ns FROM spans
            WHERE kind = 'phase' AND session_id IS NOT NULL AND {_OVERLAPPING}
                AND (end_ns IS NULL OR end_ns - start_ns >= $tick
                    OR ($high - start_ns) % $tick < end_ns - start_ns)""",
        **values,
        tick=tick_ns,
    )
    tokens = _tokens(source, values)
    if not len(tokens):
        tokens = sessions.filter(pa.compute.is_valid(sessions["tokens_out"]))
    names = phases["name"].combine_chunks().dictionary_encode()
    return Recent(
        sessions=SessionColumns(
            sessions["span_id"].to_numpy(), sessions["start_ns"].to_numpy(), _ends(sessions)
        ),
        session_ends=_ends(sessions.filter(pa.compute.not_equal(sessions["status"], "lost"))),
        phases=PhaseColumns(
            phases["session_id"].to_numpy(),
            phases["start_ns"].to_numpy(),
            _ends(phases),
            names.indices.to_numpy().astype(np.int64),
            phases["span_id"].to_numpy(),
        ),
        names=names.dictionary.to_pylist(),
        token_ends=_ends(tokens),
        token_counts=tokens["tokens_out"].to_numpy(),
    )


def _tokens(source: Source, values: dict[str, Value]) -> pa.Table:
    """Give when phases told of output tokens, and of how many, second by second back from now."""
    second = "($high - end_ns) / 1000000000"
    sql = f"""
        SELECT $high - CAST(floor({second}) AS BIGINT) * 1000000000 AS end_ns,
            sum(tokens_out) AS tokens_out
        FROM spans WHERE kind = 'phase' AND tokens_out IS NOT NULL AND recorded_end_ns >= $files_low
            AND end_ns <= $high AND end_ns >= $low
        GROUP BY floor({second})"""
    needed = ("high", "low", "files_low")
    return source.query(sql, **{name: values[name] for name in needed})


def _ends(table: pa.Table) -> Numbers:
    ends: Numbers = pa.compute.fill_null(table["end_ns"], FOREVER).to_numpy()
    return ends
