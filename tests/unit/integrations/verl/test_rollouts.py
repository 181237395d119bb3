"""Agent loops as verl traces them: sessions with phases."""

from __future__ import annotations

import asyncio
import importlib
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import pytest

import rollscope as rs
from rollscope.integrations import verl
from rollscope.integrations.verl import RolloutTraceConfig, rollout_trace_attr, rollout_trace_op
from rollscope.testing.capture import capture

from .conftest import Tracking


class Server:
    """Generates, through a client that is traced as well."""

    @rollout_trace_op
    async def generate(self, request_id: str, *, prompt_ids: list[int]) -> Any:
        return await self.inner.generate(request_id, prompt_ids=prompt_ids)

    class Inner:
        @rollout_trace_op
        async def generate(self, request_id: str, *, prompt_ids: list[int]) -> Any:
            await asyncio.sleep(0)
            return SimpleNamespace(token_ids=[1, 2, 3], stop_reason="completed")

    inner = Inner()


class Tool:
    """Is called by agents."""

    name = "python"

    @rollout_trace_op
    async def execute(self, instance_id: str, parameters: dict[str, Any]) -> tuple[str, float]:
        if parameters.get("fails"):
            raise ValueError("no such file")
        return "4", 0.0


class Judge:
    """Gives rewards."""

    @rollout_trace_op
    def compute_score(self, answer: str) -> float:
        return 1.0


class Loop:
    """An agent loop of two turns."""

    @rollout_trace_op
    async def run(self, fails: bool = False) -> Any:
        await Server().generate("r", prompt_ids=[1, 2])
        await Tool().execute("i", {"fails": fails})
        await Server().generate("r", prompt_ids=[1, 2, 3, 4])
        return SimpleNamespace(
            response_ids=[1], num_turns=2, reward_score=Judge().compute_score("x")
        )


async def roll_out(sample_index: Any, rollout_n: Any, fails: bool = False, **more: Any) -> None:
    with rollout_trace_attr(
        step=5, sample_index=sample_index, rollout_n=rollout_n, name="agent_loop", **more
    ):
        await Loop().run(fails)


def test_an_agent_loop_is_a_session_with_its_phases() -> None:
    with capture() as captured:
        asyncio.run(roll_out(17, 2))
        spans = captured.spans()
        session = captured.named("session")

    assert (session.task_key, session.step, session.sample) == ("17", 5, 2)
    assert session.attrs == {"source_name": "agent_loop", "reward": 1.0, "turns": 2}
    assert (session.status, session.outcome) == ("ok", None)
    phases = [(s.name, s.attrs) for s in spans if s.kind == "phase"]
    generated = {"source_name": "Server.generate", "tokens_out": 3, "finish": "completed"}
    assert phases == [
        ("generate", {**generated, "tokens_in": 2}),
        ("toolcall", {"source_name": "Tool.execute", "tool": "python"}),
        ("generate", {**generated, "tokens_in": 4}),
        ("reward", {"source_name": "Judge.compute_score"}),
    ]
    assert [s.name for s in spans if s.kind == "span"] == [
        "Loop.run",
        "Server.Inner.generate",
        "Server.Inner.generate",
    ]
    assert {span.session_id for span in spans if span.kind in ("phase", "span")} == {
        session.span_id
    }


def test_samples_of_one_item_share_their_task_while_one_is_open() -> None:
    async def main() -> None:
        with rs.span("around"):
            await asyncio.gather(*(roll_out(17, n) for n in range(4)), roll_out(18, 0))
            await roll_out(17, 0, validate=True)
            assert rs.current().name == "around"
        assert not rs.current()

    with capture() as captured:
        asyncio.run(main())
        tasks = [span for span in captured.spans() if span.kind == "task"]
        sessions = [span for span in captured.spans() if span.kind == "session"]

    assert [task.task_key for task in tasks] == ["17", "18", "validate/17"]
    assert {task.status for task in tasks} == {"ok"}
    by_task = {task.span_id: task.task_key for task in tasks}
    assert sorted((by_task[s.parent_id or ""], s.sample) for s in sessions) == [
        ("17", 0),
        ("17", 1),
        ("17", 2),
        ("17", 3),
        ("18", 0),
        ("validate/17", 0),
    ]
    assert sessions[-1].attrs["validate"] is True


