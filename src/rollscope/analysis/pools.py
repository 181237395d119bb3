"""The pools of a step, followed through it: how many slots were idle when, and why.

Everything comes from one sweep over the edges of recorded intervals, so pauses that overlap count
once and no timer can lose one. Adding up is left to `idle`, and which sessions held a tail to
`tail`.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from rollscope.analysis.intervals import Interval, clip, merge
from rollscope.analysis.roles import (
    EMPTY_QUEUE_STATES,
    GATE_PREFIX,
    OUTBOX_GATE,
    PAUSE_STATES,
    is_sync,
)
from rollscope.analysis.rows import SpanRow, StepFacts, open_interval

__all__ = [
    "BUFFER_FULL",
    "CAUSES",
    "DOWN",
    "NO_INPUT",
    "PAUSED",
    "TAIL",
    "UNKNOWN",
    "PoolSweep",
    "Stretch",
    "cause_rank",
    "known_pools",
    "pools_of",
    "sweep_pools",
    "tail_window",
]

DOWN: Final = "down"
PAUSED: Final = "paused"
BUFFER_FULL: Final = "buffer_full"
TAIL: Final = "tail"
NO_INPUT: Final = "no_input"
UNKNOWN: Final = "unknown"
CAUSES: Final = (DOWN, PAUSED, BUFFER_FULL, TAIL, NO_INPUT, UNKNOWN)
"""The causes that have no name of their own; a gate's is `gate:` and its name."""

_RANK: Final = {DOWN: 0, PAUSED: 1, BUFFER_FULL: 3, TAIL: 4, NO_INPUT: 5}
_GATE_RANK: Final = 2
_GONE: Final = frozenset({"dead", "silent"})
_FOREVER: Final = 1 << 63


class Stretch(NamedTuple):
    """A time during which nothing about a pool changed."""

    start_ns: int
    end_ns: int
    running: int
    """Sessions in flight, of whichever step."""
    idle: int
    """Slots without a session."""
    cause: str
    """Why they had none."""


class PoolSweep(NamedTuple):
    """One pool from the start of the step to its end."""

    pool: str
    capacity: int
    is_assumed: bool
    stretches: list[Stretch]


def known_pools(facts: StepFacts) -> list[str]:
    """Name the pools: those with a capacity and those with a session, in order."""
    held = {session.pool for session in itertools.chain(facts.around, facts.sessions)}
    return sorted(held | facts.capacity.keys() | facts.assumed_capacity.keys())


def pools_of(row: SpanRow, pools: Sequence[str]) -> Sequence[str]:
    """Give the pools a state applies to: the one its lane names, else all."""
    return (row.lane,) if row.lane is not None and row.lane in pools else pools


def tail_window(facts: StepFacts) -> Interval | None:
    """Give the time from the last start of the step's sessions to their last end, if there are any.

    It may reach beyond the step: a step can consume what ended before it began.
    """
    if not facts.sessions:
        return None
    intervals = [open_interval(session, facts.now_ns) for session in facts.sessions]
    return max(start for start, _ in intervals), max(end for _, end in intervals)


def cause_rank(cause: str) -> int:
    """Give a cause's place in the order of precedence, which all gates share."""
    return _RANK.get(cause, _GATE_RANK)


def sweep_pools(facts: StepFacts) -> list[PoolSweep]:
    """Follow each pool through the step: how many slots were idle when, and why."""
    pools = known_pools(facts)
    whole = facts.start_ns, facts.end_ns
    running = _running(facts, pools)
    conditions = _conditions(facts, pools)
    sweeps = []
    for pool in pools:
        held = clip(running[pool], whole)
        declared = facts.capacity.get(pool)
        capacity = facts.assumed_capacity.get(pool) if declared is None else declared
        if capacity is None:
            capacity = _most_at_once(held)
        stretches = _stretches(held, conditions[pool], whole, capacity)
        sweeps.append(PoolSweep(pool, capacity, declared is None, stretches))
    return sweeps


