from typing import Any

from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.analysis.sync import SyncLane, SyncSplit, sync_split
from rollscope.model.kinds import Kind

S = 1_000_000_000


def span(span_id: int, name: str, start: int, end: int, **given: Any) -> SpanRow:
    return SpanRow(span_id=span_id, name=name, start_ns=start * S, end_ns=end * S, **given)


def step(**given: Any) -> StepFacts:
    return StepFacts(
        span=span(1000, "step", 0, 100, kind=Kind.STEP),
        now_ns=100 * S,
        capacity={"r0": 4, "r1": 4},
        **given,
    )


def test_the_parts_of_a_sync_make_the_whole() -> None:
    split = sync_split(
        step(
            trainer=[
                span(1, "weights.sync", 0, 21),
                span(2, "weights.pause", 0, 6),
                span(3, "weights.transfer", 5, 19),
                span(4, "weights.resume", 19, 20),
            ]
        )
    )

    assert (split.pause_ns, split.transfer_ns, split.resume_ns) == (5 * S, 14 * S, S)
    assert (split.rest_ns, split.total_ns) == (S, 21 * S)
    assert [lane.lane for lane in split.lanes] == ["trainer"]
    assert split.slowest is None


def test_each_lane_is_told_and_the_slowest_named() -> None:
    split = sync_split(
        step(
            states=[
                span(1, "weights.sync", 0, 5, lane="r0", kind=Kind.STATE),
                span(2, "weights.sync", 0, 9, lane="r1", kind=Kind.STATE),
            ]
        )
    )

    assert split.slowest == "r1"
    assert split.lanes[0] == SyncLane(
        lane="r0", total_ns=5 * S, pause_ns=0, transfer_ns=0, resume_ns=0, rest_ns=5 * S
    )
    assert split.total_ns == 9 * S
    # Four slots of each pool, for as long as that pool synced.
    assert split.blocked_ns == 4 * 5 * S + 4 * 9 * S


def test_slots_with_a_session_are_in_flight_and_not_blocked() -> None:
    around = [SessionRow(span_id=7, pool="r0", start_ns=0, end_ns=50 * S)]
    paused = span(2, "paused", 0, 90, lane="r0", kind=Kind.STATE)

    split = sync_split(
        step(around=around, trainer=[span(1, "weights.sync", 40, 60)], states=[paused])
    )

    assert split.in_flight_ns == 10 * S
    assert split.blocked_ns == 8 * 20 * S - 10 * S


def test_a_state_that_is_listed_twice_counts_once() -> None:
    state = span(1, "pause", 0, 5, lane="r0", kind=Kind.STATE)

    assert sync_split(step(trainer=[state], states=[state])).pause_ns == 5 * S


def test_without_a_sync_all_is_zero() -> None:
    assert sync_split(step()) == SyncSplit(
        total_ns=0,
        pause_ns=0,
        transfer_ns=0,
        resume_ns=0,
        rest_ns=0,
        lanes=[],
        slowest=None,
        blocked_ns=0,
        in_flight_ns=0,
    )
