from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from rollscope.analysis.rows import PhaseTotal, ProcessRow, SessionRow, SpanRow, StepFacts
from rollscope.analysis.rules import Finding, LoopStall
from rollscope.analysis.steps import StepSummary
from rollscope.analysis.stuck import StuckRow
from rollscope.analysis.verdict import Verdict, judge_step
from rollscope.model.kinds import Kind, Outcome, Status

S = 1_000_000_000
STEP = 100_000


def span(span_id: int, name: str, start: int, end: int | None, **given: Any) -> SpanRow:
    end_ns = None if end is None else end * S
    return SpanRow(span_id=span_id, name=name, start_ns=start * S, end_ns=end_ns, **given)


def session(span_id: int, start: int, end: int | None, **given: Any) -> SessionRow:
    given.setdefault("pool", "r0")
    end_ns = None if end is None else end * S
    return SessionRow(span_id=span_id, start_ns=start * S, end_ns=end_ns, **given)


def step(*sessions: SessionRow, wall: int = 100, **given: Any) -> StepFacts:
    given.setdefault("around", list(sessions))
    given.setdefault("span", span(STEP, "step", 0, wall, kind=Kind.STEP, step=41))
    return StepFacts(now_ns=wall * S, sessions=list(sessions), **given)


def judge(facts: StepFacts, inside: Sequence[SpanRow] = (), **given: Any) -> Verdict:
    return judge_step(
        facts, lambda session_id: [row for row in inside if row.session_id == session_id], **given
    )


def only(rule: str, verdict: Verdict) -> Finding:
    (finding,) = [finding for finding in verdict.findings if finding.rule == rule]
    return finding


def rules(verdict: Verdict) -> list[str]:
    return [finding.rule for finding in verdict.findings]


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "Step 41 took 5 m 12 s."),
        (3, "Step 41 took 5 m 12 s (previous 3: median 3 m 25 s)."),
        (12, "Step 41 took 5 m 12 s (previous ten: median 3 m 25 s)."),
    ],
)
def test_the_first_sentence_says_how_long_and_how_long_usually(count: int, said: str) -> None:
    history = [StepSummary(step=n, wall_ns=205 * S) for n in range(count)]

    assert judge(step(wall=312), history=history).opening == said


def test_a_step_that_runs_is_said_to() -> None:
    facts = step(span=span(STEP, "step", 0, None, kind=Kind.STEP))

    assert judge(facts).opening == "The step has run for 1 m 40 s."


def test_if_nothing_stands_out_the_largest_part_is_named() -> None:
    facts = step(trainer=[span(1, "train", 0, 61), span(2, "log", 61, 100)])

    verdict = judge(facts)

    assert verdict.findings == []
    assert verdict.closing == (
        "No single cause holds more than 5 %; the largest part is train, 61 %."
    )
    assert verdict.text == f"Step 41 took 1 m 40 s. {verdict.closing}"


def test_dropped_records_and_silent_processes_come_first() -> None:
    processes = [
        ProcessRow(process=1, host="host-02", last_seen_ns=100 * S, dropped=120),
        ProcessRow(process=2, host="host-03", last_seen_ns=50 * S, role="runner", rank=1,
                   status="silent"),
        ProcessRow(process=3, host="gone", last_seen_ns=-S, dropped=9),
    ]  # fmt: skip

    verdict = judge(step(processes=processes, trainer=[span(1, "wait", 0, 80)]))

    assert verdict.findings[0].sentence == (
        "Incomplete: 120 records dropped on host-02; runner 1 is silent."
    )
    assert verdict.findings[0].evidence.process == 1
    assert rules(verdict) == ["data", "trainer", "dead"]


def test_a_process_that_died_in_the_step_is_told_whatever_is_at_stake() -> None:
    processes = [
        ProcessRow(process=1, last_seen_ns=40 * S, role="replica", rank=1, status="dead"),
        ProcessRow(process=2, last_seen_ns=300 * S, role="replica", rank=2, status="dead"),
        ProcessRow(process=3, last_seen_ns=40 * S, role="reward", rank=0, status="ended"),
    ]

    verdict = judge(step(processes=processes))

    assert verdict.findings[0].sentence == "Incomplete: replica 1 died."
    assert verdict.findings[0].evidence.process == 1


def test_a_clock_that_is_off_is_told_whatever_is_at_stake() -> None:
    ahead = ProcessRow(process=1, host="host-03", last_seen_ns=100 * S, offset_ns=-2_100_000_000)
    behind = ProcessRow(process=2, host="host-04", last_seen_ns=100 * S, offset_ns=S)

    finding = only("clock", judge(step(processes=[behind, ahead])))

    assert finding.sentence == "host-03's clock is 2.10 s ahead; its times were moved."
    assert (
        only("clock", judge(step(processes=[behind]))).sentence
        == "host-04's clock is 1.00 s behind; its times were moved."
    )