def _running(facts: StepFacts, pools: Iterable[str]) -> dict[str, list[Interval]]:
    by_id = {one.span_id: one for one in itertools.chain(facts.sessions, facts.around)}
    running: dict[str, list[Interval]] = {pool: [] for pool in pools}
    for session in by_id.values():
        running[session.pool].append(open_interval(session, facts.now_ns))
    return running


def _most_at_once(intervals: Iterable[Interval]) -> int:
    changes = sorted(edge for low, high in intervals for edge in ((low, 1), (high, -1)))
    return max(itertools.accumulate((change for _, change in changes), initial=0))


def _conditions(facts: StepFacts, pools: Sequence[str]) -> dict[str, dict[str, list[Interval]]]:
    """Give, for each pool, when each cause of idleness held."""
    found: dict[str, dict[str, list[Interval]]] = {pool: {} for pool in pools}
    syncs = [row for row in facts.trainer if is_sync(row.name)]
    for row in itertools.chain(facts.states, syncs):
        cause = _cause_of(row.name)
        if cause is not None:
            for pool in pools_of(row, pools):
                found[pool].setdefault(cause, []).append(open_interval(row, facts.now_ns))
    window = tail_window(facts)
    for pool, down in _down(facts, pools).items():
        found[pool][DOWN] = down
        if window is not None:
            found[pool][TAIL] = [window]
            found[pool].setdefault(NO_INPUT, []).append((window[1], _FOREVER))
    return found


def _cause_of(name: str) -> str | None:
    if name in PAUSE_STATES or is_sync(name):
        return PAUSED
    if name == GATE_PREFIX + OUTBOX_GATE:
        return BUFFER_FULL
    if name.startswith(GATE_PREFIX):
        return name
    return NO_INPUT if name in EMPTY_QUEUE_STATES else None


def _down(facts: StepFacts, pools: Iterable[str]) -> dict[str, list[Interval]]:
    """Give, for each pool, when none of its processes lived any more.

    A pool that several processes feed is down when the last of them is gone, and up again when
    another one starts.
    """
    pool_of = {process.title: process.process for process in facts.processes}
    members = {pool: {pool_of[pool]} if pool in pool_of else set() for pool in pools}
    for session in itertools.chain(facts.around, facts.sessions):
        members[session.pool].add(session.process)
    rows = {process.process: process for process in facts.processes}
    down = {}
    for pool, processes in members.items():
        alive = merge(
            (min(row.started_ns, row.last_seen_ns - 1), row.last_seen_ns)
            if row.status in _GONE
            else (row.started_ns, _FOREVER)
            for row in (rows[process] for process in processes if process in rows)
        )
        starts = [start for start, _ in alive[1:]] + [_FOREVER]
        ends = [end for _, end in alive]
        down[pool] = list(zip(ends, starts, strict=False))
    return down


def _stretches(
    held: Iterable[Interval],
    conditions: Mapping[str, Iterable[Interval]],
    whole: Interval,
    capacity: int,
) -> list[Stretch]:
    low, high = whole
    if high <= low:
        return []
    steps: dict[int, int] = {low: 0, high: 0}
    for start, end in held:
        steps[start] = steps.get(start, 0) + 1
        steps[end] = steps.get(end, 0) - 1
    switches: dict[int, list[tuple[str, bool]]] = {}
    for cause, intervals in conditions.items():
        for start, end in merge(clip(intervals, whole)):
            switches.setdefault(start, []).append((cause, True))
            switches.setdefault(end, []).append((cause, False))
    found: list[Stretch] = []
    since: dict[str, int] = {}
    running, cause = 0, UNKNOWN
    for start, end in itertools.pairwise(sorted(steps.keys() | switches.keys())):
        running += steps.get(start, 0)
        if start in switches:
            for switched, is_on in switches[start]:
                if is_on:
                    since[switched] = start
                else:
                    del since[switched]
            cause = _first(since)
        found.append(Stretch(start, end, running, max(capacity - running, 0), cause))
    return found


def _first(since: Mapping[str, int]) -> str:
    """Give the cause that goes before the others; of several gates, the one closed longest."""
    if not since:
        return UNKNOWN
    return min(since, key=lambda cause: (cause_rank(cause), since[cause], cause))
