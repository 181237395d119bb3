"""The analysis of a step against a deliberately naive one that looks at every instant."""

import itertools
from fractions import Fraction
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rollscope.analysis.eta import estimate_end
from rollscope.analysis.idle import idle_split
from rollscope.analysis.path import critical_path
from rollscope.analysis.pools import CAUSES, sweep_pools
from rollscope.analysis.replicas import replica_split
from rollscope.analysis.rows import (
    EventRow,
    PhaseTotal,
    ProcessRow,
    SessionRow,
    SpanRow,
    StepFacts,
)
from rollscope.analysis.steps import summarise
from rollscope.analysis.sync import sync_split
from rollscope.analysis.tail import tail_split
from rollscope.analysis.trainer import trainer_split
from rollscope.analysis.verdict import judge_step
from rollscope.analysis.whatif import replay_step
from rollscope.model.kinds import Kind, Outcome, Status

TRIES = settings(max_examples=60)
LAST = 16
STEP_ID = 1000
TIMES = st.integers(0, LAST)
POOLS = ("a", "b", "c")
PAUSES = ("paused", "pause", "weights.sync", "weights.transfer", "resume")
SYNCS = PAUSES[1:]
STATES = (*PAUSES, "gate:memory", "gate:rate", "gate:outbox", "queue_empty", "something")
TRAINER = ("train", "wait", "weights.sync", "weights.transfer", "log", "update", "batch.wait")
PHASES = ("generate", "toolcall", "reward", "http", "queue_wait")


@st.composite
def ends(draw: st.DrawFn, start: int) -> tuple[int | None, Status]:
    status = draw(st.sampled_from([Status.OK, Status.OK, Status.ERROR, Status.LOST, Status.OPEN]))
    return (None if status is Status.OPEN else draw(st.integers(start, LAST + 4))), status


@st.composite
def spans(
    draw: st.DrawFn, /, first_id: int, names: tuple[str, ...], most: int, **given: Any
) -> list[SpanRow]:
    made: list[SpanRow] = []
    for span_id in range(first_id, first_id + draw(st.integers(0, most))):
        start = draw(TIMES)
        end, status = draw(ends(start))
        parents = [given.get("root"), *(row.span_id for row in made), 999_999]
        row = SpanRow(
            span_id=span_id,
            parent_id=draw(st.sampled_from(parents)),
            name=draw(st.sampled_from(names)),
            detail=draw(st.sampled_from([None, "x", "y"])),
            kind=given.get("kind", Kind.SPAN),
            lane=draw(st.sampled_from([None, *POOLS, "elsewhere"])) if "lanes" in given else None,
            link=draw(st.sampled_from([None, None, 1, 2, 100, 101, 77])),
            start_ns=start,
            end_ns=end,
            status=status,
        )
        made.append(row)
    return made


@st.composite
def sessions(draw: st.DrawFn) -> list[SessionRow]:
    made = []
    for span_id in range(1, 1 + draw(st.integers(0, 7))):
        start = draw(TIMES)
        end, status = draw(ends(start))
        row = SessionRow(
            span_id=span_id,
            process=draw(st.integers(1, 3)),
            pool=draw(st.sampled_from(POOLS)),
            host="host",
            start_ns=start,
            end_ns=end,
            status=status,
            outcome=draw(st.sampled_from([None, None, *Outcome])),
            consumed_ns=draw(st.one_of(st.none(), TIMES)),
            waited_ns=draw(st.one_of(st.none(), st.integers(0, 9))),
            version_start=draw(st.one_of(st.none(), st.integers(0, 3))),
            reward=draw(st.one_of(st.none(), st.floats(0, 1))),
            tokens_out=draw(st.one_of(st.none(), st.integers(0, 99))),
        )
        made.append(row)
    return made


