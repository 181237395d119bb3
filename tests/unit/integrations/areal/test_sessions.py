from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import rollscope as rs
from rollscope.integrations import areal
from rollscope.model.kinds import Kind, Outcome
from rollscope.testing import capture
from tests.unit.integrations.areal.classic import Config, SessionConfig, sessions


@areal.trace_session("generate")
async def generate(seconds: float = 0.0) -> None:
    await asyncio.sleep(seconds)


@areal.session_context()
async def episode(fails: bool = False) -> int | None:
    await generate(0.01)
    with areal.trace_session_phase("reward", start_payload={"session_id": 5, "self": 1}):
        if fails:
            raise ValueError("no reward")
    areal.trace_session_event(
        "increment_counter", session_id=areal.get_session_id(), name="turns", value=2
    )
    return areal.get_session_id()


def begin(folder: Path, **options: Any) -> None:
    areal.configure(Config(str(folder), enabled=False, **options), rank=0, role="rollout")


def finish(task_id: int, status: str = "accepted", **more: Any) -> None:
    areal.trace_session_event("mark_finalized", task_id=task_id, status=status, **more)


def test_an_episode_becomes_the_line_that_the_original_writes(tmp_path: Path) -> None:
    begin(tmp_path)
    areal.register_task(12)
    areal.set_task_id(12)
    before = time.time()
    assert asyncio.run(episode()) == 0
    assert areal.get_session_id() is None
    finish(12)
    areal.save(force=True)
    [path] = tmp_path.rglob("*.jsonl")
    assert path.match("logs/*/exp/trial/session_tracer/rollout/sessions-r0.jsonl")
    [line] = sessions(tmp_path)
    keys = "task_id session_id rank role status submit_ts finalized_ts total_s generate_s reward_s"
    assert list(line) == [*keys.split(), "phases", "counters"]
    assert (line["task_id"], line["session_id"], line["status"]) == (12, 0, "accepted")
    assert before <= line["submit_ts"] <= line["finalized_ts"] <= time.time()
    assert line["total_s"] == pytest.approx(line["finalized_ts"] - line["submit_ts"], abs=1e-5)
    [part] = line["phases"]["generate"]
    assert line["generate_s"] == pytest.approx(part["end_ts"] - part["start_ts"], abs=1e-5)
    assert line["generate_s"] >= 0.01
    assert line["counters"] == {"turns": 2}


def test_a_failing_sample_leaves_its_siblings_their_own_end(tmp_path: Path) -> None:
    async def group() -> None:
        results = await asyncio.gather(
            episode(), episode(fails=True), episode(), return_exceptions=True
        )
        assert isinstance(results[1], ValueError)

    with capture() as captured:
        begin(tmp_path)
        areal.register_task(1)
        areal.set_task_id(1)
        asyncio.run(group())
        finish(1, "failed", reason="workflow_exception")
        areal.reset()
        found = [span for span in captured.spans() if span.kind == "session"]
        [task] = [span for span in captured.spans() if span.kind == "task"]
    assert {line["status"] for line in sessions(tmp_path)} == {"failed"}
    assert len({line["finalized_ts"] for line in sessions(tmp_path)}) == 1
    assert [span.outcome for span in found] == ["dropped", "failed", "dropped"]
    reasons = ["sibling_failed", "ValueError: no reward", "sibling_failed"]
    assert [span.reason for span in found] == reasons
    assert [span.status for span in found] == ["ok", "error", "ok"]
    assert {span.task_key for span in found} == {"1"}
    assert [span.sample for span in found] == [0, 1, 2]
    assert found[0].attrs["source_status"] == "failed"
    assert task.status == "ok"


def test_overlapping_phases_of_one_name_keep_their_true_intervals(tmp_path: Path) -> None:
    @areal.session_context()
    async def both() -> None:
        await asyncio.gather(generate(0.05), generate(0.01))

    begin(tmp_path)
    areal.set_task_id(3)
    asyncio.run(both())
    finish(3)
    areal.reset()
    [line] = sessions(tmp_path)
    long, short = (part["end_ts"] - part["start_ts"] for part in line["phases"]["generate"])
    assert long >= 0.05 > short >= 0.01


