import pytest

from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.analysis.tail import tail_split
from rollscope.model.kinds import Kind

S = 1_000_000_000


def step(
    ends: list[int], slots: int, wall: int = 100, pools: tuple[str, ...] = ("r0",)
) -> StepFacts:
    """Sessions 1, 2, .. all start at 0 and are dealt to the pools in turn."""
    sessions = [
        SessionRow(span_id=n + 1, pool=pools[n % len(pools)], start_ns=0, end_ns=end * S)
        for n, end in enumerate(ends)
    ]
    return StepFacts(
        span=SpanRow(span_id=1000, kind=Kind.STEP, start_ns=0, end_ns=wall * S),
        now_ns=wall * S,
        sessions=sessions,
        around=list(sessions),
        capacity=dict.fromkeys(pools, slots),
    )


def test_each_idle_instant_is_shared_by_the_sessions_still_open() -> None:
    # Four slots. 10..20: one is idle, three sessions open; 20..40: two idle, two open;
    # 40..100: three idle, one open.
    tail = tail_split(step([10, 20, 40, 100], slots=4))

    assert tail.bubble_ns == (10 + 40 + 180) * S
    assert tail.share == pytest.approx(230 / 400)
    third = 10 * S // 3
    charges = {charge.session_id: charge.charge_ns for charge in tail.charges}
    assert charges == {4: 200 * S + third + 1, 3: 20 * S + third, 2: third}
    assert sum(charges.values()) == tail.bubble_ns
    assert tail.charges[0].session_id == 4


def test_the_holders_are_the_fewest_that_make_up_80_percent() -> None:
    # Had 4 ended at 40 like 3, 50 of 230 would be left: less by 78 %. Had both ended at 20, 10.
    assert tail_split(step([10, 20, 40, 100], slots=4)).holders == [4, 3]
    # Here 10 + 40 of 320 is left without the last one: less by 84 %.
    assert tail_split(step([10, 20, 40, 130], slots=4, wall=130)).holders == [4]


def test_many_holders_make_a_broad_tail() -> None:
    few = tail_split(step([10] * 30 + [100] * 10, slots=40))
    many = tail_split(step([10] * 30 + [100] * 11, slots=41))

    assert (len(few.holders), few.is_broad) == (10, False)
    assert (len(many.holders), many.is_broad) == (11, True)


def test_in_a_large_step_five_percent_may_be_named() -> None:
    tail = tail_split(step([10] * 280 + [100] * 15, slots=295))

    assert (len(tail.holders), tail.is_broad) == (15, True)
    assert not tail_split(step([10] * 285 + [100] * 15, slots=300)).is_broad


def test_the_tail_wall_begins_when_95_percent_have_ended() -> None:
    tail = tail_split(step([*range(41, 60), 80], slots=20))

    assert (tail.p95_end_ns, tail.last_end_ns) == (59 * S, 80 * S)
    assert tail.tail_wall_ns == 21 * S


def test_only_what_lies_within_the_step_counts() -> None:
    facts = step([*range(41, 60), 80], slots=20)
    facts.span.start_ns = 70 * S

    tail = tail_split(facts)

    assert tail.tail_wall_ns == 10 * S
    assert tail.bubble_ns == 19 * 10 * S


def test_pools_pay_for_a_session_of_another_pool() -> None:
    tail = tail_split(step([10, 60], slots=1, pools=("r0", "r1")))

    assert {pool.pool: pool.bubble_ns for pool in tail.pools} == {"r0": 50 * S, "r1": 0}
    assert [(one.session_id, one.charge_ns) for one in tail.charges] == [(2, 50 * S)]


def test_no_slot_is_idle_for_the_tail_while_a_session_is_still_to_start() -> None:
    facts = step([10, 20, 100], slots=3)
    facts.sessions[2].start_ns = 60 * S

    assert tail_split(facts).bubble_ns == 2 * 40 * S


def test_open_sessions_hold_the_tail_until_now() -> None:
    facts = step([10, 20], slots=2, wall=50)
    facts.span.end_ns = facts.sessions[1].end_ns = None

    tail = tail_split(facts)

    assert (tail.last_end_ns, tail.bubble_ns, tail.holders) == (50 * S, 40 * S, [2])


def test_without_sessions_there_is_no_tail() -> None:
    tail = tail_split(step([], slots=2))

    assert tail.last_start_ns is tail.p95_end_ns is tail.last_end_ns is None
    assert (tail.bubble_ns, tail.charges, tail.holders, tail.is_broad) == (0, [], [], False)
