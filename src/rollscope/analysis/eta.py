"""When a running step will end: drawn from how long sessions took so far, as a range."""

import bisect
import heapq
import random
from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.analysis.idle import known_pools
from rollscope.analysis.ranks import nearest_rank, rank_of
from rollscope.analysis.rows import SessionRow, StepFacts

__all__ = ["Eta", "Range", "estimate_end"]

_DRAWS: Final = 200
_SEED: Final = 20_011
_ENOUGH: Final = 50
"""So many lengths of earlier steps are needed; with fewer, this step's own are taken."""


class Range(msgspec.Struct, kw_only=True):
    """When something will be, on the clock of the facts."""

    p10_ns: int
    p50_ns: int
    p90_ns: int


class Eta(msgspec.Struct, kw_only=True):
    """When the step will end."""

    known: int
    """How many lengths of sessions it is drawn from."""
    open: int
    """Sessions of the step in flight."""
    waiting: int
    """Sessions of the step that have yet to start."""
    last_end: Range | None
    """When its last session will end; None if there is nothing to draw from."""
    p95_end: Range | None
    """When 95 % of its sessions will have ended."""
    step_end: Range | None
    """When the step will end: its last session, then training and sync as usual."""
    at_least_ns: int | None = None
    """How much longer the step takes at least, by the sessions that are left out."""
    outliers: list[int] = []
    """Sessions older than anything seen, left out."""


def estimate_end(
    facts: StepFacts,
    earlier_ns: Sequence[int] = (),
    *,
    waiting: int = 0,
    after_ns: int = 0,
) -> Eta:
    """Estimate when a running step will end.

    Args:
        facts: The step, now.
        earlier_ns: How long the measured sessions of the last five steps took.
        waiting: How many of its sessions have yet to start.
        after_ns: What training and sync usually take after the last session.
    """
    lengths = sorted(earlier_ns)
    if len(lengths) < _ENOUGH:
        own = (one for one in facts.sessions if one.is_measured and one.end_ns is not None)
        lengths = sorted(one.end_ns - one.start_ns for one in own if one.end_ns is not None)
    own_ids = {session.span_id for session in facts.sessions}
    in_flight = _in_flight(facts)
    longest_ns = lengths[-1] if lengths else 0
    drawn = [one for one in in_flight if facts.now_ns - one.start_ns < longest_ns]
    old = [one for one in in_flight if facts.now_ns - one.start_ns >= longest_ns]
    outliers = [one.span_id for one in old if one.span_id in own_ids] if lengths else []
    eta = Eta(
        known=len(lengths),
        open=sum(session.span_id in own_ids for session in in_flight),
        waiting=waiting,
        last_end=None,
        p95_end=None,
        step_end=None,
        outliers=outliers,
    )
    over = sorted(min(one.end_ns, facts.now_ns) for one in facts.sessions if one.end_ns is not None)
    ours = sum(one.span_id in own_ids for one in drawn) + waiting
    if outliers:
        eta.at_least_ns = after_ns
    if not lengths or not ours + len(over) or (outliers and not ours):
        return eta
    draw = _Draw(facts, lengths, drawn, own_ids, waiting, len(old))
    last, most = [], []
    for _ in range(_DRAWS):
        ends = sorted(draw.ends())
        last.append(ends[-1] if ends else over[-1])
        # What is to come ends after all that is over.
        position = rank_of(95, len(over) + len(ends)) - 1
        most.append(over[position] if position < len(over) else ends[position - len(over)])
    eta.last_end = _range(last)
    eta.p95_end = _range(most)
    eta.step_end = _range([max(end + after_ns, facts.now_ns) for end in last])
    if outliers:
        eta.at_least_ns = eta.step_end.p50_ns - facts.now_ns
    return eta


class _Draw:
    """Draws one future after another: how long each session still takes, and who follows whom."""

    def __init__(
        self,
        facts: StepFacts,
        lengths: Sequence[int],
        drawn: Sequence[SessionRow],
        own_ids: set[int],
        waiting: int,
        stuck: int,
    ) -> None:
        self._lengths = lengths
        self._now_ns = facts.now_ns
        # The same seed for the same facts: a page that is loaded again says the same.
        self._random = random.Random(_SEED).random  # noqa: S311 - a draw, not a secret
        self._open = [
            (
                one.start_ns,
                bisect.bisect_right(lengths, facts.now_ns - one.start_ns),
                one.span_id in own_ids,
            )
            for one in drawn
        ]
        self._waiting = waiting
        slots = sum(
            facts.capacity.get(pool, facts.assumed_capacity.get(pool, 0))
            for pool in known_pools(facts)
        )
        # Who is older than anything seen keeps its slot; if that leaves none, one is made.
        self._free = max(slots - len(drawn) - stuck, 0 if drawn else 1)

    def ends(self) -> list[int]:
        """Draw when each session of the step that is open or waiting will end."""
        count = len(self._lengths)
        slots = [self._now_ns] * min(self._free, self._waiting)
        ends = []
        for start_ns, longer, is_own in self._open:
            # Each is drawn from the lengths beyond its age.
            chosen = longer + int(self._random() * (count - longer))
            end_ns = start_ns + self._lengths[chosen]
            slots.append(end_ns)
            if is_own:
                ends.append(end_ns)
        if self._waiting:
            heapq.heapify(slots)
            for _ in range(self._waiting):
                end_ns = slots[0] + self._lengths[int(self._random() * count)]
                heapq.heapreplace(slots, end_ns)
                ends.append(end_ns)
        return ends


def _in_flight(facts: StepFacts) -> list[SessionRow]:
    by_id = {one.span_id: one for one in (*facts.around, *facts.sessions)}
    return [one for one in by_id.values() if one.end_ns is None]


def _range(values: Sequence[int]) -> Range:
    ordered = sorted(values)
    return Range(
        p10_ns=nearest_rank(ordered, 10),
        p50_ns=nearest_rank(ordered, 50),
        p90_ns=nearest_rank(ordered, 90),
    )
