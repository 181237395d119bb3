"""The critical path of a step: the chain of work that its end waited for.

It is walked back from the end. Inside of a node the child that ended last comes first, then the one
that ended last before that child began, and so on; what no child covers is the node's own. A wait
of the trainer leads on to what ended it. A step that recorded no wait and ran all of its sessions
itself, as plain loops do, spent its own time on them.
"""

import bisect
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from rollscope.analysis.pathnodes import Node, hand_down, has_meaning, make_node, make_tree
from rollscope.analysis.pools import known_pools, pools_of
from rollscope.analysis.roles import GATE_PREFIX, PAUSE_STATES, is_sync
from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts, open_interval
from rollscope.analysis.tail import TailSplit, tail_split
from rollscope.analysis.trainer import needed_sessions
from rollscope.model.kinds import Kind

__all__ = ["OTHER", "QUEUE", "CriticalPath", "Segment", "Slack", "SpansOf", "critical_path"]

OTHER: Final = "other"
QUEUE: Final = "queue"

SpansOf = Callable[[int], Sequence[SpanRow]]
"""Gives the spans of one session, the session itself or not."""

_GRACE_NS: Final = 1_000_000
"""Ends recorded by two threads or hosts are not in perfect order."""
_DEEPEST: Final = 64
"""Below this depth time stays with the node; it also bounds chains of links."""


class Segment(msgspec.Struct, kw_only=True):
    """A stretch of the path that one span, session or the step itself stands for."""

    start_ns: int
    end_ns: int
    name: str
    """The span's; `other` for a step's or session's own time, `queue` before a session."""
    detail: str | None = None
    """Of which tool, environment, reward function or model: that of `within`, else its own."""
    within: str | None = None
    """The nearest phase, or span with a known role, that it is or lies in."""
    session_id: int | None = None
    span_id: int | None = None
    inferred: bool = False
    """Whether it is on the path by order of time only, not by a recorded link."""

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns


class Slack(msgspec.Struct, kw_only=True):
    """What would be gained without the sessions that held the tail."""

    sessions: list[int]
    earlier_ns: int
    """How much earlier the step would end, if the work after them took as long."""
    next_session: int
    """Whom the step would then wait for."""
    next_name: str
    """What took most of that session."""
    next_detail: str | None = None


class CriticalPath(msgspec.Struct, kw_only=True):
    """The path; the segments tile the step exactly, in order."""

    wall_ns: int
    segments: list[Segment]
    totals: dict[str, int]
    """By name, the largest first and `other` last; they add up to `wall_ns`."""
    hops: int
    """How often the path leads from one span to another that is not inside of it."""
    inferred_hops: int
    slack: Slack | None = None


def critical_path(
    facts: StepFacts, spans_of: SpansOf, tail: TailSplit | None = None
) -> CriticalPath:
    """Walk the critical path of a step.

    Args:
        facts: The step.
        spans_of: Gives the spans of a session; asked only for sessions on the path.
        tail: What `tail_split` gave for the step, if at hand.
    """
    walk = _Walk(facts, spans_of)
    walk.run()
    segments = walk.segments[::-1]
    slack = _slack(facts, walk, tail_split(facts) if tail is None else tail)
    totals: dict[str, int] = {}
    for segment in segments:
        totals[segment.name] = totals.get(segment.name, 0) + segment.length_ns
    other_ns = totals.pop(OTHER, 0)
    by_size = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return CriticalPath(
        wall_ns=facts.wall_ns,
        segments=segments,
        totals={**dict(by_size), OTHER: other_ns},
        hops=walk.hops,
        inferred_hops=walk.inferred_hops,
        slack=slack,
    )


class _Left(msgspec.Struct):
    """A wait that the walk left for the session that ended it."""

    wait_start_ns: int
    end_ns: int
    session_id: int