def test_a_failing_loop_fails_its_session_only() -> None:
    async def main() -> Any:
        loops = (roll_out(17, 0), roll_out(17, 1, fails=True))
        return await asyncio.gather(*loops, return_exceptions=True)

    with capture() as captured:
        _, error = asyncio.run(main())
        sessions = [span for span in captured.spans() if span.kind == "session"]
        tool = [span for span in captured.spans() if span.name == "toolcall"]

    assert isinstance(error, ValueError)
    assert sorted((s.sample, s.status, s.outcome) for s in sessions) == [
        (0, "ok", None),
        (1, "error", "failed"),
    ]
    assert sorted(span.status for span in tool) == ["error", "ok"]


def test_samples_that_verl_leaves_out_are_left_out() -> None:
    with capture() as captured:
        asyncio.run(roll_out(17, 0, trace=False))
        asyncio.run(roll_out(18, 0))
        assert {span.task_key for span in captured.spans()} == {"18"}


@pytest.mark.parametrize("n", [None, "two", 1.5, True, object()])
def test_odd_numbers_of_samples_are_kept_as_text(n: Any) -> None:
    with capture() as captured:
        asyncio.run(roll_out("item", n))
        session = captured.named("session")

    assert session.sample == 0
    assert session.attrs.get("rollout_n") == (None if n is None else str(n))


@pytest.mark.parametrize("trace", [True, False])
def test_a_block_may_be_left_in_another_context(trace: bool) -> None:
    with capture() as captured:
        block = rollout_trace_attr(sample_index=1, trace=trace)
        copy_context().run(block.__enter__)
        assert block.__exit__(None, None, None) is False
        assert [span.status for span in captured.spans()] == (["ok", "ok"] if trace else [])
        assert not rs.current()


def test_without_an_item_there_is_no_session() -> None:
    with capture() as captured:
        asyncio.run(roll_out(None, 0))
        assert {span.kind for span in captured.spans()} == {"span", "phase"}


def test_off_everything_runs_as_written() -> None:
    assert not rs.enabled()
    asyncio.run(roll_out(17, 0))
    assert Judge().compute_score("x") == 1.0
    assert Server.generate.__name__ == "generate"


def test_results_that_cannot_be_read_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        token_ids = 7
        stop_reason = b"x"
        num_turns = "many"
        reward_score = float("nan")

        @property
        def response_ids(self) -> Any:
            raise RuntimeError("gone")

    class Strange:
        @rollout_trace_op
        def generate(self, **settings: Any) -> Any:
            return Odd()

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    with capture() as captured, rollout_trace_attr(sample_index=1):
        assert isinstance(Strange().generate(prompt_ids="text"), Odd)
        assert captured.named("generate").status == "ok"


def test_installed_it_stands_for_the_module_of_verl(
    tracking: type[Tracking], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    verl.install()
    trace = importlib.import_module("verl.utils.rollout_trace")
    assert trace.rollout_trace_op is rollout_trace_op

    assert trace.RolloutTraceConfig.get_backend() is None
    trace.RolloutTraceConfig.init("gsm8k", "ppo", None, True, 4)
    trace.RolloutTraceConfig.init("other", "run", "weave")
    config = trace.RolloutTraceConfig.get_instance()
    assert (config.project_name, config.max_samples_per_step_per_worker) == ("gsm8k", 4)
    assert (config.get_backend(), config.get_client()) == ("rollscope", None)
    assert trace.RolloutTraceConfig.enable_token2text() is True
    asyncio.run(roll_out(17, 0))
    rs.shutdown()
    with rs.open(tmp_path / "runs" / "gsm8k-ppo") as run:
        (session,) = run.sessions().to_pylist()
    assert (session["task_key"], session["reward"], session["turns"]) == ("17", 1.0, 2)

    verl.uninstall()
    with pytest.raises(ImportError):
        importlib.import_module("verl.utils.rollout_trace")


def test_the_configuration_can_be_reset() -> None:
    first = RolloutTraceConfig.get_instance()
    assert RolloutTraceConfig() is first
    RolloutTraceConfig.reset()
    assert RolloutTraceConfig.get_instance() is not first
    RolloutTraceConfig.reset()
