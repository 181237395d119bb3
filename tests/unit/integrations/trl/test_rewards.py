"""Reward functions as phases, without a trainer around them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rollscope as rs
from rollscope.integrations.trl import traced_reward
from rollscope.testing.capture import capture


def test_outside_of_a_trainer_it_is_a_phase_of_its_session() -> None:
    async def judged(prompts: Any, completions: Any, **kwargs: Any) -> list[float]:
        await asyncio.sleep(0)
        return [0.5, 0.25]

    class Judge:
        async def __call__(self, prompts: Any, completions: Any) -> list[float]:
            return [0.0]

    functions: list[Any] = [judged, Judge()]
    first, second = traced_reward(functions)
    with capture() as captured:
        with rs.task("item"), rs.session():
            assert asyncio.run(first([1], ["a", "b"])) == [0.5, 0.25]
            assert asyncio.run(second([1], completions=["a"])) == [0.0]
        phases = [span for span in captured.spans() if span.name == "reward"]
    assert [span.attrs for span in phases] == [
        {"function": "judged", "samples": 2, "reward_mean": 0.375},
        {"function": "Judge", "samples": 1, "reward_mean": 0.0},
    ]
    assert {span.kind for span in phases} == {"phase"}


def test_models_are_not_wrapped() -> None:
    class Model:
        def forward(self) -> None:
            pass

        def __call__(self) -> None:
            pass

    model = Model()
    assert traced_reward([model, "org/reward-model"]) == [model, "org/reward-model"]


def test_an_error_passes_and_marks_the_phase() -> None:
    def broken(completions: list[str]) -> list[float]:
        raise KeyError("answer")

    with capture() as captured:
        with pytest.raises(KeyError):
            traced_reward(broken)(completions=["a"])
        span = captured.named("reward")
    assert (span.status, span.attrs) == ("error", {"function": "broken", "samples": 1})


@pytest.mark.parametrize("given", [None, 3.0, "text", [float("nan"), 10**400, "x"], [None]])
def test_odd_rewards_are_given_back_as_they_are(given: Any) -> None:
    with capture() as captured:
        assert traced_reward(lambda **_: given)(completions=None) is given
        attrs = captured.named("reward").attrs
    assert attrs.get("unscored", 0) == (len(given) if isinstance(given, list) else 0)
    assert "reward_mean" not in attrs