@st.composite
def processes(draw: st.DrawFn) -> list[ProcessRow]:
    made = []
    for process in range(1, 1 + draw(st.integers(0, 3))):
        row = ProcessRow(
            process=process,
            host="host",
            pid=process,
            started_ns=draw(TIMES),
            last_seen_ns=draw(TIMES),
            status=draw(st.sampled_from(["alive", "ended", "dead", "silent"])),
            offset_ns=draw(st.sampled_from([0, 10**9, -(10**9)])),
            dropped=draw(st.sampled_from([0, 3])),
        )
        made.append(row)
    return made


@st.composite
def steps(draw: st.DrawFn) -> StepFacts:
    low, high = sorted((draw(TIMES), draw(TIMES)))
    all_sessions = draw(sessions())
    own = (
        draw(st.sets(st.sampled_from(all_sessions).map(lambda one: one.span_id)))
        if all_sessions
        else set()
    )
    is_open = draw(st.booleans())
    counts = st.dictionaries(st.sampled_from(POOLS), st.integers(0, 4), max_size=3)
    return StepFacts(
        span=SpanRow(
            span_id=STEP_ID,
            kind=Kind.STEP,
            name="step",
            step=4,
            start_ns=low,
            end_ns=None if is_open else high,
        ),
        now_ns=high if is_open else draw(st.integers(high, LAST + 4)),
        trainer=draw(spans(100, TRAINER, 5, root=STEP_ID)),
        sessions=[one for one in all_sessions if one.span_id in own],
        around=all_sessions,
        states=draw(spans(200, STATES, 5, lanes=True, kind=Kind.STATE)),
        events=[EventRow(name="weights.published", time_ns=draw(TIMES), version=2)],
        processes=draw(processes()),
        capacity=draw(counts),
        assumed_capacity=draw(counts),
        phases=[PhaseTotal(name="reward", detail="x", count=3, total_ns=draw(TIMES))],
    )


def is_open_at(row: SpanRow | SessionRow, at: int, facts: StepFacts) -> bool:
    end = facts.now_ns if row.end_ns is None else row.end_ns
    return row.start_ns <= at < end


def ended(row: SessionRow, facts: StepFacts) -> int:
    return max(facts.now_ns if row.end_ns is None else row.end_ns, row.start_ns)


def pools(facts: StepFacts) -> list[str]:
    return sorted({*facts.capacity, *facts.assumed_capacity, *(one.pool for one in facts.around)})


def holds(row: SpanRow, names: tuple[str, ...], pool: str, at: int, facts: StepFacts) -> bool:
    concerns = row.lane == pool or row.lane not in pools(facts)
    return row.name in names and concerns and is_open_at(row, at, facts)


def is_down(pool: str, at: int, facts: StepFacts) -> bool:
    mine = {one.process for one in facts.around if one.pool == pool}
    rows = [row for row in facts.processes if row.process in mine]
    gone = [row for row in rows if row.status in ("dead", "silent")]
    living = [row for row in rows if row not in gone and row.started_ns <= at]
    living += [row for row in gone if min(row.started_ns, row.last_seen_ns - 1) <= at]
    dead = [row for row in gone if row.last_seen_ns <= at]
    return bool(dead) and not [row for row in living if row not in dead]


def gate_at(pool: str, at: int, facts: StepFacts) -> str | None:
    closed = []
    for name in ("gate:memory", "gate:rate"):
        since = at
        while since >= facts.start_ns and any(
            holds(row, (name,), pool, since, facts) for row in facts.states
        ):
            since -= 1
        if since < at:
            closed.append((since, name))
    return min(closed)[1] if closed else None


def cause_at(pool: str, at: int, facts: StepFacts) -> str:
    syncs = [row for row in facts.trainer if row.name in SYNCS]
    own = facts.sessions
    if is_down(pool, at, facts):
        return "down"
    if any(holds(row, PAUSES, pool, at, facts) for row in facts.states + syncs):
        return "paused"
    if (gate := gate_at(pool, at, facts)) is not None:
        return gate
    if any(holds(row, ("gate:outbox",), pool, at, facts) for row in facts.states):
        return "buffer_full"
    if own and all(one.start_ns <= at for one in own):
        return "tail" if any(is_open_at(one, at, facts) for one in own) else "no_input"
    if any(holds(row, ("queue_empty",), pool, at, facts) for row in facts.states):
        return "no_input"
    return "unknown"


