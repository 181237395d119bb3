from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rollscope
from rollscope.rollout.engine import GenerationConfig
from rollscope.rollout.multi_turn import RETRY_MESSAGE, MultiTurnWorkflow
from rollscope.testing import capture
from tests.unit.rollout.fakes import EOS, FakeEngine, FakeTokenizer

ITEM = {"messages": [{"role": "user", "content": "2+2?"}], "answer": "4"}
PROMPT = "<|user|>2+2?<|end|>\n<|assistant|>"
RETRY = f"\n<|user|>{RETRY_MESSAGE}<|end|>\n<|assistant|>"


class Reward:
    """Rates by whether the right answer is in the text, and keeps what it saw."""

    def __init__(self, unrated: str = "?") -> None:
        self.unrated = unrated
        self.seen: list[tuple[str, str]] = []

    async def __call__(
        self, prompt: str, completion: str, *_ids: Any, answer: str, **_data: Any
    ) -> float | None:
        self.seen.append((prompt, completion))
        return None if completion.startswith(self.unrated) else float(answer in completion)


def run(
    engine: FakeEngine, *, max_turns: int = 3, reward: Reward | None = None, **config: Any
) -> Any:
    workflow = MultiTurnWorkflow(
        reward or Reward(), GenerationConfig(**config), FakeTokenizer(), max_turns, 0.5
    )
    return asyncio.run(workflow.arun_episode(engine, ITEM))


def test_a_right_answer_ends_it_at_full_reward() -> None:
    engine = FakeEngine("4")
    assert run(engine)["rewards"].tolist() == [1.0]
    assert len(engine.requests) == 1


def test_each_retry_halves_the_reward_and_its_message_is_not_trained_on() -> None:
    tokenizer, reward = FakeTokenizer(), Reward()
    made = run(FakeEngine("5", "6", "4"), reward=reward)
    assert made["rewards"].tolist() == [0.25]
    text = f"{PROMPT}5<|end|>{RETRY}6<|end|>{RETRY}4<|end|>"
    assert tokenizer.decode(made["input_ids"].tolist()[0]) == text
    given = [0] * len(tokenizer.encode(RETRY))
    expected = [0] * len(tokenizer.encode(PROMPT)) + [1, 1, *given, 1, 1, *given, 1, 1]
    assert made["loss_mask"].tolist() == [expected]
    assert made["versions"].tolist() == [[7 if mask else -1 for mask in expected]]
    assert reward.seen[1] == (f"{PROMPT}5<|end|>{RETRY}", "6<|end|>")


def test_it_ends_when_turns_run_out() -> None:
    engine = FakeEngine("5", "6", "4")
    assert run(engine, max_turns=2)["rewards"].tolist() == [0.0]
    assert len(engine.requests) == 2


def test_it_ends_when_the_conversation_is_full() -> None:
    engine = FakeEngine("5", "4")
    made = run(engine, max_tokens=60)
    assert made["rewards"].tolist() == [0.0]
    assert made["input_ids"].tolist()[0][-1] == EOS
    assert len(engine.requests) == 1


def test_an_answer_that_cannot_be_rated_rejects_the_sample() -> None:
    assert run(FakeEngine("5", "?")) is None


def test_the_session_learns_how_many_turns_there_were() -> None:
    with capture() as captured:
        with rollscope.session():
            run(FakeEngine("5", "4"))
        spans = captured.spans()
    assert spans[0].attrs["turns"] == 2
    assert [span.name for span in spans[1:]] == ["generate", "reward", "generate", "reward"]


@pytest.mark.parametrize(("max_turns", "discount"), [(0, 0.5), (-1, 0.5), (1, 0.0), (1, 1.5)])
def test_senseless_settings_are_refused(max_turns: int, discount: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        MultiTurnWorkflow(Reward(), GenerationConfig(), FakeTokenizer(), max_turns, discount)
