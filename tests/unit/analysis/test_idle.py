from typing import Any

from rollscope.analysis.idle import idle_split, needed_sessions, sweep_pools, trainer_split
from rollscope.analysis.rows import ProcessRow, SessionRow, SpanRow, StepFacts
from rollscope.model.kinds import Kind, Outcome

S = 1_000_000_000


def session(span_id: int, start: int, end: int | None, **given: Any) -> SessionRow:
    given.setdefault("pool", "r0")
    end_ns = None if end is None else end * S
    return SessionRow(span_id=span_id, start_ns=start * S, end_ns=end_ns, **given)


def span(span_id: int, name: str, start: int, end: int | None, **given: Any) -> SpanRow:
    end_ns = None if end is None else end * S
    return SpanRow(span_id=span_id, name=name, start_ns=start * S, end_ns=end_ns, **given)


def state(span_id: int, name: str, start: int, end: int, lane: str | None = "r0") -> SpanRow:
    return span(span_id, name, start, end, lane=lane, kind=Kind.STATE)


def step(wall: int = 100, **given: Any) -> StepFacts:
    given.setdefault("around", given.get("sessions", []))
    given.setdefault("now_ns", wall * S)
    return StepFacts(span=span(1000, "step", 0, wall, kind=Kind.STEP), **given)


def seconds(parts: dict[str, int]) -> dict[str, float]:
    return {name: ns / S for name, ns in parts.items() if ns}


def test_slots_are_busy_then_idle_for_the_tail_and_then_without_input() -> None:
    # Two slots: one session of 60 s, one of 40 s; the trainer trains from 60 to 100.
    facts = step(sessions=[session(1, 0, 60), session(2, 0, 40)], capacity={"r0": 2})

    split = idle_split(facts)

    assert split.total_ns == 200 * S
    assert split.busy_ns == 100 * S
    assert seconds(split.idle_ns) == {"tail": 20, "no_input": 80}
    assert not split.assumed


def test_causes_go_by_precedence() -> None:
    # One slot, nothing runs but a session from 90 to 100; each cause holds from 0 to its end.
    facts = step(
        sessions=[session(1, 90, 100, process=7)],
        capacity={"r0": 1},
        states=[
            state(11, "queue_empty", 0, 80),
            state(12, "gate:outbox", 0, 60),
            state(13, "gate:staleness", 0, 50),
            state(14, "paused", 0, 20),
        ],
    )

    assert seconds(idle_split(facts).idle_ns) == {
        "paused": 20, "gate:staleness": 30, "buffer_full": 10, "no_input": 20, "unknown": 10,
    }  # fmt: skip
    assert list(idle_split(facts).idle_ns) == [
        "down", "paused", "gate:staleness", "buffer_full", "tail", "no_input", "unknown",
    ]  # fmt: skip


def test_a_pool_is_down_from_when_its_process_was_last_seen() -> None:
    facts = step(
        sessions=[session(1, 0, 30, process=7), session(2, 0, 100, pool="r1", process=8)],
        capacity={"r0": 1, "r1": 1},
        processes=[
            ProcessRow(process=7, last_seen_ns=30 * S, status="dead"),
            ProcessRow(process=8, last_seen_ns=100 * S),
        ],
        states=[state(11, "paused", 40, 50)],
    )

    down, up = idle_split(facts).pools

    assert seconds(down.idle_ns) == {"down": 70}
    assert seconds(up.idle_ns) == {}


def test_a_pool_is_up_again_when_another_process_takes_over() -> None:
    facts = step(
        sessions=[session(1, 0, 30, process=7), session(2, 50, 100, process=8)],
        capacity={"r0": 1},
        processes=[
            ProcessRow(process=7, last_seen_ns=30 * S, status="dead"),
            ProcessRow(process=8, started_ns=45 * S, last_seen_ns=100 * S),
        ],
    )

    assert seconds(idle_split(facts).idle_ns) == {"down": 15, "unknown": 5}


def test_a_pool_without_sessions_is_down_with_the_process_it_is_named_after() -> None:
    process = ProcessRow(process=7, role="replica", rank=2, last_seen_ns=0, status="silent")
    facts = step(capacity={"replica 2": 1}, processes=[process])

    assert seconds(idle_split(facts).idle_ns) == {"down": 100}


def test_pauses_that_overlap_or_repeat_all_count_and_none_counts_twice() -> None:
    pauses = [(0, 10), (5, 15), (20, 30), (20, 30), (40, 50)]
    states = [state(20 + n, "paused", *pause) for n, pause in enumerate(pauses)]

    facts = step(capacity={"r0": 1}, states=states)

    assert seconds(idle_split(facts).idle_ns) == {"paused": 35, "unknown": 65}


def test_a_state_of_a_pool_is_its_own_and_any_other_is_everyones() -> None:
    facts = step(
        capacity={"r0": 1, "r1": 1},
        states=[state(11, "paused", 0, 10), state(12, "gate:rate", 20, 25, lane="runner")],
        trainer=[span(13, "weights.sync", 50, 60)],
    )

    first, second = idle_split(facts).pools

    assert seconds(first.idle_ns) == {"paused": 20, "gate:rate": 5, "unknown": 75}
    assert seconds(second.idle_ns) == {"paused": 10, "gate:rate": 5, "unknown": 85}