def running_at(pool: str, at: int, facts: StepFacts) -> int:
    return sum(one.pool == pool and is_open_at(one, at, facts) for one in facts.around)


def capacity(pool: str, facts: StepFacts) -> int:
    if pool in facts.capacity:
        return facts.capacity[pool]
    if pool in facts.assumed_capacity:
        return facts.assumed_capacity[pool]
    return max((running_at(pool, at, facts) for at in instants(facts)), default=0)


def idle_at(pool: str, at: int, facts: StepFacts) -> int:
    return max(capacity(pool, facts) - running_at(pool, at, facts), 0)


def instants(facts: StepFacts) -> range:
    return range(facts.start_ns, facts.end_ns)


def tail_at(at: int, facts: StepFacts) -> int:
    return sum(
        idle_at(pool, at, facts) for pool in pools(facts) if cause_at(pool, at, facts) == "tail"
    )


def nonzero(parts: dict[str, int]) -> dict[str, int]:
    return {name: ns for name, ns in parts.items() if ns}


@TRIES
@given(steps())
def test_every_slot_instant_is_busy_or_idle_for_the_first_cause_that_holds(
    facts: StepFacts,
) -> None:
    split = idle_split(facts)

    assert [pool.pool for pool in split.pools] == pools(facts)
    for pool in split.pools:
        expected: dict[str, int] = {}
        for at in instants(facts):
            cause = cause_at(pool.pool, at, facts)
            expected[cause] = expected.get(cause, 0) + idle_at(pool.pool, at, facts)
        busy = sum(running_at(pool.pool, at, facts) for at in instants(facts))
        assert pool.busy_ns == busy
        assert nonzero(pool.idle_ns) == nonzero(expected)
        assert pool.capacity == capacity(pool.pool, facts)
        assert pool.assumed == (pool.pool not in facts.capacity)
        assert pool.total_ns == busy + sum(pool.idle_ns.values())
        assert pool.total_ns == pool.capacity * facts.wall_ns + pool.over_ns
        assert pool.over_ns >= 0
        assert set(CAUSES) <= set(pool.idle_ns)
    assert split.total_ns == split.busy_ns + sum(split.idle_ns.values())
    for sweep in sweep_pools(facts):
        covered = [at for one in sweep.stretches for at in range(one.start_ns, one.end_ns)]
        assert covered == list(instants(facts))


@TRIES
@given(steps())
def test_the_bubble_is_what_stood_idle_for_the_tail_and_the_charges_share_it(
    facts: StepFacts,
) -> None:
    tail = tail_split(facts)

    assert tail.bubble_ns == sum(tail_at(at, facts) for at in instants(facts))
    assert tail.bubble_ns == sum(pool.bubble_ns for pool in tail.pools)
    assert tail.bubble_ns == sum(charge.charge_ns for charge in tail.charges)
    assert tail.bubble_ns == idle_split(facts).idle_ns["tail"]
    exact = {one.span_id: Fraction(0) for one in facts.sessions}
    for at in instants(facts):
        still = [one.span_id for one in facts.sessions if is_open_at(one, at, facts)]
        for session_id in still:
            exact[session_id] += Fraction(tail_at(at, facts), len(still))
    charged = {charge.session_id: charge.charge_ns for charge in tail.charges}
    for session_id, share in exact.items():
        assert abs(charged.get(session_id, 0) - share) <= len(exact)


