"""The picture of a step's tail: sessions in flight over time, and one row for each by its end."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.analysis.pools import TAIL, PoolSweep, sweep_pools
from rollscope.analysis.ranks import rank_of
from rollscope.analysis.rows import SessionRow, StepFacts, open_interval
from rollscope.analysis.tail import TailSplit, tail_split

__all__ = ["PoolArea", "StairLine", "StairRow", "Staircase", "staircase"]

_MOST_ROWS: Final = 2_000
_MOST_BINS: Final = 300


class PoolArea(msgspec.Struct, kw_only=True):
    """One pool over the step, in bins of the same width; each number is a mean over its bin."""

    pool: str
    capacity: int
    is_assumed: bool
    running: list[float]
    """Sessions in flight, of whichever step."""
    idle: list[float]
    """Slots without a session."""
    tail: list[float]
    """Those of them that were idle because of the tail."""


class StairRow(msgspec.Struct, kw_only=True):
    """One session of the step."""

    session_id: int
    start_ns: int
    end_ns: int
    """Now, if it is open."""
    is_open: bool
    is_holder: bool
    charge_ns: int
    """Its part of the slot time that the tail cost."""
    task_key: str | None
    sample: int | None
    outcome: str | None
    pool: str


class StairLine(msgspec.Struct, kw_only=True):
    """A moment worth a line, and the session that makes it."""

    name: str
    """`last start`, `p50`, `p95` or `last`."""
    time_ns: int
    session_id: int


class Staircase(msgspec.Struct, kw_only=True):
    """The tail of a step as a picture."""

    step: int | None
    start_ns: int
    end_ns: int
    is_open: bool
    bin_ns: float
    """The width of a bin of the areas, which begin at `start_ns`."""
    pools: list[PoolArea]
    rows: list[StairRow]
    """By end, the first to end first; of more than 2,000 the last to end."""
    of: int
    """How many sessions the step has."""
    lines: list[StairLine]
    bubble_ns: int
    tail_wall_ns: int
    is_broad: bool


def staircase(facts: StepFacts) -> Staircase:
    """Lay out the tail of a step."""
    sweeps = sweep_pools(facts)
    tail = tail_split(facts, sweeps)
    wall_ns = facts.wall_ns
    bins = max(min(_MOST_BINS, wall_ns), 1)
    # Relative to the start, for a float has no room for nanoseconds since the epoch.
    edges = np.arange(bins + 1) * (wall_ns / bins)
    ordered = sorted(
        facts.sessions, key=lambda one: (open_interval(one, facts.now_ns)[1], one.span_id)
    )
    return Staircase(
        step=facts.span.step,
        start_ns=facts.start_ns,
        end_ns=facts.end_ns,
        is_open=facts.span.end_ns is None,
        bin_ns=wall_ns / bins,
        pools=[_area(sweep, edges) for sweep in sweeps] if wall_ns else [],
        rows=_rows(ordered[-_MOST_ROWS:], tail, facts.now_ns),
        of=len(ordered),
        lines=_lines(ordered, facts.now_ns),
        bubble_ns=tail.bubble_ns,
        tail_wall_ns=tail.tail_wall_ns,
        is_broad=tail.is_broad,
    )


def _area(sweep: PoolSweep, edges: npt.NDArray[np.floating[Any]]) -> PoolArea:
    stretches = sweep.stretches
    origin = stretches[0].start_ns
    times = np.array([0, *(one.end_ns - origin for one in stretches)], dtype=np.float64)
    lengths = np.diff(times)

    def means(counts: Sequence[int]) -> list[float]:
        until = np.concatenate(([0.0], np.cumsum(lengths * np.array(counts))))
        found = np.diff(np.interp(edges, times, until)) / np.diff(edges)
        rounded: list[float] = np.round(found, 4).tolist()
        return rounded

    return PoolArea(
        pool=sweep.pool,
        capacity=sweep.capacity,
        is_assumed=sweep.is_assumed,
        running=means([one.running for one in stretches]),
        idle=means([one.idle for one in stretches]),
        tail=means([one.idle if one.cause == TAIL else 0 for one in stretches]),
    )


def _rows(sessions: Sequence[SessionRow], tail: TailSplit, now_ns: int) -> list[StairRow]:
    holders = set(tail.holders)
    charges = {one.session_id: one.charge_ns for one in tail.charges}
    return [
        StairRow(
            session_id=one.span_id,
            start_ns=one.start_ns,
            end_ns=open_interval(one, now_ns)[1],
            is_open=one.end_ns is None,
            is_holder=one.span_id in holders,
            charge_ns=charges.get(one.span_id, 0),
            task_key=one.task_key,
            sample=one.sample,
            outcome=None if one.outcome is None else str(one.outcome),
            pool=one.pool,
        )
        for one in sessions
    ]


def _lines(ordered: Sequence[SessionRow], now_ns: int) -> list[StairLine]:
    if not ordered:
        return []
    latest = max(ordered, key=lambda one: (one.start_ns, one.span_id))
    lines = [StairLine(name="last start", time_ns=latest.start_ns, session_id=latest.span_id)]
    for name, percent in (("p50", 50), ("p95", 95), ("last", 100)):
        one = ordered[rank_of(percent, len(ordered)) - 1]
        end_ns = open_interval(one, now_ns)[1]
        lines.append(StairLine(name=name, time_ns=end_ns, session_id=one.span_id))
    return lines
