"""Who waited: the slots of a step, busy or idle with one cause, and the trainer's own time.

Everything comes from one sweep over the edges of recorded intervals, so pauses that overlap count
once and no timer can lose one. Which sessions held a tail is left to `tail`.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from rollscope.analysis.intervals import Interval, clip, merge
from rollscope.analysis.ranks import nearest_rank
from rollscope.analysis.roles import (
    EMPTY_QUEUE_STATES,
    GATE_PREFIX,
    OUTBOX_GATE,
    PAUSE_STATES,
    is_sync,
    role_of,
)
from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.model.kinds import Kind, Outcome

__all__ = [
    "BUFFER_FULL",
    "CAUSES",
    "DOWN",
    "NO_INPUT",
    "PAUSED",
    "TAIL",
    "UNKNOWN",
    "IdleSplit",
    "PoolIdle",
    "PoolSweep",
    "Stretch",
    "TrainerSplit",
    "idle_split",
    "known_pools",
    "needed_sessions",
    "open_interval",
    "pools_of",
    "sweep_pools",
    "tail_window",
    "trainer_split",
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
_PRECEDENCE: Final = ("train", "sync", "waiting")


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


class PoolIdle(msgspec.Struct, kw_only=True):
    """The slot time of one pool; `busy_ns` and all of `idle_ns` add up to `total_ns` exactly."""

    pool: str
    capacity: int
    assumed: bool
    """Whether the capacity is not declared but the most that was ever seen."""
    total_ns: int
    """Capacity times wall, and `over_ns`."""
    over_ns: int
    """Slot time of sessions beyond the capacity; more than 0 says that the capacity is too low."""
    busy_ns: int
    idle_ns: dict[str, int]
    """By cause, in order of precedence."""


class IdleSplit(msgspec.Struct, kw_only=True):
    """The slot time of a step, over all pools and of each."""

    wall_ns: int
    total_ns: int
    over_ns: int
    assumed: bool
    """Whether the capacity of any pool is assumed."""
    busy_ns: int
    idle_ns: dict[str, int]
    pools: list[PoolIdle]


class TrainerSplit(msgspec.Struct, kw_only=True):
    """Where the trainer's time went; the parts add up to `wall_ns` exactly."""

    wall_ns: int
    train_ns: int
    sync_ns: int
    filling_ns: int
    """Waiting until 95 % of the needed sessions had come."""
    stragglers_ns: int
    """Waiting for the rest of them."""
    other_ns: int

    @property
    def waiting_ns(self) -> int:
        """All of its waiting."""
        return self.filling_ns + self.stragglers_ns


def open_interval(row: SpanRow | SessionRow, now_ns: int) -> Interval:
    """Give the time in which a span or session was open; one that is open still ends now."""
    return row.start_ns, max(now_ns if row.end_ns is None else row.end_ns, row.start_ns)


def needed_sessions(facts: StepFacts) -> list[SessionRow]:
    """Give the sessions that the step's batch is made of.

    Those that it consumed, where that is recorded and the step is over; else those that may still
    be used; else all.
    """
    used = [session for session in facts.sessions if session.consumed_ns is not None]
    if used and facts.span.end_ns is not None:
        return used
    usable = (None, Outcome.ACCEPTED)
    return [one for one in facts.sessions if one.outcome in usable] or facts.sessions


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


def idle_split(facts: StepFacts, sweeps: Sequence[PoolSweep] | None = None) -> IdleSplit:
    """Split the slot time of a step into busy and idle by cause.

    Args:
        facts: The step.
        sweeps: What `sweep_pools` gave for it, if at hand.
    """
    swept = sweep_pools(facts) if sweeps is None else sweeps
    pools = [_pool_idle(sweep) for sweep in swept]
    return IdleSplit(
        wall_ns=facts.wall_ns,
        total_ns=sum(pool.total_ns for pool in pools),
        over_ns=sum(pool.over_ns for pool in pools),
        assumed=any(pool.assumed for pool in pools),
        busy_ns=sum(pool.busy_ns for pool in pools),
        idle_ns=_by_cause((cause, ns) for pool in pools for cause, ns in pool.idle_ns.items()),
        pools=pools,
    )