@TRIES
@given(steps())
def test_the_holders_are_the_fewest_that_save_most_and_the_last_twentieth_makes_the_tail(
    facts: StepFacts,
) -> None:
    tail = tail_split(facts)

    order = sorted(facts.sessions, key=lambda one: (ended(one, facts), one.span_id))
    count = 0
    if tail.bubble_ns:
        for count in range(1, len(order) + 1):
            until = ended(order[-count - 1], facts) if count < len(order) else facts.start_ns
            left = sum(tail_at(at, facts) for at in instants(facts) if at < until)
            if tail.bubble_ns - left >= Fraction(4, 5) * tail.bubble_ns:
                break
    assert tail.holders == [one.span_id for one in reversed(order[len(order) - count :])]
    late = 0
    for at in instants(facts):
        over = sum(ended(one, facts) <= at for one in order)
        late += bool(order) and over < len(order) and 100 * over >= 95 * len(order)
    assert tail.tail_wall_ns == late


@TRIES
@given(steps())
def test_the_trainers_time_goes_to_the_innermost_span_that_has_a_meaning(
    facts: StepFacts,
) -> None:
    split = trainer_split(facts)

    meaning = {
        "train": "train", "update": "train", "wait": "waiting", "batch.wait": "waiting",
        "weights.sync": "sync", "weights.transfer": "sync",
    }  # fmt: skip
    parent_of = {row.span_id: row.parent_id for row in facts.trainer}
    expected = dict.fromkeys(("train", "sync", "filling", "stragglers", "other"), 0)
    for at in instants(facts):
        active = [
            row for row in facts.trainer if row.name in meaning and is_open_at(row, at, facts)
        ]
        around: set[int | None] = set()
        for row in active:
            parent = row.parent_id
            while parent is not None:
                around.add(parent)
                parent = parent_of.get(parent)
        inner = {meaning[row.name] for row in active if row.span_id not in around}
        part = next((part for part in ("train", "sync", "waiting") if part in inner), "other")
        if part == "waiting":
            part = "stragglers" if is_filled(at, facts) else "filling"
        expected[part] += 1
    assert msgspec.to_builtins(split) == {
        "wall_ns": facts.wall_ns, **{f"{part}_ns": ns for part, ns in expected.items()}
    }  # fmt: skip


def needed_by(facts: StepFacts) -> list[SessionRow]:
    needed = [one for one in facts.sessions if one.consumed_ns is not None]
    if needed and facts.span.end_ns is not None:
        return needed
    return [one for one in facts.sessions if one.outcome in (None, Outcome.ACCEPTED)] or list(
        facts.sessions
    )


def is_filled(at: int, facts: StepFacts) -> bool:
    needed = needed_by(facts)
    came = 0
    for one in needed:
        times = [time for time in (one.end_ns, one.consumed_ns) if time is not None]
        came += any(time <= at for time in times)
    all_started = all(one.start_ns <= at for one in needed)
    return bool(needed) and all_started and 100 * came >= 95 * len(needed)


@TRIES
@given(steps())
def test_weight_sync_is_split_without_counting_an_instant_twice(facts: StepFacts) -> None:
    split = sync_split(facts)

    rows = [row for row in facts.trainer + facts.states if row.name in SYNCS]
    expected = dict.fromkeys(("transfer", "pause", "resume", "rest"), 0)
    blocked = in_flight = 0
    for at in instants(facts):
        names = {row.name for row in rows if is_open_at(row, at, facts)}
        for name, part in (
            ("weights.transfer", "transfer"), ("pause", "pause"), ("resume", "resume"),
            ("weights.sync", "rest"),
        ):  # fmt: skip
            if name in names:
                expected[part] += 1
                break
        for pool in pools(facts):
            if any(holds(row, SYNCS, pool, at, facts) for row in rows):
                is_paused = cause_at(pool, at, facts) == "paused"
                blocked += idle_at(pool, at, facts) * is_paused
                in_flight += running_at(pool, at, facts)
    parts = split.transfer_ns, split.pause_ns, split.resume_ns, split.rest_ns
    assert parts == tuple(expected.values())
    assert split.total_ns == sum(parts)
    assert (split.blocked_ns, split.in_flight_ns) == (blocked, in_flight)
    for lane in split.lanes:
        own = lane.transfer_ns, lane.pause_ns, lane.resume_ns, lane.rest_ns
        assert lane.total_ns == sum(own) <= split.total_ns


