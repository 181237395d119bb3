import pytest

from rollscope.analysis.replicas import replica_split
from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.model.kinds import Kind

S = 1_000_000_000


def step(sessions: list[SessionRow], around: list[SessionRow] | None = None) -> StepFacts:
    return StepFacts(
        span=SpanRow(span_id=1000, kind=Kind.STEP, start_ns=0, end_ns=100 * S),
        now_ns=100 * S,
        sessions=sessions,
        around=around or sessions,
        capacity={"r0": 2, "r1": 2},
    )


def test_pools_are_compared_by_how_busy_they_were() -> None:
    first = SessionRow(span_id=1, pool="r0", start_ns=0, end_ns=90 * S, tokens_out=300)
    second = SessionRow(span_id=2, pool="r0", start_ns=0, end_ns=70 * S, tokens_out=200)
    third = SessionRow(span_id=3, pool="r1", start_ns=0, end_ns=40 * S, tokens_out=100)
    foreign = SessionRow(span_id=4, pool="r1", start_ns=0, end_ns=None)

    split = replica_split(step([first, second, third], [first, second, third, foreign]))

    busy, idle = split.replicas
    assert (busy.pool, busy.sessions, busy.busy_share) == ("r0", 2, 0.8)
    assert (busy.tokens_per_s, busy.last_end_ns) == (5.0, 90 * S)
    assert (idle.sessions, idle.busy_share, idle.tokens_per_s) == (1, 0.7, 1.0)
    assert split.imbalance == pytest.approx(0.8 / 0.75)


def test_a_pool_that_did_nothing_counts() -> None:
    split = replica_split(step([SessionRow(span_id=1, pool="r0", start_ns=0, end_ns=50 * S)]))

    assert split.replicas[1].last_end_ns is None
    assert split.imbalance == 2


def test_if_none_did_anything_they_are_even() -> None:
    assert replica_split(step([])).imbalance == 1
