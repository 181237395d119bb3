"""Who waited: the slot time of a step, busy or idle with one cause.

When which slots were idle is found by `pools`; here it is added up. The trainer's own time is left
to `trainer`.
"""

from collections.abc import Iterable, Sequence

import msgspec

from rollscope.analysis.pools import CAUSES, UNKNOWN, PoolSweep, cause_rank, sweep_pools
from rollscope.analysis.rows import StepFacts

__all__ = ["IdleSplit", "PoolIdle", "idle_split"]


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
    order = sorted(sums, key=lambda cause: (cause_rank(cause), cause))
    order.append(order.pop(order.index(UNKNOWN)))
    return {cause: sums[cause] for cause in order}