MS = 1_000_000


def stretched(facts: StepFacts) -> StepFacts:
    """Set all times so far apart that no two count as one."""
    plain: Any = msgspec.to_builtins(facts)
    longer: Any = _times(plain, 2 * MS)
    return msgspec.convert(longer, StepFacts)


def _times(value: Any, factor: int) -> Any:
    if isinstance(value, list):
        return [_times(one, factor) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: one * factor if key.endswith("_ns") and one is not None else _times(one, factor)
        for key, one in value.items()
    }


@st.composite
def steps_with_spans(draw: st.DrawFn) -> tuple[StepFacts, dict[int, list[SpanRow]]]:
    facts = draw(steps())
    inside = {}
    for session in facts.around:
        root = session.span_id
        rows = draw(spans(root * 10_000, PHASES, 4, root=root, kind=Kind.PHASE))
        for row in rows:
            row.session_id = root
        inside[root] = rows
    if draw(st.booleans()):
        for rows in inside.values():
            for row in rows:
                row.start_ns *= 2 * MS
                row.end_ns = None if row.end_ns is None else row.end_ns * 2 * MS
        facts = stretched(facts)
    return facts, inside


@TRIES
@given(steps_with_spans())
def test_the_path_tiles_the_step_whatever_was_recorded(
    given_step: tuple[StepFacts, dict[int, list[SpanRow]]],
) -> None:
    facts, inside = given_step

    path = critical_path(facts, lambda session_id: inside[session_id])

    at = facts.start_ns
    for segment in path.segments:
        assert segment.start_ns == at
        assert segment.end_ns > segment.start_ns
        at = segment.end_ns
    assert at == facts.end_ns
    assert sum(path.totals.values()) == path.wall_ns == facts.wall_ns
    assert list(path.totals)[-1] == "other"
    assert 0 <= path.inferred_hops <= path.hops
    assert path.hops or not any(segment.inferred for segment in path.segments)
    for before, after in itertools.pairwise(path.segments):
        assert (before.name, before.span_id) != (after.name, after.span_id) or before.name in (
            "queue", "other",
        )  # fmt: skip
    if path.slack is not None:
        assert 0 < path.slack.earlier_ns <= facts.wall_ns
        assert path.slack.next_session not in path.slack.sessions


@TRIES
@given(steps())
def test_without_links_the_path_is_the_one_found_by_trying_everything(facts: StepFacts) -> None:
    facts = stretched(facts)
    for row in facts.trainer:
        row.link = None

    path = critical_path(facts, lambda _: [])

    walk = NaiveWalk(facts)
    walk.inside(None, facts.start_ns, facts.end_ns)
    told = [(one.start_ns, one.end_ns, one.name, one.session_id) for one in path.segments]
    assert told == walk.found[::-1]
    assert path.hops == walk.hops


