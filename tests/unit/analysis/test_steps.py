from rollscope.analysis.rows import EventRow, PhaseTotal, SessionRow, SpanRow, StepFacts
from rollscope.analysis.steps import StepSummary, analyse_step, service_key, summarise
from rollscope.model.kinds import Kind, Outcome, Status

S = 1_000_000_000


def facts() -> StepFacts:
    sessions = [
        SessionRow(
            span_id=1, pool="r0", start_ns=0, end_ns=60 * S, outcome=Outcome.ACCEPTED,
            consumed_ns=60 * S, version_start=3, reward=1.0, tokens_out=600,
        ),
        SessionRow(
            span_id=2, pool="r0", start_ns=0, end_ns=40 * S, outcome=Outcome.ACCEPTED,
            consumed_ns=60 * S, version_start=4, reward=0.5, tokens_out=400,
        ),
        SessionRow(
            span_id=3, pool="r0", start_ns=0, end_ns=25 * S, outcome=Outcome.DROPPED,
        ),
        SessionRow(span_id=4, pool="r0", start_ns=90 * S),
    ]  # fmt: skip
    return StepFacts(
        span=SpanRow(span_id=1000, kind=Kind.STEP, step=7, start_ns=0, end_ns=100 * S),
        now_ns=100 * S,
        trainer=[
            SpanRow(span_id=10, name="wait", start_ns=0, end_ns=60 * S),
            SpanRow(span_id=11, name="train", start_ns=60 * S, end_ns=100 * S),
        ],
        sessions=sessions[:3],
        around=sessions,
        events=[EventRow(name="weights.published", time_ns=0, version=5)],
        capacity={"r0": 3},
        phases=[
            PhaseTotal(name="generate", total_ns=75 * S, p95_ns=30 * S),
            PhaseTotal(name="reward", detail="judge", total_ns=25 * S, p95_ns=9 * S),
        ],
    )


def test_a_summary_holds_the_numbers_of_a_step() -> None:
    assert summarise(facts(), lambda _: []) == StepSummary(
        step=7,
        wall_ns=100 * S,
        sessions=3,
        outcomes={"accepted": 2, "dropped": 1},
        tail_wall_ns=0,
        bubble_ns=(15 + 2 * 20) * S,
        trainer_wait_ns=60 * S,
        train_ns=40 * S,
        slot_ns=300 * S,
        busy_ns=135 * S,
        idle_ns={
            "down": 0, "paused": 0, "buffer_full": 0, "tail": 55 * S, "no_input": 110 * S,
            "unknown": 0,
        },
        waste_ns=25 * S,
        waste_share=0.2,
        lag_p50=1,
        lag_max=2,
        tokens_per_s=10.0,
        mean_reward=0.75,
        path_ns={"train": 40 * S, "other": 60 * S},
        phase_shares={"generate": 0.75, "reward": 0.25},
        p95_ns={"generate": 30 * S, "reward judge": 9 * S},
    )  # fmt: skip


def test_a_summary_can_be_made_of_parts_at_hand() -> None:
    parts = analyse_step(facts(), lambda _: [])

    assert summarise(facts(), lambda _: [], parts) == summarise(facts(), lambda _: [])


def test_a_step_without_anything_has_a_summary() -> None:
    empty = StepFacts(span=SpanRow(span_id=1, start_ns=0), now_ns=0)

    summary = summarise(empty, lambda _: [])

    assert summary.is_open
    assert (summary.lag_p50, summary.mean_reward, summary.outcomes) == (None, None, {})
    assert summary.trainer_wait_share == 0
    assert summary.path_ns == {"other": 0}


def test_services_are_named_by_phase_and_detail() -> None:
    assert service_key("reward", "judge") == "reward judge"
    assert service_key("env", None) == "env"


def test_sessions_that_went_with_their_process_are_counted_as_lost() -> None:
    step = facts()
    step.sessions += [
        SessionRow(span_id=5, start_ns=0, end_ns=9 * S, status=Status.LOST),
        SessionRow(span_id=6, start_ns=0, end_ns=9 * S),
        SessionRow(span_id=7, start_ns=0),
    ]
    outcomes = {"accepted": 2, "dropped": 1, "lost": 1, "none": 1, "open": 1}
    assert summarise(step, lambda _: []).outcomes == outcomes