class _Walk:
    """One walk from the end of a step to its start; every move goes back in time."""

    def __init__(self, facts: StepFacts, spans_of: SpansOf) -> None:
        self.segments: list[Segment] = []
        """In the order of the walk, the last first."""
        self.hops = 0
        self.inferred_hops = 0
        self.left: list[_Left] = []
        self._facts = facts
        self._spans_of = spans_of
        self._floor = facts.start_ns
        self._is_inferred = False
        self._followed: set[int | None] = set()
        self._pools = known_pools(facts)
        self._sessions = {one.span_id: one for one in (*facts.around, *facts.sessions)}
        self.needed = sorted(needed_sessions(facts), key=lambda one: _came(one, facts.now_ns))
        rows = [row for row in facts.trainer if _is_trainers(row, self._pools)]
        root = Node(facts.start_ns, facts.end_ns, OTHER, span_id=facts.span.span_id)
        self._root = make_tree(root, rows, facts.now_ns)
        self._trainer = {node.span_id: node for node in hand_down(self._root, of_trainer=True)}
        self._states = [row for row in facts.states if _releases(row)]
        self._ran = sorted(_ran_inside(facts), key=lambda one: _came(one, facts.now_ns))
        if any(node.is_wait for node in self._trainer.values()):
            self._ran = []

    def run(self) -> None:
        """Walk all of the step."""
        self._inside(self._root, self._floor, self._facts.end_ns, 0)

    def largest_of(self, session: SessionRow) -> tuple[str, str | None]:
        """Say what took most of a session, leaving the walk as it was."""
        kept, self.segments = self.segments, []
        low = max(session.start_ns, self._floor)
        self._inside(self._session_tree(session), low, _came(session, self._facts.now_ns)[0], 0)
        found, self.segments = self.segments, kept
        sizes: dict[tuple[str, str | None], int] = {}
        for segment in found:
            key = segment.within or segment.name, segment.detail
            sizes[key] = sizes.get(key, 0) + segment.length_ns
        return max(sizes, key=lambda key: sizes[key], default=(OTHER, None))

    def _inside(self, node: Node, low: int, high: int, depth: int) -> int:
        """Tile the time from `low` to `high`; say how far back that led, at most `low`."""
        at = high
        remaining = len(node.children) if depth < _DEEPEST else 0
        while at > low:
            child = None
            while remaining and child is None:
                remaining -= 1
                found = node.children[remaining]
                if found.end_ns <= at + _GRACE_NS and found.start_ns < min(found.end_ns, at):
                    child = found
            if child is None or child.end_ns <= low:
                return self._own(node, low, at, depth)
            end = min(child.end_ns, at)
            at = self._own(node, end, at, depth)
            if at < end:
                continue
            at = self._enter(child, max(child.start_ns, low), end, depth + 1)
        return at

    def _own(self, node: Node, low: int, high: int, depth: int) -> int:
        """Give a node its own time; that of a step which ran its sessions leads on to them."""
        at = high
        while node is self._root and at > low:
            session = _last_to_come(self._ran, at, self._facts.now_ns)
            end = at if session is None else min(_came(session, self._facts.now_ns)[0], at)
            if session is None or end <= low:
                break
            self._hop(is_inferred=True)
            self._add(node, end, at)
            self.left.append(_Left(low, end, session.span_id))
            before, self._is_inferred = self._is_inferred, True
            at = self._session(session, end, depth)
            self._is_inferred = before
        return min(self._add(node, low, at), at)

    def _enter(self, node: Node, low: int, high: int, depth: int) -> int:
        if node.is_wait and depth < _DEEPEST and node.span_id not in self._followed:
            self._followed.add(node.span_id)
            reached = self._follow(node, low, high, depth)
            if reached is not None:
                return reached
        return self._inside(node, low, high, depth)

    def _follow(self, wait: Node, low: int, high: int, depth: int) -> int | None:
        """Go on from a wait to what ended it; None if nothing is known to have."""
        session = self._sessions.get(wait.link) if wait.link is not None else None
        linked = self._trainer.get(wait.link) if wait.link is not None else None
        if linked is not None and linked.end_ns > high + _GRACE_NS:
            return None
        is_inferred = session is None and linked is None
        if is_inferred:
            session = _last_to_come(self.needed, high, self._facts.now_ns)
        if session is not None:
            start, end = session.start_ns, _came(session, self._facts.now_ns)[0]
        elif linked is not None:
            start, end = linked.start_ns, linked.end_ns
        else:
            return None
        end = min(end, high)
        if end <= low or start >= end:
            return None
        self._hop(is_inferred)
        self._add(wait, end, high)
        before, self._is_inferred = self._is_inferred, self._is_inferred or is_inferred
        if session is not None:
            self.left.append(_Left(low, end, session.span_id))
            at = self._session(session, end, depth)
        else:
            at = self._enter(linked, max(start, self._floor), end, depth + 1) if linked else low
        self._is_inferred = before
        return at

    def _session(self, session: SessionRow, high: int, depth: int) -> int:
        """Walk a session, its wait for a slot, and what released it; say how far back that led."""
        low = max(session.start_ns, self._floor)
        at = self._inside(self._session_tree(session), low, high, depth + 1)
        if session.waited_ns is not None and session.waited_ns > 0 and at > self._floor:
            node = Node(0, 0, QUEUE, within=QUEUE, session_id=session.span_id)
            at = self._add(node, max(at - session.waited_ns, self._floor), at)
        ended_here = [
            row
            for row in self._states
            if row.start_ns < at
            and abs(open_interval(row, self._facts.now_ns)[1] - at) <= _GRACE_NS
            and session.pool in pools_of(row, self._pools)
        ]
        if ended_here and at > self._floor:
            row = min(ended_here, key=lambda row: (row.start_ns, row.span_id))
            self._hop(is_inferred=True)
            before, self._is_inferred = self._is_inferred, True
            state = make_node(row, self._facts.now_ns)
            state.within = row.name
            at = self._add(state, max(row.start_ns, self._floor), at)
            self._is_inferred = before
        return at

    def _session_tree(self, session: SessionRow) -> Node:
        start, end = open_interval(session, self._facts.now_ns)
        root = Node(start, end, OTHER, session_id=session.span_id, span_id=session.span_id)
        hand_down(
            make_tree(root, self._spans_of(session.span_id), self._facts.now_ns), of_trainer=False
        )
        return root

    def _hop(self, is_inferred: bool) -> None:
        self.hops += 1
        self.inferred_hops += is_inferred

    def _add(self, node: Node, low: int, high: int) -> int:
        """Give a node the time from `low` to `high`, if that is any; say `low`."""
        if low < high:
            segment = Segment(
                start_ns=low,
                end_ns=high,
                name=node.name,
                detail=node.detail,
                within=node.within,
                session_id=node.session_id,
                span_id=node.span_id,
                inferred=self._is_inferred,
            )
            self.segments.append(segment)
        return low