class NaiveWalk:
    """Walks back by looking at every child, session and state each time."""

    def __init__(self, facts: StepFacts) -> None:
        self.facts = facts
        self.found: list[tuple[int, int, str, int | None]] = []
        self.hops = 0
        has_waits = any("wait" in row.name for row in facts.trainer)
        all_ran_inside = all(
            facts.start_ns <= one.start_ns and came_ns(one, facts) <= facts.end_ns
            for one in facts.sessions
        )
        self.ran = facts.sessions if all_ran_inside and not has_waits else []

    def tell(self, low: int, high: int, name: str, session_id: int | None = None) -> int:
        low = max(low, self.facts.start_ns)
        if low < high:
            self.found.append((low, high, name, session_id))
        return min(low, high)

    def end(self, row: SpanRow) -> int:
        return self.facts.now_ns if row.end_ns is None else row.end_ns

    def inside(self, node: SpanRow | None, low: int, at: int) -> int:
        ids = {row.span_id for row in self.facts.trainer}
        while at > low:
            below = [
                row
                for row in self.facts.trainer
                if (row.parent_id == node.span_id if node else row.parent_id not in ids)
                and max(low, row.start_ns) < self.end(row) <= at
            ]
            if not below:
                return self.own(node, low, at)
            child = max(below, key=lambda row: (self.end(row), -row.start_ns, row.span_id))
            start, end = max(low, child.start_ns), self.end(child)
            at = self.own(node, end, at)
            if at < end:
                continue
            session = self.last_of(needed_by(self.facts), end) if "wait" in child.name else None
            if session is None or came_ns(session, self.facts) <= start:
                at = self.inside(child, start, end)
            else:
                at = self.session(session, child.name, end)
        return at

    def own(self, node: SpanRow | None, low: int, at: int) -> int:
        while node is None and at > low:
            session = self.last_of(self.ran, at)
            if session is None or came_ns(session, self.facts) <= low:
                break
            at = self.session(session, "other", at)
        return self.tell(low, at, node.name if node else "other")

    def last_of(self, sessions: list[SessionRow], at: int) -> SessionRow | None:
        there = [
            one
            for one in sessions
            if one.start_ns < came_ns(one, self.facts) <= at and one.start_ns < at
        ]
        order = {one.span_id: (came_ns(one, self.facts), -one.start_ns) for one in there}
        return max(there, key=lambda one: (order[one.span_id], one.span_id), default=None)

    def session(self, session: SessionRow, wait: str, at: int) -> int:
        self.hops += 1
        at = self.tell(came_ns(session, self.facts), at, wait)
        at = self.tell(session.start_ns, at, "other", session.span_id)
        if at > self.facts.start_ns:
            at = self.tell(at - (session.waited_ns or 0), at, "queue", session.span_id)
        names = (*PAUSES, "gate:memory", "gate:rate", "gate:outbox")
        closed = [
            row
            for row in self.facts.states
            if row.name in names and row.start_ns < at == self.end(row)
            if row.lane == session.pool or row.lane not in pools(self.facts)
        ]
        if closed and at > self.facts.start_ns:
            self.hops += 1
            first = min(closed, key=lambda row: (row.start_ns, row.span_id))
            at = self.tell(first.start_ns, at, first.name)
        return at


def came_ns(session: SessionRow, facts: StepFacts) -> int:
    times = (session.end_ns, session.consumed_ns, facts.now_ns)
    return max(next(time for time in times if time is not None), session.start_ns)


@TRIES
@given(steps_with_spans())
def test_whatever_was_recorded_there_is_a_summary_a_verdict_and_a_forecast(
    given_step: tuple[StepFacts, dict[int, list[SpanRow]]],
) -> None:
    facts, inside = given_step

    def spans_of(session_id: int) -> list[SpanRow]:
        return inside[session_id]

    summary = summarise(facts, spans_of)
    verdict = judge_step(facts, spans_of, history=[summary] * 6)
    eta = estimate_end(facts, waiting=2)
    replay = replay_step(facts)
    replicas = replica_split(facts)

    assert sum(summary.path_ns.values()) == summary.wall_ns
    assert sum(summary.outcomes.values()) == summary.sessions
    assert 0 <= summary.waste_share <= 1
    causes = [one for one in verdict.findings if one.rule not in ("data", "clock")]
    assert len(causes) <= 3
    assert bool(causes) == (verdict.closing is None)
    assert eta.last_end is None or eta.last_end.p10_ns <= eta.last_end.p50_ns
    rollouts = [one.rollout_ns for one in replay.replays]
    assert all(one.use <= 1 for one in replay.replays)
    assert len(rollouts) in (0, 5)
    assert replicas.imbalance >= 1 or replicas.imbalance == 0
    for answer in (summary, verdict, eta, replay, replicas):
        assert msgspec.json.decode(msgspec.json.encode(answer), type=type(answer)) == answer
