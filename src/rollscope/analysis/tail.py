"""The tail of a step: what it cost in idle slots, and which sessions it waited for."""

import bisect
import itertools
from collections.abc import Sequence

import msgspec

from rollscope.analysis.pools import TAIL, PoolSweep, sweep_pools, tail_window
from rollscope.analysis.ranks import nearest_rank
from rollscope.analysis.rows import StepFacts, open_interval

__all__ = ["Charge", "PoolTail", "TailSplit", "tail_split"]

_FEW_HOLDERS = 10
_FEW_PERCENT = 5


class PoolTail(msgspec.Struct, kw_only=True):
    """What the tail cost in one pool."""

    pool: str
    bubble_ns: int
    """Slot time without a session, for want of any session of the step to start."""
    share: float
    """Of the pool's slot time."""


class Charge(msgspec.Struct, kw_only=True):
    """What one session is charged with."""

    session_id: int
    charge_ns: int


class TailSplit(msgspec.Struct, kw_only=True):
    """The tail of a step; the charges add up to `bubble_ns` exactly, and so do the pools."""

    last_start_ns: int | None
    p95_end_ns: int | None
    """When 95 % of the step's sessions had ended."""
    last_end_ns: int | None
    tail_wall_ns: int
    """From there to the last end, as far as it lies within the step."""
    bubble_ns: int
    share: float
    """Of all slot time."""
    pools: list[PoolTail]
    charges: list[Charge]
    """The largest first; each idle instant is shared by the sessions that were still open."""
    holders: list[int]
    """The sessions but for which the bubble would be smaller by 80 %, the last to end first."""
    is_broad: bool
    """Whether these are too many to be culprits."""


def tail_split(facts: StepFacts, sweeps: Sequence[PoolSweep] | None = None) -> TailSplit:
    """Say what the tail of a step cost and who held it.

    Args:
        facts: The step.
        sweeps: What `sweep_pools` gave for it, if at hand.
    """
    swept = sweep_pools(facts) if sweeps is None else sweeps
    window = tail_window(facts)
    # One order for ends, charges and holders: by end, then by id.
    ended = sorted(
        (open_interval(session, facts.now_ns)[1], session.span_id) for session in facts.sessions
    )
    ends = [end for end, _ in ended]
    bubble = _Bubble(swept)
    held_by = _holders(ends, bubble)
    p95_end_ns = nearest_rank(ends, 95) if ends else None
    total_ns = sum(_slot_ns(sweep) for sweep in swept)
    return TailSplit(
        last_start_ns=window[0] if window else None,
        p95_end_ns=p95_end_ns,
        last_end_ns=window[1] if window else None,
        tail_wall_ns=_within(p95_end_ns, ends[-1], facts) if p95_end_ns is not None else 0,
        bubble_ns=bubble.total_ns,
        share=bubble.total_ns / total_ns if total_ns else 0.0,
        pools=[_pool_tail(sweep) for sweep in swept],
        charges=_charges(ended, bubble),
        holders=[session_id for _, session_id in reversed(ended[len(ended) - held_by :])],
        is_broad=held_by > _FEW_HOLDERS and held_by * 100 > _FEW_PERCENT * len(ended),
    )


class _Bubble:
    """Idle slot time of the tail, over all pools, up to any moment."""

    def __init__(self, sweeps: Sequence[PoolSweep]) -> None:
        changes: dict[int, int] = {}
        for sweep in sweeps:
            for start, end, idle in _tail_pieces(sweep):
                changes[start] = changes.get(start, 0) + idle
                changes[end] = changes.get(end, 0) - idle
        self._times = sorted(changes)
        self._idle = list(itertools.accumulate(changes[time] for time in self._times))
        self._before = [0]
        for (low, high), idle in zip(itertools.pairwise(self._times), self._idle, strict=False):
            self._before.append(self._before[-1] + (high - low) * idle)
        self.total_ns = self._before[-1]

    def until(self, time_ns: int) -> int:
        at = bisect.bisect_right(self._times, time_ns) - 1
        if at < 0:
            return 0
        return self._before[at] + (time_ns - self._times[at]) * self._idle[at]


def _tail_pieces(sweep: PoolSweep) -> list[tuple[int, int, int]]:
    return [(one.start_ns, one.end_ns, one.idle) for one in sweep.stretches if one.cause == TAIL]


def _slot_ns(sweep: PoolSweep) -> int:
    return sum((one.end_ns - one.start_ns) * (one.running + one.idle) for one in sweep.stretches)


def _pool_tail(sweep: PoolSweep) -> PoolTail:
    bubble_ns = sum((end - start) * idle for start, end, idle in _tail_pieces(sweep))
    total_ns = _slot_ns(sweep)
    return PoolTail(
        pool=sweep.pool, bubble_ns=bubble_ns, share=bubble_ns / total_ns if total_ns else 0.0
    )


def _within(start_ns: int, end_ns: int, facts: StepFacts) -> int:
    return max(min(end_ns, facts.end_ns) - max(start_ns, facts.start_ns), 0)


def _holders(ends: Sequence[int], bubble: _Bubble) -> int:
    """Count the last sessions but for which the bubble would be smaller by 80 %.

    Had they ended with the one before them, the bubble would have ended there too.
    """
    if not bubble.total_ns:
        return 0
    for count in range(1, len(ends)):
        left = bubble.until(ends[-count - 1])
        if 5 * (bubble.total_ns - left) >= 4 * bubble.total_ns:
            return count
    return len(ends)


def _charges(ended: Sequence[tuple[int, int]], bubble: _Bubble) -> list[Charge]:
    """Charge the bubble, between any two ends, to the sessions that end later.

    Nanoseconds that cannot be divided go to those that end last.
    """
    count = len(ended)
    steps = [0] * (count + 1)
    spent = 0
    for position, (end, _) in enumerate(ended):
        until = bubble.until(end)
        part, rest = divmod(until - spent, count - position)
        steps[position] += part
        steps[count - rest] += 1
        steps[count] -= part + 1
        spent = until
    charges = [
        Charge(session_id=session_id, charge_ns=charge)
        for (_, session_id), charge in zip(ended, itertools.accumulate(steps), strict=False)
        if charge
    ]
    charges.sort(key=lambda charge: (-charge.charge_ns, charge.session_id))
    return charges