def trainer_split(facts: StepFacts) -> TrainerSplit:
    """Split the trainer's time of a step.

    An instant belongs to the innermost span that trains, syncs or waits; of several side by side,
    training goes before syncing and syncing before waiting.
    """
    whole = facts.start_ns, facts.end_ns
    filled_ns = _filled_ns(facts)
    totals = dict.fromkeys(("train", "sync", "filling", "stragglers"), 0)
    for low, high, part in _trainer_parts(facts, whole):
        if part == "waiting":
            filling = max(min(high, filled_ns) - low, 0)
            totals["filling"] += filling
            totals["stragglers"] += high - low - filling
        else:
            totals[part] += high - low
    return TrainerSplit(
        wall_ns=facts.wall_ns,
        train_ns=totals["train"],
        sync_ns=totals["sync"],
        filling_ns=totals["filling"],
        stragglers_ns=totals["stragglers"],
        other_ns=facts.wall_ns - sum(totals.values()),
    )


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
    return min(since, key=lambda cause: (_RANK.get(cause, _GATE_RANK), since[cause], cause))


def _pool_idle(sweep: PoolSweep) -> PoolIdle:
    lengths = [(stretch, stretch.end_ns - stretch.start_ns) for stretch in sweep.stretches]
    busy_ns = sum(stretch.running * ns for stretch, ns in lengths)
    idle_ns = _by_cause((stretch.cause, stretch.idle * ns) for stretch, ns in lengths)
    total_ns = busy_ns + sum(idle_ns.values())
    return PoolIdle(
        pool=sweep.pool,
        capacity=sweep.capacity,
        assumed=sweep.is_assumed,
        total_ns=total_ns,
        over_ns=total_ns - sweep.capacity * sum(ns for _, ns in lengths),
        busy_ns=busy_ns,
        idle_ns=idle_ns,
    )


def _by_cause(parts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Add up by cause: every cause without a name is there, a gate if it held anything."""
    sums = dict.fromkeys(CAUSES, 0)
    for cause, ns in parts:
        if ns or cause in sums:
            sums[cause] = sums.get(cause, 0) + ns
    order = sorted(sums, key=lambda cause: (_RANK.get(cause, _GATE_RANK), cause))
    order.append(order.pop(order.index(UNKNOWN)))
    return {cause: sums[cause] for cause in order}


def _filled_ns(facts: StepFacts) -> int:
    """Say from when on a wait was for stragglers: 95 % had come, and none had yet to start."""
    needed = needed_sessions(facts)
    if not needed:
        return _FOREVER
    came = sorted(
        min(
            _FOREVER if session.end_ns is None else session.end_ns,
            _FOREVER if session.consumed_ns is None else session.consumed_ns,
        )
        for session in needed
    )
    return max(nearest_rank(came, 95), *(session.start_ns for session in needed))


def _trainer_parts(facts: StepFacts, whole: Interval) -> Iterable[tuple[int, int, str]]:
    """Give the times in which the trainer trained, synced or waited."""
    pools = known_pools(facts)
    own = [row for row in facts.trainer if row.kind is not Kind.STATE or row.lane not in pools]
    parts = {row.span_id: part for row in own if (part := _part_of(row.name)) is not None}
    outer = _nearest(parts, {row.span_id: row.parent_id for row in facts.trainer})
    edges: list[tuple[int, bool, int]] = []
    for row in own:
        if row.span_id in parts:
            for start, end in clip([open_interval(row, facts.now_ns)], whole):
                edges += [(start, True, row.span_id), (end, False, row.span_id)]
    active: set[int] = set()
    edges.sort()
    for (low, is_start, span_id), (high, _, _) in itertools.pairwise(edges):
        if is_start:
            active.add(span_id)
        else:
            active.discard(span_id)
        if active and low < high:
            # Spans that claim to lie inside of each other leave nobody innermost.
            innermost = active - _enclosing(active, outer) or active
            inner = {parts[one] for one in innermost}
            yield low, high, next(part for part in _PRECEDENCE if part in inner)


def _part_of(name: str) -> str | None:
    if is_sync(name):
        return "sync"
    role = role_of(name)
    return role if role in _PRECEDENCE else None


def _nearest(parts: Mapping[int, str], parent_of: Mapping[int, int | None]) -> dict[int, int]:
    """Give, for each span with a part, the nearest one around it that has a part too."""
    outer = {}
    for span_id in parts:
        passed = {span_id}
        at = parent_of.get(span_id)
        while at is not None and at not in parts and at not in passed:
            passed.add(at)
            at = parent_of.get(at)
        if at is not None and at in parts and at != span_id:
            outer[span_id] = at
    return outer


def _enclosing(active: Iterable[int], outer: Mapping[int, int]) -> set[int]:
    enclosing: set[int] = set()
    for span_id in active:
        at = outer.get(span_id)
        while at is not None and at not in enclosing and at != span_id:
            enclosing.add(at)
            at = outer.get(at)
    return enclosing
