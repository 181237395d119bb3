from collections.abc import Sequence
from typing import Any

from rollscope.analysis.path import CriticalPath, critical_path
from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.model.kinds import Kind

S = 1_000_000_000
MS = 1_000_000
STEP = 1000


def span(span_id: int, name: str, start: int, end: int | None, **given: Any) -> SpanRow:
    given.setdefault("parent_id", STEP)
    end_ns = None if end is None else end * S
    return SpanRow(span_id=span_id, name=name, start_ns=start * S, end_ns=end_ns, **given)


def phase(span_id: int, name: str, start: int, end: int | None, **given: Any) -> SpanRow:
    return span(span_id, name, start, end, kind=Kind.PHASE, **given)


def session(span_id: int, start: int, end: int | None, **given: Any) -> SessionRow:
    end_ns = None if end is None else end * S
    return SessionRow(span_id=span_id, pool="r0", start_ns=start * S, end_ns=end_ns, **given)


def step(*trainer: SpanRow, wall: int = 100, **given: Any) -> StepFacts:
    given.setdefault("around", given.get("sessions", []))
    row = span(STEP, "step", 0, wall, kind=Kind.STEP, parent_id=None)
    return StepFacts(span=row, now_ns=wall * S, trainer=list(trainer), **given)


def walk(facts: StepFacts, inside: Sequence[SpanRow] = ()) -> CriticalPath:
    return critical_path(
        facts, lambda session_id: [r for r in inside if r.session_id == session_id]
    )


def told(path: CriticalPath) -> list[tuple[float, float, str]]:
    return [(one.start_ns / S, one.end_ns / S, one.name) for one in path.segments]


def test_the_last_to_end_leads_to_the_one_before_and_gaps_are_other() -> None:
    path = walk(step(span(1, "load", 0, 20), span(2, "log", 5, 30), span(3, "train", 40, 90)))

    assert told(path) == [
        (0, 5, "other"), (5, 30, "log"), (30, 40, "other"), (40, 90, "train"), (90, 100, "other"),
    ]  # fmt: skip
    assert path.totals == {"train": 50 * S, "log": 25 * S, "other": 25 * S}
    assert list(path.totals) == ["train", "log", "other"]
    assert (path.hops, path.slack) == (0, None)


def test_time_that_no_child_covers_is_the_spans_own() -> None:
    path = walk(
        step(
            span(1, "train", 0, 100, detail="actor"),
            span(2, "forward", 10, 40, parent_id=1),
            span(3, "backward", 40, 80, parent_id=1),
        )
    )

    assert told(path) == [
        (0, 10, "train"), (10, 40, "forward"), (40, 80, "backward"), (80, 100, "train"),
    ]  # fmt: skip
    assert {one.within for one in path.segments} == {"train"}
    assert {one.detail for one in path.segments} == {"actor"}


def test_a_wait_leads_to_the_session_it_was_recorded_to_wait_for() -> None:
    facts = step(
        span(1, "wait", 20, 80, link=8),
        span(2, "train", 80, 100),
        sessions=[session(7, 20, 79), session(8, 30, 70)],
    )
    inside = [
        phase(81, "generate", 30, 50, parent_id=8, session_id=8),
        phase(82, "reward", 55, 70, parent_id=8, session_id=8, detail="judge"),
    ]

    path = walk(facts, inside)

    assert told(path) == [
        (0, 30, "other"), (30, 50, "generate"), (50, 55, "other"), (55, 70, "reward"),
        (70, 80, "wait"), (80, 100, "train"),
    ]  # fmt: skip
    assert (path.hops, path.inferred_hops) == (1, 0)
    reward = path.segments[3]
    assert (reward.detail, reward.session_id, reward.span_id) == ("judge", 8, 82)
    assert not reward.inferred