def test_siblings_run_on_after_the_verdict_and_get_a_newer_line(tmp_path: Path) -> None:
    async def main() -> None:
        proceed = asyncio.Event()

        @areal.session_context()
        async def slow() -> None:
            async with areal.atrace_session_phase("generate"):
                await proceed.wait()

        running = asyncio.create_task(slow())
        await asyncio.sleep(0)
        finish(4, "rejected", reason="rejected")
        tracer = areal.get_session_tracer()
        assert tracer is not None
        tracer.flush()
        [line] = sessions(tmp_path)
        assert line["phases"]["generate"][0]["end_ts"] is None
        proceed.set()
        await running

    with capture() as captured:
        begin(tmp_path)
        areal.set_task_id(4)
        asyncio.run(main())
        areal.save(force=True)
        first, second = sessions(tmp_path)
        areal.reset()
        [session] = [span for span in captured.spans() if span.kind == "session"]
    assert first["session_id"] == second["session_id"]
    assert first["submit_ts"] == second["submit_ts"]
    end_s = second["phases"]["generate"][0]["end_ts"]
    assert end_s > second["finalized_ts"]
    assert (session.outcome, session.reason) == ("rejected", "filtered")
    assert session.end_ns is not None
    assert session.end_ns / 1e9 == pytest.approx(end_s, abs=0.01)
    assert len(sessions(tmp_path)) == 2


def test_marks_without_a_context_and_any_phase_name_are_recorded(tmp_path: Path) -> None:
    with capture() as captured:
        begin(tmp_path)
        session = areal.register_session(9)
        for method in ("mark_plan_start", "mark_toolcall_start", "mark_toolcall_end"):
            areal.trace_session_event(method, session_id=session, size=3)
        areal.trace_session_event("mark_plan_end", task_id=9)
        areal.trace_session_event("mark_reward_end", session_id=session)
        areal.trace_session_event("do_something", session_id=session)
        areal.trace_session_event("mark_finalized", session_id=session, status="accepted")
        time.sleep(0.02)
        areal.reset()
        found = captured.spans()
    [line] = sessions(tmp_path)
    assert line["phases"].keys() == {"plan", "toolcall", "reward"}
    assert line["toolcall_s"] < line["phases"]["plan"][0]["end_ts"] - line["submit_ts"]
    [whole] = [span for span in found if span.kind == "session"]
    plan = next(span for span in found if span.name == "plan")
    assert plan.attrs == {"size": 3}
    assert plan.parent_id == whole.span_id
    assert whole.end_ns is not None
    assert whole.end_ns - whole.start_ns < 20_000_000


@pytest.mark.parametrize("payload", [{}, {"status": "baffled"}])
def test_a_verdict_without_a_known_status_is_written_all_the_same(
    tmp_path: Path, payload: dict[str, Any]
) -> None:
    begin(tmp_path, session_tracer=SessionConfig(flush_threshold=2), sync_writes=True)
    for task in range(2):
        areal.register_session(task)
        areal.trace_session_event("mark_finalized", task_id=task, **payload)
    lines = sessions(tmp_path)
    assert [line["status"] for line in lines] == [payload.get("status", "pending")] * 2
    assert all("finalized_ts" in line for line in lines)
    tracer = areal.get_session_tracer()
    assert tracer is not None
    assert tracer.unknown == 2


def test_pending_sessions_are_written_only_when_forced_and_once(tmp_path: Path) -> None:
    begin(tmp_path)
    areal.register_session(1)
    tracer = areal.get_session_tracer()
    assert tracer is not None
    tracer.flush()
    assert sessions(tmp_path) == []
    tracer.flush(force=True)
    tracer.flush(force=True)
    [line] = sessions(tmp_path)
    assert line["status"] == "pending"
    assert "finalized_ts" not in line
    finish(1)
    tracer.flush()
    assert [line["status"] for line in sessions(tmp_path)] == ["pending", "accepted"]


def test_a_session_that_comes_after_the_verdict_gets_it_at_its_end(tmp_path: Path) -> None:
    begin(tmp_path)
    areal.register_task(2)
    finish(2, "dropped", reason="stale_weight")
    areal.set_task_id(2)
    asyncio.run(episode())
    areal.reset()
    [line] = sessions(tmp_path)
    assert (line["status"], line["reason"]) == ("dropped", "late_session")


def test_finished_sessions_and_tasks_are_forgotten(tmp_path: Path) -> None:
    begin(tmp_path)
    tracer = areal.get_session_tracer()
    assert tracer is not None
    for task in range(5000):
        areal.register_task(task)
        tracer.register_session(task)
        finish(task)
    tracer.flush()
    assert not tracer._book.records
    assert not tracer._book.tasks
    assert not tracer._book.ready
    assert len(tracer._book._closed) <= 4096
    assert len(sessions(tmp_path)) == 5000