def _is_trainers(row: SpanRow, pools: Sequence[str]) -> bool:
    """Say whether a row is the trainer's own work: what a pool says of itself is not."""
    return row.kind is not Kind.STATE or (has_meaning(row.name) and row.lane not in pools)


def _releases(row: SpanRow) -> bool:
    return is_sync(row.name) or row.name in PAUSE_STATES or row.name.startswith(GATE_PREFIX)


def _came(session: SessionRow, now_ns: int) -> tuple[int, int, int]:
    """Say when a session was there for the trainer; of equals, the longest counts as last."""
    end_ns = session.consumed_ns if session.end_ns is None else session.end_ns
    end_ns = max(now_ns if end_ns is None else end_ns, session.start_ns)
    return end_ns, -session.start_ns, session.span_id


def _last_to_come(sessions: Sequence[SessionRow], at: int, now_ns: int) -> SessionRow | None:
    """Give the one that was there last at some time; they are in the order in which they came."""

    def came(session: SessionRow) -> int:
        return _came(session, now_ns)[0]

    position = bisect.bisect_right(sessions, at + _GRACE_NS, key=came)
    while position:
        position -= 1
        if sessions[position].start_ns < min(came(sessions[position]), at):
            return sessions[position]
    return None


def _ran_inside(facts: StepFacts) -> list[SessionRow]:
    """Give the sessions of a step that began and ended within it, if all of them did."""
    last_ns = facts.end_ns + _GRACE_NS
    for one in facts.sessions:
        if one.start_ns < facts.start_ns or _came(one, facts.now_ns)[0] > last_ns:
            return []
    return facts.sessions


def _slack(facts: StepFacts, walk: _Walk, tail: TailSplit) -> Slack | None:
    """Say what the step would gain without the holders of its tail, if it waited for one."""
    holders = set(tail.holders)
    left = next((one for one in walk.left if one.session_id in holders), None)
    others = [session for session in walk.needed if session.span_id not in holders]
    if left is None or not others or tail.is_broad:
        return None
    last = others[-1]
    until = max(_came(last, facts.now_ns)[0], left.wait_start_ns)
    if until >= left.end_ns:
        return None
    name, detail = walk.largest_of(last)
    return Slack(
        sessions=tail.holders,
        earlier_ns=left.end_ns - until,
        next_session=last.span_id,
        next_name=name,
        next_detail=detail,
    )