def test_of_two_gates_the_one_closed_first_counts() -> None:
    states = [state(11, "gate:rate", 10, 40), state(12, "gate:memory", 20, 60)]

    facts = step(capacity={"r0": 1}, states=states)

    assert seconds(idle_split(facts).idle_ns) == {"gate:rate": 30, "gate:memory": 20, "unknown": 50}


def test_an_undeclared_capacity_is_assumed_and_said_to_be() -> None:
    sessions = [session(1, 0, 100), session(2, 0, 50), session(3, 0, 100, pool="r1")]
    facts = step(sessions=sessions, assumed_capacity={"r0": 4})

    known, seen = idle_split(facts).pools

    assert (known.capacity, known.assumed) == (4, True)
    assert (seen.capacity, seen.assumed) == (1, True)
    assert idle_split(facts).assumed


def test_more_sessions_than_slots_count_as_capacity_while_they_run() -> None:
    facts = step(sessions=[session(1, 0, 100), session(2, 20, 50)], capacity={"r0": 1})

    (pool,) = idle_split(facts).pools

    assert pool.over_ns == 30 * S
    assert pool.total_ns == pool.busy_ns == 130 * S


def test_sessions_of_other_steps_fill_slots_but_make_no_tail() -> None:
    facts = step(
        sessions=[session(1, 0, 60)],
        around=[session(1, 0, 60), session(2, 0, 100)],
        capacity={"r0": 2},
    )

    split = idle_split(facts)

    assert split.busy_ns == 160 * S
    assert seconds(split.idle_ns) == {"no_input": 40}


def test_a_step_of_no_length_has_no_slot_time() -> None:
    facts = step(0, sessions=[session(1, 0, 10)], capacity={"r0": 2})

    assert idle_split(facts).total_ns == 0
    assert [sweep.stretches for sweep in sweep_pools(facts)] == [[]]


def test_the_trainers_waiting_is_filling_until_95_percent_have_come() -> None:
    # 20 sessions end at 41, 42, .. 59 and 80; the 19th, at 59, makes 95 %.
    ends = [*range(41, 60), 80]
    facts = step(
        sessions=[session(n + 1, 0, end) for n, end in enumerate(ends)],
        trainer=[
            span(11, "weights.sync", 0, 5),
            span(12, "wait", 10, 80),
            span(13, "train", 80, 95),
        ],
    )

    split = trainer_split(facts)

    assert (split.sync_ns, split.train_ns, split.other_ns) == (5 * S, 15 * S, 10 * S)
    assert (split.filling_ns, split.stragglers_ns) == (49 * S, 21 * S)
    assert split.waiting_ns == 70 * S


def test_a_batch_that_could_not_be_full_yet_is_not_charged_to_stragglers() -> None:
    # 19 of 20 came at 40, but the last one was only started at 70.
    late = session(20, 70, 80)
    sessions = [*(session(n, 0, 40) for n in range(1, 20)), late]
    facts = step(sessions=sessions, trainer=[span(12, "wait", 0, 80)])

    split = trainer_split(facts)

    assert (split.filling_ns, split.stragglers_ns) == (70 * S, 10 * S)


def test_inner_spans_go_before_outer_ones_and_work_before_waiting() -> None:
    facts = step(
        trainer=[
            span(11, "wait", 0, 100),
            span(12, "log", 10, 60, parent_id=11),
            span(13, "train", 20, 50, parent_id=12),
            span(14, "weights.sync", 30, 40, parent_id=13),
            span(15, "train", 80, 90),
        ]
    )

    split = trainer_split(facts)

    assert (split.train_ns, split.sync_ns, split.filling_ns) == (30 * S, 10 * S, 60 * S)
    assert split.other_ns == 0


def test_spans_that_lie_inside_of_each_other_do_no_harm() -> None:
    rows = [span(11, "train", 0, 10, parent_id=12), span(12, "wait", 0, 10, parent_id=11)]

    assert trainer_split(step(trainer=rows)).train_ns == 10 * S


def test_a_pools_pause_is_not_the_trainers_time() -> None:
    facts = step(capacity={"r0": 1}, trainer=[state(11, "pause", 0, 10)])

    assert trainer_split(facts).sync_ns == 0
    assert seconds(idle_split(facts).idle_ns)["paused"] == 10


def test_what_a_batch_needs_is_what_it_consumed() -> None:
    consumed = session(1, 0, 10, consumed_ns=20 * S)
    failed = session(2, 0, 10, outcome=Outcome.FAILED)
    pending = session(3, 0, 10)

    assert needed_sessions(step(sessions=[consumed, failed, pending])) == [consumed]
    assert needed_sessions(step(sessions=[failed, pending])) == [pending]
    assert needed_sessions(step(sessions=[failed])) == [failed]