def test_a_span_of_another_process_that_begins_before_its_parent_points_to_a_clock() -> None:
    rows = [span(1, "train", 10, 20), span(2, "forward", 5, 20, parent_id=1, process=3)]

    assert only("clock", judge(step(trainer=rows))).evidence.process == 3
    rows[1].process = 0
    assert rules(judge(step(trainer=rows))) == []


def test_the_tail_names_who_held_it_in_what_and_where() -> None:
    # 100 slots: 95 sessions end at 69, five at 100; four of the five are in a tool.
    early = [session(n, 0, 69) for n in range(1, 96)]
    late = [
        session(n, 0, 100, host="host-07", task_key="web/7", sample=n - 96) for n in range(96, 101)
    ]
    inside = [span(1000 + n, "toolcall", 60, 100, kind=Kind.PHASE, session_id=n)
              for n in range(96, 100)]  # fmt: skip
    inside.append(span(1100, "generate", 60, 100, kind=Kind.PHASE, session_id=100))

    finding = only("tail", judge(step(*early, *late, capacity={"r0": 100}), inside))

    assert finding.sentence == (
        "31.0 s (31 %) passed after 95 % of the sessions had ended; "
        "5 (web/7#4, web/7#3, web/7#2 and 2 more) held it, 4 of them in toolcall on host-07, "
        "the last 31.0 s after the others."
    )
    assert finding.stake_ns == 31 * S
    assert set(finding.evidence.sessions) == set(range(96, 101))
    assert (finding.evidence.phase, finding.evidence.host) == ("toolcall", "host-07")


def test_a_single_straggler_is_named_by_its_task_wherever_it_is_told_of() -> None:
    early = [session(n, 0, 40) for n in range(1, 40)]
    late = session(40, 0, 90, task_key="math/21", sample=1)
    calls = PhaseTotal(name="toolcall", detail="browser", count=40, total_ns=90 * S, p95_ns=S)
    facts = step(
        *early,
        late,
        capacity={"r0": 40},
        trainer=[span(100, "batch.wait", 0, 90), span(101, "train", 90, 100)],
        phases=[calls],
    )
    inside = [
        span(200, "toolcall", 10, 90, kind=Kind.PHASE, session_id=40, detail="browser"),
        span(201, "toolcall", 8, 9, kind=Kind.PHASE, session_id=40, detail="browser"),
    ]
    history = [StepSummary(step=n, wall_ns=S, p95_ns={"toolcall browser": S}) for n in range(3)]

    verdict = judge(facts, inside, history=history)

    assert [finding.sentence for finding in verdict.findings] == [
        "The trainer waited 90.0 s for its batch: 40.0 s filling, 50.0 s for stragglers "
        "(math/21#1).",
        "toolcall `browser` held 81 % of the path, by one call of math/21#1 that took 80.0 s "
        "(p95 1.00 s).",
        "50.0 s (50 %) passed after 95 % of the sessions had ended; math/21#1 held it in toolcall "
        "`browser`, 50.0 s after the others.",
    ]
    assert verdict.findings[1].evidence.sessions == [40]
    calls.p95_ns = 20 * S  # the service as a whole has become slower
    slower = only("service", judge(facts, inside, history=history))
    assert slower.sentence == (
        "toolcall `browser` held 81 % of the path: p95 20.0 s (previous 3: 1.00 s)."
    )


def test_a_broad_tail_names_nobody() -> None:
    early = [session(n, 0, 20) for n in range(1, 191)]
    spread = [session(n, 0, 30 + n - 190) for n in range(191, 250)]
    last = [session(n, 0, 100) for n in range(250, 262)]
    facts = step(*early, *spread, *last, session(262, 0, 100), capacity={"r0": 262})

    finding = only("tail", judge(facts))

    assert "; a broad tail of " in finding.sentence


def test_a_replica_that_died_is_named_with_what_it_lost() -> None:
    lost = [session(n, 0, 59, pool="replica-2", process=2, status=Status.LOST) for n in (1, 2)]
    facts = step(
        *lost,
        session(3, 0, 100, pool="replica-1", process=1),
        processes=[ProcessRow(process=2, last_seen_ns=59 * S, status="dead")],
    )

    finding = only("dead", judge(facts))

    assert finding.sentence == "replica-2 was silent for 41.0 s; 2 sessions were lost or retried."
    assert (finding.evidence.pool, finding.evidence.sessions) == ("replica-2", [1, 2])


