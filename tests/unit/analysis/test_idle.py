from rollscope.analysis.idle import idle_split
from rollscope.analysis.pools import sweep_pools
from rollscope.analysis.rows import ProcessRow
from tests.unit.analysis.facts_in_seconds import S, session, span, state, step


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
