from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rollscope
from rollscope.rollout.engine import GenerationConfig
from rollscope.rollout.tool_calls import ToolCall
from rollscope.rollout.tools import ToolUseWorkflow
from rollscope.testing import capture
from tests.unit.rollout.fakes import Answer, FakeEngine, FakeTokenizer, said

ITEM = {"messages": [{"role": "user", "content": "2+2?"}], "answer": "4"}
PROMPT = "<|user|>2+2?<|end|>\n<|assistant|>"
ADD = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 2}}</tool_call>'
AFTER = "<|end|>\n<|tool|>4<|end|>\n<|assistant|>"


async def reward(prompt: str, completion: str, *_ids: Any, answer: str, **_data: Any) -> float:
    assert prompt == PROMPT
    return float(f"it is {answer}" in completion)


async def no_reward(*_args: Any, **_data: Any) -> None:
    return None


def add(a: int, b: int) -> int:
    return a + b


def run(*answers: Answer, reward_fn: Any = reward, config: Any = None, **settings: Any) -> Any:
    engine, tokenizer = FakeEngine(*answers), FakeTokenizer()
    workflow = ToolUseWorkflow(
        reward_fn, GenerationConfig(**(config or {})), tokenizer, {"add": add}, **settings
    )
    made = asyncio.run(workflow.arun_episode(engine, ITEM))
    return made, engine, tokenizer


def text_of(made: Any) -> str:
    return FakeTokenizer().decode(made["input_ids"].tolist()[0])


def test_the_model_goes_on_with_the_result_of_its_call() -> None:
    made, engine, tokenizer = run(ADD, "it is 4")
    assert text_of(made) == f"{PROMPT}{ADD}{AFTER}it is 4<|end|>"
    assert made["rewards"].tolist() == [1.0]
    call, result, end = len(ADD) + 1, len(tokenizer.encode(AFTER[7:])), len("it is 4") + 1
    mask = [0] * len(tokenizer.encode(PROMPT)) + [1] * call + [0] * result + [1] * end
    assert made["loss_mask"].tolist() == [mask]
    assert made["versions"].tolist() == [[7 if generated else -1 for generated in mask]]
    assert tokenizer.decode(engine.requests[1].input_ids) == f"{PROMPT}{ADD}{AFTER}"


def test_without_a_call_there_is_one_turn() -> None:
    made, engine, _ = run("it is 4")
    assert made["rewards"].tolist() == [1.0]
    assert len(engine.requests) == 1


def test_calls_of_the_last_turn_are_not_run() -> None:
    made, engine, _ = run(ADD, ADD, max_turns=2)
    assert text_of(made) == f"{PROMPT}{ADD}{AFTER}{ADD}<|end|>"
    assert made["rewards"].tolist() == [0.0]
    assert len(engine.requests) == 2


def test_a_call_that_was_cut_off_is_not_run() -> None:
    made, engine, _ = run(said(ADD, stop_reason="length"))
    assert text_of(made) == f"{PROMPT}{ADD}"
    assert len(engine.requests) == 1


def test_a_result_that_leaves_no_room_ends_the_conversation() -> None:
    made, engine, _ = run(ADD, config={"max_tokens": len(FakeTokenizer().encode(PROMPT + ADD)) + 5})
    assert text_of(made) == f"{PROMPT}{ADD}<|end|>"
    assert len(engine.requests) == 1


def test_a_reward_of_none_rejects_the_sample() -> None:
    made, _, _ = run("it is 4", reward_fn=no_reward)
    assert made is None


def test_calls_can_be_written_otherwise_and_schemas_reach_the_template() -> None:
    def parse(text: str) -> list[ToolCall]:
        return [ToolCall("add", {"a": 1, "b": 3})] if "ADD!" in text else []

    made, _, tokenizer = run("ADD!", "it is 4", parse=parse, tool_schemas=[{"name": "add"}])
    assert text_of(made) == f"{PROMPT}ADD!{AFTER}it is 4<|end|>"
    assert tokenizer.settings == [{"enable_thinking": False, "tools": [{"name": "add"}]}] * 2


def test_a_conversation_needs_a_turn() -> None:
    with pytest.raises(ValueError, match="max_turns must be positive"):
        run(max_turns=0)


def test_phases_and_counts_are_recorded() -> None:
    with capture() as captured:
        with rollscope.session():
            run(ADD + ADD, "it is 4")
        session, *phases = captured.spans()
    assert (session.attrs["turns"], session.attrs["tool_calls"]) == (2, 2)
    names = [phase.name for phase in phases]
    assert names == ["generate", "toolcall", "toolcall", "generate", "reward"]
    assert {phase.parent_id for phase in phases} == {session.span_id}
