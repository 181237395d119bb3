from __future__ import annotations

import asyncio
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import rollscope
import rollscope.integrations.rl_insight as rl_insight
from rollscope.integrations.rl_insight import state
from rollscope.integrations.rl_insight.agent_loop import agent_loop_lane_id
from rollscope.model.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rollscope.model.records import SpanRecord
    from rollscope.store.fold import Folded

    Begin = Callable[..., Callable[[], Folded]]


def spans(read: Callable[[], Folded], kind: Kind | None = None) -> list[SpanRecord]:
    found = sorted(read().spans.values(), key=lambda one: (one.start_ns, one.span_id))
    return [one for one in found if kind is None or one.kind is kind]


def test_off_every_call_is_a_no_op() -> None:
    rl_insight.metric_count("x", object())  # type: ignore[arg-type]
    rl_insight.metric_gauge("x", "no number")  # type: ignore[arg-type]
    with rl_insight.trace_state("generate", state_lane_id="r0"):
        pass

    @rl_insight.trace_op(extra_labels=lambda _: 1 / 0)  # type: ignore[arg-type,return-value]
    def work(value: int) -> int:
        return value

    assert work(3) == 3
    rl_insight.trace_span(name="x", start_time_ns=1, end_time_ns=2, attributes={})
    session = rl_insight.agent_loop_session(experiment_name="e", sample=1, session=0)
    session.finish(trajectories=[], status="success")
    rl_insight.finish()
    assert not rollscope.enabled()


def test_init_counts_once_and_finish_lets_it_count_again(begin: Begin) -> None:
    begin()
    with pytest.warns(RuntimeWarning, match="called before"):
        rl_insight.init("other")
    rl_insight.close()
    assert state.current is None
    begin()
    assert state.current is not None
    assert state.current.labels == {"project": "verl", "experiment_name": "ppo"}


def test_an_unknown_backend_is_an_error_and_leaves_it_off() -> None:
    with pytest.raises(ValueError, match="kafka"):
        rl_insight.init({"backend": {"type": "kafka"}})
    assert state.current is None


def test_a_recording_that_is_under_way_is_joined_and_goes_on(tmp_path: Path) -> None:
    rollscope.init(run="mine", dir=tmp_path)
    rl_insight.init("verl", "ppo", {"prometheus": {"metrics_report_port": None}})
    rl_insight.finish()
    assert rollscope.enabled()


def test_states_that_overlap_on_a_lane_are_all_kept(begin: Begin) -> None:
    read = begin()
    first = rl_insight.trace_state("generate", state_lane_id="r0", step=1)
    second = rl_insight.trace_state("generate", "r0")
    first.__enter__()
    second.__enter__()
    with rl_insight.trace_state("sync", "r0", **{"monitor.trace_segment": "mine"}):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    with pytest.raises(KeyError), rl_insight.trace_state("own lane"):
        raise KeyError("x")
    found = spans(read, Kind.STATE)
    assert [(one.name, one.lane, one.status) for one in found[:3]] == [
        ("generate", "r0", "ok"),
        ("generate", "r0", "ok"),
        ("sync", "r0", "ok"),
    ]
    assert found[0].attrs["step"] == 1
    assert "monitor.trace_segment" not in found[2].attrs
    assert (found[3].lane or "").isdigit()
    assert found[3].status == "error"


def test_finish_closes_open_lanes_as_interrupted(begin: Begin) -> None:
    read = begin()
    left = rl_insight.trace_state("generate", "r0")
    left.__enter__()
    (span,) = spans(read)
    assert (span.status, span.reason) == ("cancelled", "interrupted")
    left.__exit__(None, None, None)


def test_operations_are_timed_sync_and_async_with_their_parents(begin: Begin) -> None:
    read = begin()

    @rl_insight.trace_op(stage="optimizer", extra_labels=lambda owner: {"worker": owner})
    async def inner(owner: str) -> None:
        await asyncio.sleep(0)
        raise ValueError(owner)

    @rl_insight.trace_op("outer")
    async def outer() -> None:
        await inner("w0")

    @rl_insight.trace_op("plain", extra_labels=lambda _: 1 / 0)  # type: ignore[arg-type,return-value]
    def plain(value: int) -> int:
        return value

    with pytest.raises(ValueError, match="w0"):
        asyncio.run(outer())
    with pytest.warns(RuntimeWarning, match="extra_labels"):
        assert plain(2) == 2
    by_name = {one.name.rpartition(".")[2]: one for one in spans(read)}
    assert by_name["inner"].parent_id == by_name["outer"].span_id
    assert by_name["inner"].status == "error"
    assert by_name["inner"].attrs == {
        "stage": "optimizer",
        "worker": "w0",
        "project": "verl",
        "experiment_name": "ppo",
    }
    assert by_name["plain"].status == "ok"


