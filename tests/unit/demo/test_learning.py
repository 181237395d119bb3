"""The demo's policy learns what its task asks for, on any seed, without any of the processes."""

from random import Random
from typing import Any

import numpy as np
import pytest

from rollscope.demo.language import ASK, END, PAD, decode, encode, make_problem, rate, solve
from rollscope.demo.learning import Learner
from rollscope.demo.policy import Policy, windows

GROUP = 8
PROMPTS = 12


def play(policy: Policy, problem: str, random: np.random.Generator) -> dict[str, Any]:
    ids = encode(f"{problem}=")
    mask, logprobs = [0] * len(ids), [0.0] * len(ids)
    answered_from, has_asked = len(ids), False
    for _ in range(24):
        (token,), (logprob,) = policy.sample(windows(ids, [len(ids)]), random)
        ids, mask, logprobs = [*ids, int(token)], [*mask, 1], [*logprobs, float(logprob)]
        if token == ASK and not has_asked:
            result = encode(f"{solve(problem)}:")
            ids, mask = ids + result, mask + [0] * len(result)
            logprobs += [0.0] * len(result)
            answered_from, has_asked = len(ids), True
        elif token == END:
            break
    answer = decode(ids[answered_from:]).lstrip(".").removesuffix("$")
    return {"ids": ids, "mask": mask, "logprobs": logprobs, "reward": rate(problem, answer)}


def grouped(samples: list[dict[str, Any]]) -> dict[str, Any]:
    longest = max(len(one["ids"]) for one in samples)

    def padded(name: str, value: float) -> Any:
        return np.array([one[name] + [value] * (longest - len(one[name])) for one in samples])

    return {
        "input_ids": padded("ids", PAD),
        "loss_mask": padded("mask", 0),
        "logprobs": padded("logprobs", 0.0),
        "rewards": np.array([one["reward"] for one in samples]),
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_reward_rises_from_nearly_nothing_to_nearly_all(seed: int) -> None:
    problems, random, learner = Random(seed), np.random.default_rng(seed), Learner()
    rewards = []
    for _ in range(60):
        batch = [make_problem(problems) for _ in range(PROMPTS)]
        groups = [
            grouped([play(learner.policy, problem, random) for _ in range(GROUP)])
            for problem in batch
        ]
        rewards.append(learner.update(groups).reward)

    assert np.mean(rewards[:5]) < 0.3
    assert np.mean(rewards[-5:]) > 0.8
    assert learner.version == 60


def test_weights_survive_the_way_to_a_replica() -> None:
    policy = Policy()
    policy.weights[:] = np.random.default_rng(0).normal(size=policy.weights.shape)

    assert (Policy.from_bytes(policy.to_bytes()).weights == policy.weights).all()
    with pytest.raises(ValueError, match="reshape"):
        Policy.from_bytes(policy.to_bytes()[:-8])


def test_an_answer_is_worth_its_right_digits() -> None:
    assert rate("37*46", "1702") == 1.0
    assert rate("37*46", "1700") == 0.75
    assert rate("37*46", "170") == 0.375
    assert rate("10*10", "0100") == 1.0
    assert rate("37*46", "") == 0.0
