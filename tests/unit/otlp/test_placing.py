from __future__ import annotations

import pytest

from rollscope.errors import NoRoom
from rollscope.model.kinds import Kind, Status
from tests.unit.otlp.desk import NOW_NS, TRACE, Desk, span

OTHER = bytes(range(1, 17))
CHAT = {"gen_ai.operation.name": "chat"}
AGENT = {"gen_ai.operation.name": "invoke_agent"}


def hexed(number: int) -> str:
    return f"{number:016x}"


# Which run


def test_spans_that_name_no_run_go_to_one_named_after_their_service() -> None:
    desk = Desk()
    desk.take(span("x", 1), service_name="my svc/é")
    assert [run for run, _ in desk.logs] == ["my_svc_"]


@pytest.mark.parametrize("name", ["..", "../../etc/passwd", "-rf", "", "\0", "a" * 500])
def test_a_run_never_gets_a_name_that_is_a_way_out(name: str) -> None:
    desk = Desk()
    desk.take(span("x", 1, attrs={"rollscope.run": name}))
    (run,) = {run for run, _ in desk.logs}
    assert run[0] not in ".-"
    assert "/" not in run
    assert 0 < len(run) <= 128


def test_a_span_names_its_run_before_its_resource_does() -> None:
    desk = Desk()
    desk.take(span("a", 1), run_id="of-resource")
    desk.take(span("b", 2, trace=OTHER, attrs={"rollscope.run": "of-span"}), run_id="of-resource")
    assert [run for run, _ in desk.logs] == ["of-resource", "of-span"]


def test_all_that_names_no_run_belongs_to_the_only_one() -> None:
    desk = Desk(only_run="shown")
    desk.take(span("a", 1))
    answer = desk.take(span("b", 2, trace=OTHER, attrs={"rollscope.run": "elsewhere"}))
    assert [run for run, _ in desk.logs] == ["shown"]
    assert b"belongs to another run" in answer


# Which session


def test_a_trace_is_a_session_and_its_root_stands_for_it() -> None:
    desk = Desk()
    desk.take(span("chat", 2, 1, attrs=CHAT), span("inner", 3, 2), span("root", 1))
    root, chat, inner = desk.named("session"), desk.named("generate"), desk.named("inner")
    assert (root.kind, root.span_id, root.parent_id) == (Kind.SESSION, hexed(1), None)
    assert root.attrs["source_name"] == "root"
    assert chat.session_id == inner.session_id == root.session_id == hexed(1)
    assert (chat.kind, inner.kind, inner.parent_id) == (Kind.PHASE, Kind.SPAN, hexed(2))


def test_a_session_whose_root_comes_last_is_open_until_then() -> None:
    desk = Desk()
    desk.take(span("chat", 3, 2, attrs=CHAT))
    early = desk.named("session")
    assert (early.status, early.end_ns) == (Status.OPEN, None)
    desk.take(span("turn", 2, 1))
    desk.take(span("root", 1, start=NOW_NS - 20, end=NOW_NS - 10, status={"code": 2}))
    late, root = desk.named("session"), desk.named("root")
    assert late.span_id == early.span_id == desk.named("generate").session_id
    assert (late.status, late.outcome, late.end_ns) == (Status.ERROR, "failed", NOW_NS - 10)
    assert (root.kind, root.parent_id, root.session_id) == (Kind.SPAN, late.span_id, late.span_id)
    assert desk.named("turn").session_id == late.span_id
    assert len([one for one in desk.spans() if one.kind is Kind.SESSION]) == 2  # start and end


def test_a_made_session_ends_in_the_log_that_it_began_in() -> None:
    desk = Desk()
    desk.take(span("chat", 3, 2, attrs=CHAT), service_name="worker")
    desk.take(span("root", 2), service_name="driver")
    logs = {span.process for span in desk.spans() if span.kind is Kind.SESSION}
    assert len(logs) == 1


def test_spans_say_which_session_they_belong_to() -> None:
    desk = Desk()
    said = {"traj_id": "t_0_3", "traj_group_id": "t_0", "global_step": "7"}
    desk.take(
        span("pipeline_step", 1, attrs={"global_step": 7}),
        span("trajectory", 2, 1, attrs=said),
        span("generate", 3, 2),
        span("train", 4, 1),
    )
    session, generate = desk.named("session"), desk.named("generate")
    assert (session.span_id, session.step, session.task_key) == (hexed(2), 7, "t_0")
    assert (generate.kind, generate.session_id) == (Kind.PHASE, hexed(2))
    assert (desk.named("step").kind, desk.named("step").session_id) == (Kind.STEP, None)
    assert (desk.named("train").session_id, desk.named("train").step) == (None, 7)


def test_agents_of_one_trace_are_sessions_of_their_own() -> None:
    desk = Desk()
    desk.take(span("a", 2, 1, attrs=AGENT), span("b", 3, 1, attrs=AGENT), span("chat", 4, 3))
    desk.take(span("batch", 1))
    sessions = [one.span_id for one in desk.spans() if one.kind is Kind.SESSION]
    assert sessions == [hexed(2), hexed(3)]
    assert desk.named("chat").session_id == hexed(3)
    assert desk.named("batch").session_id is None