def test_of_several_that_died_the_first_is_named() -> None:
    lost = [session(n, 0, 50 + n, pool=f"replica-{n}", process=n) for n in (1, 2)]
    processes = [ProcessRow(process=n, last_seen_ns=(50 + n) * S, status="dead") for n in (1, 2)]

    finding = only("dead", judge(step(*lost, processes=processes)))

    assert finding.sentence == ("replica-1 and 1 more were silent for up to 49.0 s.")


def test_a_process_that_closed_its_log_is_not_dead() -> None:
    ended = ProcessRow(process=2, last_seen_ns=59 * S, status="ended")

    assert rules(judge(step(session(1, 0, 59, process=2), processes=[ended]))) == []


def stuck(session_id: int | None, age: int, band: Any = "stuck", **given: Any) -> StuckRow:
    given = {"name": "toolcall", "detail": "browser", **given}
    return StuckRow(
        session_id=session_id, span_id=1, start_ns=0, age_ns=age * S, quiet_ns=0, score=None,
        band=band, **given,
    )  # fmt: skip


def test_stuck_sessions_of_a_running_step_are_told() -> None:
    sessions = [session(n, 0, None) for n in range(1, 6)]
    facts = step(*sessions, wall=900, span=span(STEP, "step", 0, None, kind=Kind.STEP, step=41))
    rows = [stuck(1, 840), stuck(2, 100), stuck(3, 90, "overdue"), stuck(4, 900, "slow"),
            stuck(99, 900), stuck(None, 900)]  # fmt: skip

    finding = only("stuck", judge(facts, stuck=rows))

    assert finding.sentence == (
        "3 sessions are stuck in toolcall `browser` for up to 14 m 00 s; "
        "the step cannot end without them."
    )
    assert finding.evidence.sessions == [1, 2, 3]
    sessions[0].task_key, sessions[0].sample = "web/3", 2
    alone = only("stuck", judge(facts, stuck=[rows[0], stuck(5, 70, name="env", detail=None)]))
    assert alone.sentence == (
        "2 sessions are stuck; web/3#2 is stuck in toolcall `browser` for 14 m 00 s; "
        "the step cannot end without them."
    )


def test_a_step_that_is_over_is_not_stuck() -> None:
    assert rules(judge(step(session(1, 0, 100)), stuck=[stuck(1, 90)])) == []


def test_a_service_on_the_path_is_told_with_its_speed_before() -> None:
    facts = step(
        session(1, 0, 90),
        trainer=[span(10, "batch.wait", 0, 90), span(11, "train", 90, 100)],
        phases=[
            PhaseTotal(name="reward", detail="judge", count=40, total_ns=40 * S, p95_ns=18 * S,
                       queue_ns=30 * S)
        ],
    )  # fmt: skip
    inside = [
        span(20, "reward", 52, 90, kind=Kind.PHASE, session_id=1, detail="judge"),
        span(21, "http", 60, 90, kind=Kind.SPAN, session_id=1, parent_id=20),
    ]
    history = [StepSummary(step=n, wall_ns=S, p95_ns={"reward judge": 4 * S}) for n in range(10)]

    finding = only("service", judge(facts, inside, history=history))

    assert finding.sentence == (
        "reward `judge` held 38 % of the path: p95 18.0 s (previous ten: 4.00 s), mostly queueing."
    )
    assert finding.stake_ns == 38 * S
    assert (finding.evidence.phase, finding.evidence.detail) == ("reward", "judge")


def test_a_service_off_the_path_is_told_by_its_slot_time() -> None:
    facts = step(
        session(1, 0, 100),
        session(2, 0, 100),
        capacity={"r0": 2},
        phases=[PhaseTotal(name="env", count=3, total_ns=60 * S, p95_ns=25 * S)],
    )

    assert only("service", judge(facts)).sentence == "env held 30 % of slot time: longest 25.0 s."


def test_generation_is_no_service() -> None:
    phases = [PhaseTotal(name="generate", count=3, total_ns=90 * S)]

    assert rules(judge(step(session(1, 0, 100), phases=phases))) == []


def test_the_trainers_wait_is_told_in_its_two_parts() -> None:
    sessions = [session(n, 0, 61) for n in range(1, 20)]
    facts = step(*sessions, session(20, 0, 88), trainer=[span(100, "wait", 0, 88)])

    assert only("trainer", judge(facts)).sentence == (
        "The trainer waited 88.0 s for its batch: 61.0 s filling, 27.0 s for stragglers."
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("gate:staleness", "Slots stood idle 22 % at the staleness gate."),
        ("gate:outbox", "Slots stood idle 22 % while the buffer was full."),
        ("paused", "Slots stood idle 22 % while they were paused."),
    ],
)
def test_a_gate_that_held_slots_back_is_named(state: str, said: str) -> None:
    held = span(5, state, 0, 22, kind=Kind.STATE, lane="r0")

    finding = only("gate", judge(step(states=[held], capacity={"r0": 3})))

    assert (finding.sentence, finding.stake_ns) == (said, 22 * S)
    assert finding.evidence.pool == "r0"


