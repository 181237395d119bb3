from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.analysis.whatif import replay_step
from rollscope.model.kinds import Kind, Status

S = 1_000_000_000


def step(intervals: list[tuple[int, int]], slots: int = 2, wall: int = 100) -> StepFacts:
    sessions = [
        SessionRow(span_id=n + 1, pool="r0", start_ns=low * S, end_ns=high * S)
        for n, (low, high) in enumerate(intervals)
    ]
    return StepFacts(
        span=SpanRow(span_id=1000, kind=Kind.STEP, start_ns=0, end_ns=wall * S),
        now_ns=wall * S,
        sessions=sessions,
        around=sessions,
        capacity={"r0": slots},
    )


def test_sessions_are_replayed_in_order_on_fewer_and_more_slots() -> None:
    # Lengths 30, 10, 20, 20 on two slots: 0-30, 0-10, 10-30, 30-50.
    what = replay_step(step([(10, 40), (10, 20), (20, 40), (40, 60)]))

    assert not what.cannot_tell
    assert what.rollout_ns == 50 * S
    assert [(one.slots, one.rollout_ns // S) for one in what.replays] == [
        (1, 80), (2, 50), (2, 50), (3, 30), (4, 30),
    ]  # fmt: skip
    assert [one.wall_ns // S for one in what.replays] == [130, 100, 100, 80, 80]
    assert what.replays[0].use == 1
    assert what.replays[2].use == 0.8


def test_a_replay_that_is_off_by_more_than_a_tenth_says_so() -> None:
    # Something else held the second session back until 40.
    assert not replay_step(step([(0, 50), (4, 54)])).cannot_tell
    assert replay_step(step([(0, 50), (40, 90)])).cannot_tell


def test_rollouts_that_began_long_before_the_step_tell_nothing_about_its_wall() -> None:
    # As where rollouts run ahead of the trainer: they took 60, the step itself 40.
    ahead = step([(-20, 10), (-20, 40)], wall=40)

    assert replay_step(ahead).cannot_tell
    assert not replay_step(step([(-2, 10), (-2, 40)], wall=40)).cannot_tell


def test_a_session_without_a_measured_length_makes_it_impossible_to_tell() -> None:
    facts = step([(0, 50), (0, 50)])
    facts.sessions[0].status = Status.LOST

    assert replay_step(facts).cannot_tell


def test_without_sessions_or_slots_nothing_can_be_told() -> None:
    assert replay_step(step([])).cannot_tell
    assert replay_step(step([(0, 10)], slots=0)).replays == []
