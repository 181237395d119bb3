"""What more or fewer slots would have done to a step, if its sessions had taken as long."""

import heapq
from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.analysis.pools import PoolSweep, sweep_pools
from rollscope.analysis.rows import StepFacts, open_interval

__all__ = ["FACTORS", "Replay", "WhatIf", "replay_step"]

FACTORS: Final = (0.5, 0.75, 1.0, 1.5, 2.0)
_TOLERANCE_PERCENT: Final = 10


class Replay(msgspec.Struct, kw_only=True):
    """The step's sessions on some number of slots."""

    factor: float
    slots: int
    rollout_ns: int
    """From the first start to the last end."""
    wall_ns: int
    """The step's wall, if everything but the rollout stays as it was."""
    use: float
    """How much of the slots' time was used, from 0 to 1."""


class WhatIf(msgspec.Struct, kw_only=True):
    """Replays on fewer and more slots; they assume that sessions take as long as they did."""

    capacity: int
    assumed: bool
    """Whether the capacity is the most that was ever seen."""
    sessions: int
    rollout_ns: int
    """The truth that the replay on the step's own slots is held to."""
    replays: list[Replay]
    cannot_tell: bool
    """Whether that replay, or the wall it gives, is off by more than 10 %; then all are void."""


def replay_step(facts: StepFacts, sweeps: Sequence[PoolSweep] | None = None) -> WhatIf:
    """Replay a step's sessions, in their order, on 0.5 to 2 times its slots.

    Args:
        facts: The step.
        sweeps: What `sweep_pools` gave for it, if at hand.
    """
    swept = sweep_pools(facts) if sweeps is None else sweeps
    capacity = sum(sweep.capacity for sweep in swept)
    ordered = sorted(facts.sessions, key=lambda one: (one.start_ns, one.span_id))
    intervals = [open_interval(session, facts.now_ns) for session in ordered]
    lengths = [end - start for start, end in intervals]
    truth_ns = max((end for _, end in intervals), default=0) - (intervals or [(0, 0)])[0][0]
    outside_ns = max(facts.wall_ns - truth_ns, 0)
    replays = []
    if lengths and capacity:
        for factor in FACTORS:
            slots = max(int(capacity * factor + 0.5), 1)
            rollout_ns = _schedule(lengths, slots)
            replay = Replay(
                factor=factor,
                slots=slots,
                rollout_ns=rollout_ns,
                wall_ns=rollout_ns + outside_ns,
                use=sum(lengths) / (slots * rollout_ns) if rollout_ns else 0.0,
            )
            replays.append(replay)
    same = next((one for one in replays if one.factor == 1), None)
    return WhatIf(
        capacity=capacity,
        assumed=any(sweep.is_assumed for sweep in swept),
        sessions=len(lengths),
        rollout_ns=truth_ns,
        replays=replays,
        cannot_tell=same is None
        or not truth_ns
        or _is_off(same.rollout_ns, truth_ns)
        # Rollouts that run ahead of the trainer may take longer than the step that uses them.
        or _is_off(same.wall_ns, facts.wall_ns)
        or any(not session.is_measured for session in ordered),
    )


def _is_off(replayed_ns: int, truth_ns: int) -> bool:
    return 100 * abs(replayed_ns - truth_ns) > _TOLERANCE_PERCENT * truth_ns


def _schedule(lengths: Sequence[int], slots: int) -> int:
    """Start each session on the slot that is free first; say when the last one ends."""
    free = [0] * min(slots, len(lengths))
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free)
