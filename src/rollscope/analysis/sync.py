"""Weight sync within a step: its parts, on each lane, and the slots that it held up."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from rollscope.analysis.intervals import Interval, clip, merge, union_ns
from rollscope.analysis.pools import PAUSED, PoolSweep, Stretch, pools_of, sweep_pools
from rollscope.analysis.roles import SYNC_PARTS, is_sync
from rollscope.analysis.rows import SpanRow, StepFacts, open_interval

__all__ = ["TRAINER_LANE", "SyncLane", "SyncSplit", "sync_split"]

TRAINER_LANE: Final = "trainer"
"""Stands for what has no lane."""

_PARTS: Final = ("transfer", "pause", "resume", "sync")
"""What an instant counts for if several are open: the first of these."""


class SyncLane(msgspec.Struct, kw_only=True):
    """Weight sync on one lane; the four parts add up to `total_ns` exactly."""

    lane: str
    total_ns: int
    """Time in which any part of it was open."""
    pause_ns: int
    transfer_ns: int
    resume_ns: int
    rest_ns: int
    """What is recorded as sync, but as none of its parts."""


class SyncSplit(msgspec.Struct, kw_only=True):
    """Weight sync of a step; the four parts add up to `total_ns` exactly."""

    total_ns: int
    pause_ns: int
    transfer_ns: int
    resume_ns: int
    rest_ns: int
    lanes: list[SyncLane]
    """By name."""
    slowest: str | None
    """The lane that synced longest, if there is more than one."""
    blocked_ns: int
    """Slot time that stood idle for it."""
    in_flight_ns: int
    """Slot time of sessions that were in flight meanwhile."""


def sync_split(facts: StepFacts, sweeps: Sequence[PoolSweep] | None = None) -> SyncSplit:
    """Split the weight sync of a step.

    Args:
        facts: The step.
        sweeps: What `sweep_pools` gave for it, if at hand.
    """
    swept = sweep_pools(facts) if sweeps is None else sweeps
    rows = {
        row.span_id: row
        for row in itertools.chain(facts.trainer, facts.states)
        if is_sync(row.name)
    }
    lanes: dict[str, list[SpanRow]] = {}
    for row in rows.values():
        lanes.setdefault(row.lane or TRAINER_LANE, []).append(row)
    by_lane = [SyncLane(lane=lane, **_parts(lanes[lane], facts)) for lane in sorted(lanes)]
    seen = [lane for lane in by_lane if lane.total_ns]
    blocked_ns, in_flight_ns = _held_up(rows.values(), swept, facts)
    return SyncSplit(
        **_parts(rows.values(), facts),
        lanes=seen,
        slowest=max(seen, key=lambda lane: lane.total_ns).lane if len(seen) > 1 else None,
        blocked_ns=blocked_ns,
        in_flight_ns=in_flight_ns,
    )


def _parts(rows: Iterable[SpanRow], facts: StepFacts) -> Mapping[str, int]:
    """Share out the time in which any of the rows was open."""
    whole = facts.start_ns, facts.end_ns
    open_of: dict[str, list[Interval]] = {part: [] for part in _PARTS}
    for row in rows:
        part = next(part for part in _PARTS if row.name in SYNC_PARTS[part])
        open_of[part] += clip([open_interval(row, facts.now_ns)], whole)
    covered: list[Interval] = []
    shares: dict[str, int] = {}
    before_ns = 0
    for part in _PARTS:
        covered += open_of[part]
        until_ns = union_ns(covered)
        shares["rest_ns" if part == "sync" else f"{part}_ns"] = until_ns - before_ns
        before_ns = until_ns
    return {"total_ns": before_ns, **shares}


def _held_up(
    rows: Iterable[SpanRow], sweeps: Sequence[PoolSweep], facts: StepFacts
) -> tuple[int, int]:
    """Add up the slot time, idle and in flight, of each pool while a sync concerned it."""
    pools = [sweep.pool for sweep in sweeps]
    syncs: dict[str, list[Interval]] = {pool: [] for pool in pools}
    for row in rows:
        for pool in pools_of(row, pools):
            syncs[pool].append(open_interval(row, facts.now_ns))
    blocked_ns = in_flight_ns = 0
    for sweep in sweeps:
        left = merge(syncs[sweep.pool])[::-1]
        for stretch in sweep.stretches:
            while left and left[-1][1] <= stretch.start_ns:
                left.pop()
            held_ns = _overlap(stretch, left)
            blocked_ns += stretch.idle * held_ns * (stretch.cause == PAUSED)
            in_flight_ns += stretch.running * held_ns
    return blocked_ns, in_flight_ns


def _overlap(stretch: Stretch, left: Sequence[Interval]) -> int:
    """Say how much of a stretch lies in any of the intervals, of which the last comes first."""
    held_ns = 0
    for start, end in reversed(left):
        if start >= stretch.end_ns:
            break
        held_ns += min(end, stretch.end_ns) - max(start, stretch.start_ns)
    return held_ns
