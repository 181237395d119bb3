from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rollscope.rollout.agent import AgentWorkflow
from rollscope.rollout.trajectory import check_trajectory_format
from tests.unit.rollout.fakes import FakeEngine, FakeTokenizer


class Client:
    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.rewards: dict[str, float] = {}

    def set_reward(self, interaction_id: str, reward: float, /) -> None:
        self.rewards[interaction_id] = reward

    def set_last_reward(self, reward: float) -> None:
        self.rewards["last"] = reward

    def export_interactions(self, style: str) -> dict[str, Any]:
        assert style == "individual"
        return self.rewards


class Agent:
    def __init__(self, result: Any) -> None:
        self.result = result
        self.seen: list[tuple[Any, Any]] = []

    async def run(self, data: Any, **extra: Any) -> Any:
        self.seen.append((data, extra["client"]))
        return self.result


def run(agent: Agent) -> dict[str, Any] | None:
    return asyncio.run(AgentWorkflow(agent, Client).arun_episode(FakeEngine(), "item"))


@pytest.mark.parametrize(("result", "rewards"), [(0.5, {"last": 0.5}), (1, {"last": 1.0})])
def test_a_number_is_the_reward_of_the_last_completion(
    result: float, rewards: dict[str, float]
) -> None:
    assert run(Agent(result)) == rewards


def test_a_dict_rewards_each_completion() -> None:
    assert run(Agent({"a": 0.5, "b": 1})) == {"a": 0.5, "b": 1.0}


@pytest.mark.parametrize("result", [None, "1.0", {"a": "much"}, {1: 0.5}, [1.0]])
def test_any_other_result_is_refused(result: Any) -> None:
    with pytest.raises(ValueError, match=r"Agent\.run returned a"):
        run(Agent(result))


def test_an_agent_that_never_asked_the_model_gives_no_trajectory() -> None:
    assert run(Agent({})) is None


def test_each_episode_has_a_client_of_its_own() -> None:
    agent, engine = Agent(1.0), FakeEngine()
    workflow = AgentWorkflow(agent, Client)
    for item in ("one", "two"):
        asyncio.run(workflow.arun_episode(engine, item))
    (first, one), (second, two) = agent.seen
    assert (first, second) == ("one", "two")
    assert one is not two
    assert one.engine is engine


def test_by_default_the_engine_answers_through_a_client_that_keeps_all() -> None:
    class Asking:
        async def run(self, data: Any, **extra: Any) -> float:
            answer = await extra["client"].chat.completions.create(messages=data)
            return float(answer.choices[0].message.content == "hello")

    engine: Any = FakeEngine("hello")
    engine.tokenizer = FakeTokenizer()
    made = asyncio.run(
        AgentWorkflow(Asking()).arun_episode(engine, [{"role": "user", "content": "hi"}])
    )
    assert made is not None
    assert check_trajectory_format(made)
    (interaction,) = made.values()
    assert interaction.to_tensor_dict()["rewards"].tolist() == [1.0]


def test_an_engine_without_a_tokenizer_is_told_of() -> None:
    with pytest.raises(ValueError, match="give `make_client`"):
        asyncio.run(AgentWorkflow(Agent(1.0)).arun_episode(FakeEngine(), "item"))