def test_without_a_link_the_last_session_to_come_is_inferred() -> None:
    facts = step(
        span(1, "wait", 20, 80),
        span(2, "train", 80, 100),
        sessions=[session(7, 20, 79), session(8, 30, 70), session(9, 0, 95)],
    )

    path = walk(facts)

    assert (path.hops, path.inferred_hops) == (1, 1)
    assert [one.session_id for one in path.segments] == [None, 7, None, None]
    assert [one.inferred for one in path.segments] == [False, True, False, False]


def test_a_session_that_the_step_did_not_consume_ends_no_wait() -> None:
    facts = step(
        span(1, "wait", 0, 100),
        sessions=[session(7, 0, 90), session(8, 0, 60, consumed_ns=99 * S)],
    )

    assert told(walk(facts)) == [(0, 60, "other"), (60, 100, "wait")]
    assert walk(facts).segments[0].session_id == 8


def test_a_wait_that_no_session_ended_stands_for_itself() -> None:
    path = walk(step(span(1, "wait", 50, 80), sessions=[session(7, 0, 40)]))

    assert told(path) == [(0, 50, "other"), (50, 80, "wait"), (80, 100, "other")]
    assert path.hops == 0


def test_a_step_that_only_ran_sessions_leads_to_the_last_of_them() -> None:
    sessions = [session(1, 0, 30), session(2, 10, 80, outcome="rejected"), session(3, 5, 60)]
    inside = [phase(21, "generate", 10, 50, session_id=2, parent_id=2)]
    inside += [phase(22, "toolcall", 50, 80, session_id=2, parent_id=2, detail="python")]

    path = walk(step(sessions=sessions), inside)

    assert told(path) == [
        (0, 10, "other"), (10, 50, "generate"), (50, 80, "toolcall"), (80, 100, "other"),
    ]  # fmt: skip
    assert (path.hops, path.inferred_hops) == (1, 1)
    assert [one.inferred for one in path.segments] == [False, True, True, False]


def test_sessions_one_after_the_other_are_followed_back_to_the_first() -> None:
    train = span(9, "train", 70, 100)
    path = walk(step(train, sessions=[session(1, 0, 30), session(2, 30, 60)]))

    assert told(path) == [
        (0, 30, "other"),
        (30, 60, "other"),
        (60, 70, "other"),
        (70, 100, "train"),
    ]
    assert [one.session_id for one in path.segments] == [1, 2, None, None]


def test_sessions_that_outlive_their_step_were_not_what_it_did() -> None:
    behind = [session(1, 0, 60), session(2, 10, 110)]
    assert [one.session_id for one in walk(step(sessions=behind)).segments] == [None]

    before = [session(1, -5, 60)]
    assert [one.session_id for one in walk(step(sessions=before)).segments] == [None]


def test_where_a_wait_is_recorded_the_rest_of_the_step_is_its_own() -> None:
    path = walk(step(span(1, "wait", 0, 20), sessions=[session(5, 0, 60)]))

    assert told(path) == [(0, 20, "wait"), (20, 100, "other")]


def test_before_a_session_come_its_queue_and_what_released_it() -> None:
    gate = span(5, "gate:staleness", 10, 40, kind=Kind.STATE, lane="r0", parent_id=None)
    other = span(6, "gate:rate", 0, 40, kind=Kind.STATE, lane="r1", parent_id=None)
    facts = step(
        span(1, "wait", 20, 100),
        span(2, "load", 0, 8),
        sessions=[session(7, 45, 100, waited_ns=5 * S)],
        states=[gate, other],
        capacity={"r1": 1},
    )

    path = walk(facts)

    assert told(path) == [
        (0, 8, "load"), (8, 10, "other"), (10, 40, "gate:staleness"), (40, 45, "queue"),
        (45, 100, "other"),
    ]  # fmt: skip
    assert (path.hops, path.inferred_hops) == (2, 2)


def test_the_sync_of_the_trainer_that_ended_when_the_session_was_submitted_follows() -> None:
    facts = step(
        span(1, "weights.sync", 0, 30),
        span(2, "weights.transfer", 10, 30, parent_id=1),
        span(3, "wait", 30, 100),
        sessions=[session(7, 31, 100, waited_ns=S)],
    )

    assert told(walk(facts)) == [
        (0, 10, "weights.sync"), (10, 30, "weights.transfer"), (30, 31, "queue"),
        (31, 100, "other"),
    ]  # fmt: skip


