"""Rollouts on Ray actors, all of which ask one engine: a trace goes through all of them.

python examples/ray_rollout.py [runs], then: rollscope sessions runs/ray-rollout
"""

import asyncio
import random
import sys
from statistics import fmean
from typing import Any

import ray

import rollscope as rs
from rollscope import rayhub
from rollscope.runner.ray import RayRunner


class Engine:
    """Answers with one digit; its weights are the chance that it is even."""

    weights = 0.0

    async def generate(self, prompt: str) -> int:  # noqa: D102
        with rs.span("engine.request", tokens_in=len(prompt)):
            await asyncio.sleep(random.uniform(0.005, 0.020))
            return random.randrange(0, 10, 2) + (random.random() > self.weights)

    async def load(self, weights: float) -> None:  # noqa: D102
        with rs.span("weights.load", category="comm"):
            self.weights = weights


async def roll_out(engine: Any, prompt: str) -> float:  # noqa: ANN401, D103  (an actor's handle)
    with rs.phase("generate"):
        digit = await engine.generate.remote(prompt)
    with rs.phase("reward"):
        reward = float(digit % 2 == 0)
    rs.current().set(reward=reward)
    return reward


# The hook has all workers carry the context on, those of the runner too.
ray.init(runtime_env={"worker_process_setup_hook": "rollscope.rayhub.install"})
rs.init(run="ray-rollout", dir=sys.argv[1] if len(sys.argv) > 1 else "runs", sink="ray")
rayhub.install()
engine: Any = ray.remote(Engine).options(num_cpus=0).remote()
with RayRunner(actors=2, per_actor=8, resources={"CPU": 0.5}) as runner:
    for step in range(4):
        with rs.step(step):
            for number in range(16 * step, 16 * step + 16):
                runner.options(key=f"digit/{number}").submit(roll_out, engine, f"digit {number}")
            with rs.span("batch.wait", category="sync"):
                rewards = [outcome.value for outcome in runner.wait(16)]
            print(f"step {step}: mean reward {fmean(rewards):.2f}")
            with rs.span("weights.sync", category="comm"):  # a trainer would train first
                ray.get(engine.load.remote(0.3 * (step + 1)))
            runner.set_version(step + 1)
rs.shutdown()  # before Ray ends, and the hub with it
