"""How evenly a step's work was spread over the pools."""

import itertools
from collections.abc import Sequence

import msgspec

from rollscope.analysis.idle import IdleSplit, idle_split
from rollscope.analysis.pools import PoolSweep
from rollscope.analysis.rows import SessionRow, StepFacts

__all__ = ["Replica", "ReplicaSplit", "replica_split"]

_SECOND = 1_000_000_000


class Replica(msgspec.Struct, kw_only=True):
    """What one pool did during a step."""

    pool: str
    sessions: int
    """Sessions of this step."""
    busy_share: float
    """Of its slot time, whichever step the sessions were for."""
    tokens_per_s: float
    """Output tokens of the sessions that ended during the step, over its wall time."""
    last_end_ns: int | None
    """When its last session of this step ended."""


class ReplicaSplit(msgspec.Struct, kw_only=True):
    """All pools of a step."""

    replicas: list[Replica]
    """By name."""
    imbalance: float
    """The largest busy share over the mean of all; 1 if all were equally busy."""


def replica_split(
    facts: StepFacts,
    idle: IdleSplit | None = None,
    sweeps: Sequence[PoolSweep] | None = None,
) -> ReplicaSplit:
    """Compare the pools of a step.

    Args:
        facts: The step.
        idle: What `idle_split` gave for it, if at hand.
        sweeps: What `sweep_pools` gave for it, if at hand.
    """
    pools = (idle_split(facts, sweeps) if idle is None else idle).pools
    own: dict[str, list[SessionRow]] = {pool.pool: [] for pool in pools}
    tokens = dict.fromkeys(own, 0)
    for session in facts.sessions:
        own[session.pool].append(session)
    by_id = {one.span_id: one for one in itertools.chain(facts.around, facts.sessions)}
    for session in by_id.values():
        if session.end_ns is not None and facts.start_ns < session.end_ns <= facts.end_ns:
            tokens[session.pool] += session.tokens_out or 0
    wall_s = facts.wall_ns / _SECOND
    replicas = [
        Replica(
            pool=pool.pool,
            sessions=len(own[pool.pool]),
            busy_share=pool.busy_ns / pool.total_ns if pool.total_ns else 0.0,
            tokens_per_s=tokens[pool.pool] / wall_s if wall_s else 0.0,
            last_end_ns=max(
                (one.end_ns for one in own[pool.pool] if one.end_ns is not None), default=None
            ),
        )
        for pool in pools
    ]
    busy = [replica.busy_share for replica in replicas]
    return ReplicaSplit(
        replicas=replicas, imbalance=max(busy) * len(busy) / sum(busy) if any(busy) else 1.0
    )