def test_a_session_older_than_the_step_takes_all_of_it() -> None:
    facts = step(span(1, "wait", 0, 100), sessions=[session(7, -50, 100, waited_ns=9 * S)])

    assert told(walk(facts)) == [(0, 100, "other")]


def test_a_link_to_a_span_of_the_trainer_is_followed_even_in_a_circle() -> None:
    facts = step(
        span(1, "wait", 50, 100, link=2),
        span(2, "prefetch", 10, 90),
        span(3, "wait", 20, 80, parent_id=2, link=1),
    )

    assert told(walk(facts)) == [
        (0, 10, "other"), (10, 20, "prefetch"), (20, 80, "wait"), (80, 90, "prefetch"),
        (90, 100, "wait"),
    ]  # fmt: skip


def test_ends_within_a_millisecond_count_as_in_order() -> None:
    late = span(1, "train", 0, 100)
    late.end_ns = 100 * S + MS
    too_late = span(2, "log", 50, 100)
    too_late.end_ns = 100 * S + MS + 1

    assert told(walk(step(late, too_late))) == [(0, 100, "train")]


def test_children_outside_of_their_parent_are_cut() -> None:
    path = walk(step(span(1, "train", 20, 60), span(2, "forward", 10, 40, parent_id=1)))

    assert told(path) == [
        (0, 20, "other"), (20, 40, "forward"), (40, 60, "train"), (60, 100, "other"),
    ]  # fmt: skip


def test_a_running_step_waits_for_its_open_sessions() -> None:
    facts = step(span(1, "wait", 0, None), sessions=[session(7, 50, None), session(8, 20, None)])
    facts.span.end_ns = None
    inside = [phase(81, "toolcall", 30, None, parent_id=8, session_id=8)]

    assert told(walk(facts, inside)) == [
        (0, 20, "other"), (20, 30, "other"), (30, 100, "toolcall"),
    ]  # fmt: skip


def test_what_a_pool_says_of_itself_is_not_the_trainers_work() -> None:
    state = span(1, "pause", 50, 100, kind=Kind.STATE, lane="r0")

    assert told(walk(step(state, capacity={"r0": 1}))) == [(0, 100, "other")]


def test_very_deep_nesting_ends() -> None:
    rows = [span(n, f"level {n}", 0, 100, parent_id=n - 1) for n in range(STEP + 1, STEP + 3000)]

    assert [one.name for one in walk(step(*rows)).segments] == [f"level {STEP + 64}"]


def test_without_the_holders_the_step_ends_earlier_and_the_next_is_named() -> None:
    # Nine of ten slots idle from 30 to 90; without session 10 the wait would end at 30.
    sessions = [session(n, 0, 30) for n in range(1, 10)]
    facts = step(
        span(1001, "wait", 0, 90),
        span(1002, "train", 90, 100),
        sessions=[*sessions, session(10, 0, 90)],
        capacity={"r0": 10},
    )
    inside = [
        phase(n * 100 + part, name, *when, parent_id=n, session_id=n, detail=detail)
        for n in range(1, 11)
        for part, (name, detail, when) in enumerate(
            [("generate", None, (0, 10)), ("reward", "judge", (10, 30))]
        )
    ]

    slack = walk(facts, inside).slack

    assert slack is not None
    assert (slack.sessions, slack.earlier_ns) == ([10], 60 * S)
    assert (slack.next_name, slack.next_detail) == ("reward", "judge")
    assert slack.next_session in range(1, 10)


def test_nothing_is_won_without_holders_that_the_step_did_not_wait_for() -> None:
    facts = step(span(1, "train", 0, 100), sessions=[session(7, 0, 90)], capacity={"r0": 2})

    assert walk(facts).slack is None