def test_an_agent_inside_of_an_agent_is_part_of_its_session() -> None:
    desk = Desk()
    desk.take(span("outer", 1, attrs=AGENT), span("inner", 2, 1, attrs=AGENT))
    assert desk.named("inner").session_id == hexed(1)


def test_the_request_of_an_engine_is_no_session() -> None:
    desk = Desk()
    desk.take(span("llm_request", 1, kind=2, attrs={"gen_ai.latency.e2e": 1.5}))
    request = desk.named("llm_request")
    assert (request.kind, request.session_id) == (Kind.SPAN, None)
    assert request.attrs["e2e_s"] == 1.5


def test_our_tracestate_tells_where_a_span_belongs_whatever_else_is_said() -> None:
    desk = Desk()
    state = "rollscope=r:train;s:00000000000000aa;n:3;t:41;k:gsm8k/1,other=1"
    attrs = {"session_id": "its own", "rollscope.run": "train"}
    desk.take(span("llm_request", 5, 9, kind=2, trace_state=state, attrs=attrs))
    request = desk.named("llm_request")
    assert desk.spans("train") == [request]
    assert (request.session_id, request.sample, request.step) == (hexed(0xAA), 3, 41)
    assert (request.task_key, request.parent_id) == ("gsm8k/1", hexed(9))


def test_what_one_of_us_has_exported_is_read_as_it_was() -> None:
    desk = Desk()
    said = {"rollscope.session_id": hexed(2), "rollscope.task_key": "t/1", "rollscope.sample": 4}
    phase = {**said, "rollscope.kind": "phase", "rollscope.phase": "think"}
    desk.take(span("think", 3, 2, attrs=phase))
    desk.take(span("session", 2, 1, attrs={**said, "rollscope.kind": "session"}))
    desk.take(span("rollout t", 1, attrs={"rollscope.kind": "task", "rollscope.task_key": "t/1"}))
    think, session, task = desk.spans()
    assert [one.kind for one in (think, session, task)] == [Kind.PHASE, Kind.SESSION, Kind.TASK]
    assert think.session_id == session.session_id == session.span_id == hexed(2)
    assert (think.sample, think.task_key, task.session_id) == (4, "t/1", None)


def test_of_phases_in_each_other_the_outermost_counts() -> None:
    desk = Desk()
    stage = "xtuner.stage"
    desk.take(
        span("loop", 1, attrs={"xtuner.rollout_id": 5}),
        span("c", 2, 1, attrs={stage: "rollout.controller.generate"}),
        span("w", 3, 2, attrs={stage: "rollout.worker.generate"}),
    )
    assert [one.kind for one in desk.spans()] == [Kind.SESSION, Kind.PHASE, Kind.SPAN]


# More than once


def test_a_span_that_comes_again_is_kept_once() -> None:
    desk = Desk()
    for _ in range(3):
        desk.take(span("x", 1))
    assert len(desk.spans()) == 1
    assert desk.receiver.doubled == 2


def test_a_pending_span_is_open_until_the_final_one_comes() -> None:
    desk = Desk()
    pending = {"rollscope.span_type": "pending"}
    desk.take(span("x", 1, attrs=pending), span("x", 1, attrs=pending))
    desk.take(span("x", 1, attrs={"rollscope.span_type": "span"}))
    desk.take(span("x", 1, attrs=pending))
    assert [one.status for one in desk.spans()] == [Status.OPEN, Status.OK]


def test_a_pending_span_beside_its_final_one_is_not_needed() -> None:
    desk = Desk()
    for number in (1, 2):
        order = [span("x", number, end=0), span("x", number)]
        desk.take(*(order if number == 1 else reversed(order)))
    assert [one.status for one in desk.spans()] == [Status.OK, Status.OK]


def test_the_pending_spans_of_logfire_stand_for_their_parents() -> None:
    desk = Desk()
    attrs = {"logfire.span_type": "pending_span", "logfire.pending_parent_id": hexed(0)}
    desk.take(span("x", 77, 1, attrs=attrs))
    assert [(one.span_id, one.parent_id) for one in desk.spans()] == [(hexed(1), None)]
    assert b"names no span" in desk.take(span("y", 78, attrs=attrs))


def test_what_could_not_be_written_may_come_again() -> None:
    desk = Desk()
    desk.is_full = True
    with pytest.raises(NoRoom):
        desk.take(span("x", 1))
    desk.is_full = False
    desk.take(span("x", 1))
    desk.take(span("x", 1))
    assert len(desk.spans()) == 1


def test_spans_that_are_each_others_parents_are_kept() -> None:
    desk = Desk()
    desk.take(span("a", 1, 2), span("b", 2, 1), span("c", 3, 3))
    assert {one.name for one in desk.spans()} >= {"a", "b", "c"}


def test_a_very_long_chain_is_placed() -> None:
    desk = Desk()
    desk.take(*(span("x", number, number - 1) for number in range(3_000, 0, -1)))
    assert {one.session_id for one in desk.spans()} == {hexed(1)}
    assert len(desk.spans()) == 3_000
    assert {one.trace_id for one in desk.spans()} == {TRACE.hex()}
