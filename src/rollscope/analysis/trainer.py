"""The trainer's own time in a step: training, syncing, and waiting for sessions."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from rollscope.analysis.intervals import Interval, clip
from rollscope.analysis.pools import known_pools
from rollscope.analysis.ranks import nearest_rank
from rollscope.analysis.roles import is_sync, role_of
from rollscope.analysis.rows import SessionRow, StepFacts, open_interval
from rollscope.model.kinds import Kind, Outcome

__all__ = ["TrainerSplit", "needed_sessions", "trainer_split"]

_PRECEDENCE: Final = ("train", "sync", "waiting")
_FOREVER: Final = 1 << 63


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