def test_spans_that_are_over_keep_their_times(begin: Begin) -> None:
    read = begin()
    now = time.time_ns()
    rl_insight.trace_span(
        name="s", start_time_ns=now - 3_000_000_000, end_time_ns=now, attributes={"k": 1}
    )
    lane: dict[str, Any] = {
        "monitor.trace_segment": "state_interval",
        "state_name": "sync",
        "state_lane_id": "r1",
    }
    rl_insight.trace_span(name="x", start_time_ns=now, end_time_ns=now - 5, attributes=lane)
    plain, flagged = spans(read)
    assert (plain.end_ns or 0) - plain.start_ns == 3_000_000_000
    assert abs(plain.start_ns - (now - 3_000_000_000)) < 1_000_000_000
    assert (flagged.kind, flagged.name, flagged.lane) == (Kind.STATE, "sync", "r1")
    assert flagged.attrs["clock_suspect"] is True
    assert (flagged.attrs["source_start_ns"], flagged.attrs["source_end_ns"]) == (now, now - 5)


def test_a_session_of_an_agent_loop_is_open_at_once_and_gets_its_turns(begin: Begin) -> None:
    read = begin()
    session = rl_insight.agent_loop_session(
        project="verl", experiment_name="ppo", sample=7, session=2, uid="u1", global_steps=4
    )
    sibling = rl_insight.agent_loop_session(
        project="verl", experiment_name="ppo", sample=7, session=3, uid="u1", global_steps="4"
    )
    recorder = state.recorder()
    assert recorder is not None
    assert [one.name for one in recorder.buffers.open.values()] == ["task", "session", "session"]
    assert session.identity["state_lane_id"] == agent_loop_lane_id("ppo", 7, 2, 0)
    assert session.identity["global_steps"] == 4
    now = time.time_ns()
    turn = {**session.identity, "prompt_tokens": 12, "content": "secret", "session_id": ""}
    rl_insight.trace_span(name="turn_0", start_time_ns=now, end_time_ns=now, attributes=turn)
    done = SimpleNamespace(chain_id=1, reward_score="0.5", num_turns=2)
    odd = SimpleNamespace(chain_id=2, reward_score="none", num_turns=1)
    session.finish(trajectories=[done, odd], status="success", runner_name="react")
    session.finish(trajectories=[], status="failure")
    sibling.finish(trajectories=[], status="capacity_exhausted")
    found = spans(read)
    (task,) = (one for one in found if one.kind is Kind.TASK)
    first, second = (one for one in found if one.kind is Kind.SESSION)
    (phase,) = (one for one in found if one.kind is Kind.PHASE)
    assert (task.task_key, task.step, task.group) == ("7", 4, "u1")
    assert first.parent_id == second.parent_id == task.span_id
    assert (first.sample, first.status, first.outcome) == (2, "ok", None)
    assert (first.attrs["reward"], first.attrs["turns"], first.attrs["reward_bad"]) == (
        0.5,
        3,
        True,
    )
    assert first.attrs["source_status"] == "success"
    assert (second.status, second.outcome, second.reason) == (
        "error",
        "failed",
        "capacity_exhausted",
    )
    assert (phase.name, phase.parent_id, phase.attrs["tokens_in"]) == (
        "generate",
        first.span_id,
        12,
    )
    assert "content" not in phase.attrs


def test_a_turn_of_a_session_elsewhere_says_which_it_belongs_to(begin: Begin) -> None:
    read = begin()
    identity = {
        "state_lane_id": agent_loop_lane_id("ppo", "a", 1, 0),
        "sample": "a",
        "session": "1",
        "global_steps": "",
    }
    rl_insight.trace_span(name="agent_task", start_time_ns=1, end_time_ns=2, attributes=identity)
    (span,) = spans(read)
    assert (span.kind, span.task_key, span.sample, span.step) == (Kind.SPAN, "a", 1, None)
    assert (span.attrs["clock_suspect"], span.attrs["source_start_ns"]) == (True, 1)


def test_metrics_go_into_the_run_with_the_labels_of_init(begin: Begin) -> None:
    read = begin()
    rl_insight.metric_count("steps", documentation="How many.")
    rl_insight.metric_value("reward/mean", SimpleFloat(), worker="a")  # type: ignore[arg-type]
    rl_insight.metric_distribution("seconds", 42)
    found = {one.name: one for one in read().metrics}
    assert found["reward/mean"].value == 2.5
    assert found["reward/mean"].labels == {
        "worker": "a",
        "project": "verl",
        "experiment_name": "ppo",
    }
    assert (found["steps"].value, found["seconds"].value) == (1.0, 42.0)


class SimpleFloat:
    """A number as tensors are: one that has to be asked for its value."""

    def __float__(self) -> float:
        return 2.5


def test_install_gives_it_the_name_of_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rl_insight", "rl_insight.agent_loop"):
        monkeypatch.setitem(sys.modules, name, None)  # put back, whatever the test does
        monkeypatch.delitem(sys.modules, name)
    rl_insight.install()
    rl_insight.install()
    assert sys.modules["rl_insight"] is rl_insight
    monkeypatch.setitem(sys.modules, "rl_insight", sys)
    with pytest.raises(RuntimeError, match="imported already"):
        rl_insight.install()
