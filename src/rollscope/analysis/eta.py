"""When a running step will end: drawn from how long sessions took so far, as a range."""

import heapq
import random
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.analysis.pools import known_pools
from rollscope.analysis.ranks import nearest_rank, rank_of
from rollscope.analysis.rows import SessionRow, StepFacts

__all__ = ["Eta", "Range", "estimate_end"]

_DRAWS: Final = 200
_SEED: Final = 20_011
Times = npt.NDArray[np.int64]
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
        ends = draw.ends()
        ends.sort()
        last.append(int(ends[-1]) if len(ends) else over[-1])
        # What is to come ends after all that is over.
        position = rank_of(95, len(over) + len(ends)) - 1
        most.append(over[position] if position < len(over) else int(ends[position - len(over)]))
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
        self._lengths = np.array(lengths, np.int64)
        self._now_ns = facts.now_ns
        self._random = _same_draws()
        self._starts = np.array([one.start_ns for one in drawn], np.int64)
        ages = facts.now_ns - self._starts
        self._longer = np.searchsorted(self._lengths, ages, side="right")
        """Where the lengths begin that each is drawn from: those beyond its age."""
        self._is_own = np.array([one.span_id in own_ids for one in drawn], bool)
        self._waiting = waiting
        slots = sum(
            facts.capacity.get(pool, facts.assumed_capacity.get(pool, 0))
            for pool in known_pools(facts)
        )
        # Who is older than anything seen keeps its slot; if that leaves none, one is made.
        self._free = max(slots - len(drawn) - stuck, 0 if drawn else 1)

    def ends(self) -> Times:
        """Draw when each session of the step that is open or waiting will end."""
        count = len(self._lengths)
        chance = self._random.random_sample(len(self._starts))
        chosen = self._longer + (chance * (count - self._longer)).astype(np.int64)
        ends = self._starts + self._lengths[chosen]
        own: Times = ends[self._is_own]
        return np.concatenate([own, self._followers(ends)]) if self._waiting else own

    def _followers(self, ends: Times) -> Times:
        """Draw when those end that wait for a slot, given when the slots become free."""
        slots = [self._now_ns] * min(self._free, self._waiting) + ends.tolist()
        heapq.heapify(slots)
        chance = self._random.random_sample(self._waiting)
        taken = self._lengths[(chance * len(self._lengths)).astype(np.int64)].tolist()
        found = []
        for length_ns in taken:
            end_ns = slots[0] + length_ns
            heapq.heapreplace(slots, end_ns)
            found.append(end_ns)
        return np.array(found, np.int64)


def _same_draws() -> np.random.RandomState:
    """Give the same numbers every time: a page that is loaded again says the same."""
    _, state, _ = random.Random(_SEED).getstate()  # noqa: S311  (a draw, not a secret)
    draws = np.random.RandomState()
    draws.set_state(("MT19937", np.array(state[:-1], np.uint32), state[-1], 0, 0.0))
    return draws


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
