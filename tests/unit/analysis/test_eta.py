import heapq
import random

from rollscope.analysis.eta import estimate_end
from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.model.kinds import Kind

S = 1_000_000_000


def step(
    sessions: list[SessionRow], now: int, slots: int = 4, around: list[SessionRow] | None = None
) -> StepFacts:
    return StepFacts(
        span=SpanRow(span_id=100_000, kind=Kind.STEP, start_ns=0),
        now_ns=now,
        sessions=sessions,
        around=sessions if around is None else around,
        capacity={"r0": slots},
    )


def session(span_id: int, start: int, end: int | None) -> SessionRow:
    return SessionRow(span_id=span_id, pool="r0", start_ns=start, end_ns=end)


def test_if_all_sessions_take_as_long_the_end_is_certain() -> None:
    facts = step([session(1, 0, None), session(2, 5 * S, None)], now=8 * S)

    eta = estimate_end(facts, [10 * S] * 60, after_ns=30 * S)

    assert eta.last_end is not None
    assert eta.step_end is not None
    assert (eta.last_end.p10_ns, eta.last_end.p90_ns) == (15 * S, 15 * S)
    assert eta.step_end.p50_ns == 45 * S
    assert (eta.open, eta.waiting, eta.known) == (2, 0, 60)


def test_waiting_sessions_take_slots_as_they_free() -> None:
    # One slot of two is free now; three wait: 8-18, 10-20 and 18-28.
    facts = step([session(1, 0, None)], now=8 * S, slots=2)

    eta = estimate_end(facts, [10 * S] * 60, waiting=3)

    assert eta.last_end is not None
    assert eta.last_end.p50_ns == 28 * S


def test_sessions_of_other_steps_hold_slots_but_not_the_end() -> None:
    own, foreign = session(1, 0, 5 * S), session(2, 6 * S, None)
    facts = step([own], now=8 * S, slots=1, around=[own, foreign])

    assert (end := estimate_end(facts, [10 * S] * 60).last_end) is not None
    assert end.p50_ns == 5 * S
    assert (end := estimate_end(facts, [10 * S] * 60, waiting=1).last_end) is not None
    assert end.p50_ns == 26 * S


def test_an_open_session_is_drawn_from_what_took_longer_than_its_age() -> None:
    facts = step([session(1, 0, None)], now=50 * S)

    eta = estimate_end(facts, [10 * S] * 59 + [60 * S])

    assert eta.last_end is not None
    assert (eta.last_end.p10_ns, eta.last_end.p90_ns) == (60 * S, 60 * S)


def test_with_few_lengths_of_earlier_steps_those_of_this_step_count() -> None:
    sessions = [session(1, 0, 7 * S), session(2, 5 * S, None)]

    eta = estimate_end(step(sessions, now=8 * S), [100 * S] * 49)

    assert eta.known == 1
    assert eta.last_end is not None
    assert eta.last_end.p50_ns == 12 * S


def test_sessions_older_than_anything_seen_are_left_out_and_named() -> None:
    facts = step([session(1, 0, None), session(2, 35 * S, None)], now=40 * S)

    eta = estimate_end(facts, [10 * S] * 60, after_ns=15 * S)

    assert eta.outliers == [1]
    assert eta.last_end is not None
    assert eta.last_end.p50_ns == 45 * S
    assert eta.at_least_ns == 20 * S


def test_if_only_such_sessions_are_left_no_end_is_made_up() -> None:
    facts = step([session(1, 0, None), session(2, 0, 9 * S)], now=40 * S)

    eta = estimate_end(facts, [10 * S] * 60, after_ns=15 * S)

    assert (eta.last_end, eta.outliers, eta.at_least_ns) == (None, [1], 15 * S)


def test_a_step_never_ends_in_the_past() -> None:
    eta = estimate_end(step([session(1, 0, 9 * S)], now=40 * S), [10 * S] * 60, after_ns=S)

    assert eta.last_end is not None
    assert eta.step_end is not None
    assert (eta.last_end.p50_ns, eta.step_end.p50_ns) == (9 * S, 40 * S)


def test_without_lengths_or_sessions_there_is_no_estimate() -> None:
    assert estimate_end(step([session(1, 0, None)], now=8 * S)).last_end is None
    assert estimate_end(step([], now=8 * S), [S] * 60).last_end is None


def test_the_95_percent_point_is_that_of_all_sessions_of_the_step() -> None:
    over = [session(n, 0, n * S) for n in range(1, 20)]

    eta = estimate_end(step([*over, session(20, 0, None)], now=20 * S), [40 * S] * 60)

    assert eta.p95_end is not None
    assert eta.last_end is not None
    assert eta.p95_end.p50_ns == 19 * S
    assert eta.last_end.p50_ns == 40 * S


def test_the_same_facts_give_the_same_estimate() -> None:
    facts = step([session(1, 0, None)], now=8 * S)
    lengths = [n * S for n in range(1, 80)]

    assert estimate_end(facts, lengths, waiting=5) == estimate_end(facts, lengths, waiting=5)


def stationary_case(seed: int) -> bool:
    """Run 40 sessions on 16 slots, ask in the middle, and compare with what really came."""
    rng = random.Random(seed)

    def length() -> int:
        return round(rng.lognormvariate(3, 0.8) * S)

    free = [0] * 16
    truth = []
    for span_id in range(1, 41):
        start = heapq.heappop(free)
        truth.append((span_id, start, start + length()))
        heapq.heappush(free, truth[-1][2])
    last = max(end for _, _, end in truth)
    now = round(last * rng.uniform(0.1, 0.6))
    seen = [session(n, low, high if high <= now else None) for n, low, high in truth if low <= now]
    eta = estimate_end(
        step(seen, now, slots=16),
        [length() for _ in range(300)],
        waiting=sum(low > now for _, low, _ in truth),
    )
    assert eta.last_end is not None
    return eta.last_end.p10_ns <= last <= eta.last_end.p90_ns


def test_on_stationary_runs_the_end_falls_into_the_range_about_eight_times_in_ten() -> None:
    hits = sum(stationary_case(seed) for seed in range(200))

    assert 140 <= hits <= 180
