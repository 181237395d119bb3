from rollscope.analysis.idle import idle_split
from rollscope.analysis.trainer import needed_sessions, trainer_split
from rollscope.model.kinds import Outcome
from tests.unit.analysis.facts_in_seconds import S, session, span, state, step


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
    assert idle_split(facts).idle_ns["paused"] == 10 * S


def test_what_a_batch_needs_is_what_it_consumed() -> None:
    consumed = session(1, 0, 10, consumed_ns=20 * S)
    failed = session(2, 0, 10, outcome=Outcome.FAILED)
    pending = session(3, 0, 10)

    assert needed_sessions(step(sessions=[consumed, failed, pending])) == [consumed]
    assert needed_sessions(step(sessions=[failed, pending])) == [pending]
    assert needed_sessions(step(sessions=[failed])) == [failed]