def test_a_wall_clock_that_is_set_back_changes_no_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(tmp_path)
    areal.set_session_id(areal.register_session(1))
    real = time.time_ns
    with areal.trace_session_phase("generate"):
        monkeypatch.setattr(time, "time_ns", lambda: real() - 5_000_000_000)
        monkeypatch.setattr(time, "time", lambda: real() / 1e9 - 5)
    finish(1)
    areal.reset()
    [line] = sessions(tmp_path)
    assert 0 <= line["generate_s"] < 4
    assert 0 <= line["total_s"] < 4


def test_the_last_verdict_before_the_line_counts(tmp_path: Path) -> None:
    begin(tmp_path)
    areal.register_session(1)
    tracer = areal.get_session_tracer()
    assert tracer is not None
    with tracer._lock:  # so that the writer cannot come between
        finish(1, "accepted")
        finish(1, "rejected", reason="rejected")
    areal.reset()
    assert [line["status"] for line in sessions(tmp_path)] == ["rejected"]


def test_a_nested_call_gives_the_callers_session_back(tmp_path: Path) -> None:
    @areal.session_context()
    def outer() -> list[int | None]:
        seen = [areal.get_session_id(), inner(), areal.get_session_id()]
        areal.set_task_id(None)
        return [*seen, inner()]

    @areal.session_context()
    def inner() -> int | None:
        return areal.get_session_id()

    begin(tmp_path)
    areal.set_task_id(6)
    assert outer() == [0, 1, 0, None]
    assert areal.get_session_id() is None


@pytest.mark.parametrize("threshold", [0, -3, None, "many"])
def test_a_bad_threshold_is_told_and_read_as_one(
    tmp_path: Path, threshold: object, caplog: pytest.LogCaptureFixture
) -> None:
    begin(tmp_path, session_tracer=SessionConfig(flush_threshold=threshold), sync_writes=True)
    assert "flush_threshold" in caplog.text
    areal.register_session(1)
    finish(1)
    assert len(sessions(tmp_path)) == 1


def test_facts_may_have_the_name_of_any_argument(tmp_path: Path) -> None:
    with capture() as recorded:
        begin(tmp_path)
        areal.register_session(3)
        odd = {"method": "m", "event": "e", "self": "s", "rank": 9, "session_id": "mine"}
        areal.trace_session_event("mark_generate_start", 0, None, **odd)
        areal.trace_session_event(method="mark_generate_end", session_id=0)
        tracer = areal.get_session_tracer()
        assert tracer is not None
        tracer.record_event(0, "reward_start", event="e", session_id="mine")
        tracer.record_event(session_id=0, event="reward_end")
        with pytest.raises(TypeError, match="takes method"):
            areal.trace_session_event()
        finish(3)
        areal.reset()
    phases = {span.name: span.attrs for span in recorded.spans() if span.name != "session"}
    assert phases["generate"] == odd
    assert phases["reward"] == {"event": "e", "session_id": "mine"}
    (line,) = sessions(tmp_path)
    assert {name: len(parts) for name, parts in line["phases"].items()} == {
        "generate": 1,
        "reward": 1,
    }


def test_inside_of_a_session_of_the_program_no_other_is_opened(tmp_path: Path) -> None:
    with capture() as recorded:
        begin(tmp_path)
        with rs.task("mine"), rs.session(sample=4):
            areal.register_task(7)
            areal.set_session_id(areal.register_session(7))
            with areal.trace_session_phase("generate"):
                pass
            tracer = areal.get_session_tracer()
            assert tracer is not None
            tracer.increment_counter(0, "turns", 3)
            finish(7, "rejected", reason="rejected")
        areal.reset()
    kinds = [span.kind for span in recorded.spans()]
    assert (kinds.count(Kind.SESSION), kinds.count(Kind.TASK)) == (1, 1)
    (own,) = [span for span in recorded.spans() if span.kind is Kind.SESSION]
    assert own.sample == 4
    assert (own.outcome, own.reason, own.attrs["turns"]) == (Outcome.REJECTED, "filtered", 3)
    (phase,) = [span for span in recorded.spans() if span.kind is Kind.PHASE]
    assert phase.session_id == own.span_id
    (line,) = sessions(tmp_path)
    assert (line["task_id"], line["status"], line["counters"]) == (7, "rejected", {"turns": 3})


def test_a_task_begins_when_it_was_registered(tmp_path: Path) -> None:
    with capture() as recorded:
        begin(tmp_path)
        areal.register_task(1)
        with rs.span("queued"):
            pass
        areal.register_session(1)
        finish(1)
        areal.reset()
    spans = {span.name: span for span in recorded.spans()}
    assert spans["task"].start_ns <= spans["queued"].start_ns < spans["session"].start_ns
