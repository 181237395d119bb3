from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rollscope
from rollscope.rollout.engine import GenerationConfig
from rollscope.rollout.reward import AsyncRewardWrapper
from rollscope.rollout.rlvr import RLVRWorkflow
from rollscope.testing import capture
from tests.unit.rollout.fakes import EOS, FakeEngine, FakeTokenizer

HERE = "tests.unit.rollout.test_rlvr"
PROMPT = "<|user|>2+2?<|end|>\n<|assistant|>"
ITEM = {"messages": [{"role": "user", "content": "2+2?"}], "answer": "4"}


class Reward:
    """Keeps what it is called with."""

    def __init__(self, value: float | None = 1.0) -> None:
        self.value = value
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    async def __call__(self, *args: Any, **kwargs: Any) -> float | None:
        self.calls.append((args, kwargs))
        return self.value


def first_field(data: Any) -> Any:
    return data["question"]


def characters(prompt: str, tokenizer: Any, enable_thinking: bool) -> list[int]:
    return [*tokenizer.encode(prompt), int(enable_thinking)]


def plain_reward(prompt: str, completion: str, *_ids: Any, answer: str, **_data: Any) -> float:
    return float(answer in completion)


def run(workflow: RLVRWorkflow, engine: FakeEngine, data: dict[str, Any] = ITEM) -> Any:
    return asyncio.run(workflow.arun_episode(engine, data))


def test_an_answer_becomes_a_trajectory_of_one_row() -> None:
    tokenizer, engine = FakeTokenizer(), FakeEngine("4")
    made = run(RLVRWorkflow(Reward(0.5), GenerationConfig(n_samples=8), tokenizer), engine)
    tokens = tokenizer.encode(f"{PROMPT}4<|end|>")
    prompt_len = len(tokens) - 2
    assert made["input_ids"].tolist() == [tokens]
    assert made["loss_mask"].tolist() == [[0] * prompt_len + [1, 1]]
    assert made["versions"].tolist() == [[-1] * prompt_len + [7, 7]]
    assert made["logprobs"].tolist() == [[0.0] * prompt_len + [-0.5, -0.5]]
    assert made["rewards"].tolist() == [0.5]
    assert [request.gconfig.n_samples for request in engine.requests] == [1]


def test_the_reward_gets_texts_tokens_and_the_fields_of_the_item() -> None:
    tokenizer, reward = FakeTokenizer(), Reward()
    data = {**ITEM, "prompt": "would clash"}
    run(RLVRWorkflow(reward, GenerationConfig(), tokenizer), FakeEngine("4"), data)
    ((args, kwargs),) = reward.calls
    answer = [*tokenizer.encode("4"), EOS]
    assert args == (PROMPT, "4<|end|>", tokenizer.encode(PROMPT), answer)
    assert kwargs == ITEM


def test_a_reward_of_none_rejects_the_sample() -> None:
    workflow = RLVRWorkflow(Reward(None), GenerationConfig(), FakeTokenizer())
    assert run(workflow, FakeEngine("4")) is None


def test_the_prompt_can_be_made_otherwise_and_functions_named_by_path() -> None:
    tokenizer, engine = FakeTokenizer(), FakeEngine("4")
    workflow = RLVRWorkflow(
        Reward(),
        GenerationConfig(),
        tokenizer,
        enable_thinking=True,
        get_input_ids_fn=f"{HERE}.characters",
        data_extract_prompt_fn=f"{HERE}.first_field",
    )
    run(workflow, engine, {"question": "hm"})
    assert engine.requests[0].input_ids == [*tokenizer.encode("hm"), 1]


def test_thinking_is_told_to_the_template() -> None:
    tokenizer = FakeTokenizer()
    run(
        RLVRWorkflow(Reward(), GenerationConfig(), tokenizer, enable_thinking=True), FakeEngine("4")
    )
    assert tokenizer.settings == [{"enable_thinking": True}]


@pytest.mark.parametrize("reward_fn", [plain_reward, f"{HERE}.plain_reward"])
def test_a_plain_function_is_run_in_another_process(
    reward_fn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped: list[Any] = []

    async def call(wrapper: AsyncRewardWrapper, *args: Any, **kwargs: Any) -> float:
        wrapped.append(wrapper.reward_fn)
        return plain_reward(*args, **kwargs)

    monkeypatch.setattr(AsyncRewardWrapper, "__call__", call)
    made = run(RLVRWorkflow(reward_fn, GenerationConfig(), FakeTokenizer()), FakeEngine("4"))
    assert made["rewards"].tolist() == [1.0]
    assert wrapped == [reward_fn]


def test_both_phases_are_recorded_with_their_facts() -> None:
    with capture() as captured:
        with rollscope.session():
            run(RLVRWorkflow(Reward(0.5), GenerationConfig(), FakeTokenizer()), FakeEngine("4"))
        generate, reward = captured.named("generate"), captured.named("reward")
    assert generate.attrs == {
        "tokens_in": len(FakeTokenizer().encode(PROMPT)),
        "tokens_out": 2,
        "stop_reason": "stop",
    }
    assert reward.attrs == {"reward": 0.5}