def test_sessions_that_a_gate_held_back_do_not_wait_for_slots() -> None:
    sessions = [session(1, 0, 10, waited_ns=40 * S)]
    held = span(5, "gate:staleness", 0, 60, kind=Kind.STATE, lane="r0")

    without = judge(step(*sessions, capacity={"r0": 3}))
    gated = judge(step(*sessions, states=[held], capacity={"r0": 3}))

    assert "queue" in rules(without)
    assert "queue" not in rules(gated)
    assert "gate" in rules(gated)


def test_weight_sync_on_the_path_is_told_in_parts() -> None:
    facts = step(
        trainer=[
            span(1, "weights.pause", 0, 5),
            span(2, "weights.transfer", 5, 19, lane="replica-3"),
            span(3, "weights.resume", 19, 20),
        ]
    )

    assert only("sync", judge(facts)).sentence == (
        "Weight sync took 20.0 s: pause 5.00 s, transfer 14.0 s, resume 1.00 s; slowest replica-3."
    )
    whole = step(trainer=[span(1, "weights.sync", 0, 20)])
    assert only("sync", judge(whole)).sentence == "Weight sync took 20.0 s."


def test_a_long_wait_for_slots_is_told() -> None:
    sessions = [session(n, 20, 80, waited_ns=14 * S) for n in range(1, 4)]

    assert only("queue", judge(step(*sessions))).sentence == (
        "Sessions waited 14.0 s for a slot (median)."
    )


def test_an_uneven_load_is_told() -> None:
    facts = step(
        session(1, 0, 97, pool="replica-0"),
        session(2, 0, 30, pool="replica-1"),
        session(3, 0, 30, pool="replica-2"),
        capacity={"replica-0": 1, "replica-1": 1, "replica-2": 1},
    )

    assert only("replica", judge(facts)).sentence == (
        "replica-0 was busy 97 %, the median replica 30 %."
    )


def test_a_stalled_loop_is_told_with_the_line() -> None:
    where = "`tokenize` (rewards.py:88)"
    stall = LoopStall(process=2, pid=4121, total_ns=6 * S, longest_ns=2 * S, where=where)

    assert only("loop", judge(step(), stalls=[stall])).sentence == (
        "The event loop of pid 4121 stalled 6.00 s in `tokenize` (rewards.py:88)."
    )


def test_work_thrown_away_is_told_with_its_fate() -> None:
    dropped = session(1, 0, 31, outcome=Outcome.DROPPED, reason="stale")
    facts = step(dropped, session(2, 0, 69, outcome=Outcome.ACCEPTED))

    finding = only("waste", judge(facts))

    assert finding.sentence == (
        "31 % of slot time went to sessions later thrown away, dropped as stale."
    )
    assert (finding.stake_ns, finding.evidence.sessions) == (31 * S, [1])


def test_a_phase_that_grew_is_told() -> None:
    phases = [PhaseTotal(name="env", count=1, total_ns=17), PhaseTotal(name="x", total_ns=83)]
    history = [
        StepSummary(step=n, wall_ns=S, phase_shares={"env": 0.04 + 0.001 * (n % 3 - 1), "x": 0.96})
        for n in range(10)
    ]

    verdict = judge(step(phases=phases), history=history)

    assert only("shift", verdict).sentence == "env went from 4 % to 17 %."
    assert rules(judge(step(phases=phases), history=history[:4])) == []


def test_at_most_three_causes_are_told_and_the_largest_first() -> None:
    sessions = [session(n, 0, 40, waited_ns=30 * S) for n in range(1, 21)]
    facts = step(
        *sessions[:19],
        session(20, 0, 80, waited_ns=30 * S),
        capacity={"r0": 20},
        trainer=[span(100, "wait", 10, 80), span(101, "weights.sync", 80, 100)],
    )

    verdict = judge(facts)

    assert rules(verdict) == ["trainer", "tail", "queue"]
    stakes = [finding.stake_ns for finding in verdict.findings]
    assert stakes == sorted(stakes, reverse=True)
    assert all(finding.try_next for finding in verdict.findings)


def test_less_than_a_second_is_not_worth_telling() -> None:
    facts = step(trainer=[span(100, "wait", 0, 100)])
    short: StepFacts = msgspec.structs.replace(facts, now_ns=S // 2)
    short.span.end_ns = S // 2

    assert judge(short).findings == []
