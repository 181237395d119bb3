"""Rollouts that go on while the trainer trains, with a bound on how old their weights are.

python examples/async_rollout.py [runs], then: rollscope steps runs/async-rollout
"""

import asyncio
import random
import sys
from types import SimpleNamespace
from typing import Any

import rollscope as rs
from rollscope import rollout


class ToyEngine:
    """Answers with one digit, after a while."""

    version = 0

    async def agenerate(self, req: rollout.ModelRequest) -> rollout.ModelResponse:  # noqa: D102
        await asyncio.sleep(random.uniform(0.005, 0.010))
        return rollout.ModelResponse(req.input_ids, [random.randrange(10)], [-2.3])

    def get_version(self) -> int:  # noqa: D102
        return self.version


class Guess(rollout.RolloutWorkflow):
    """Rewards even digits."""

    async def arun_episode(self, engine: Any, data: Any) -> Any:  # noqa: D102, ANN401
        sample = rollout.Transcript(data["prompt"])
        with rs.phase("generate"):
            answer = await rollout.generate(engine, rollout.ModelRequest(data["prompt"]))
        sample.add_generated(answer)
        return sample.to_trajectory(reward=float(sample.input_ids[-1] % 2 == 0))


class Loader(list[Any]):  # noqa: D101
    batch_size = 4


rs.init(run="async-rollout", dir=sys.argv[1] if len(sys.argv) > 1 else "runs")
prompts = [{"id": f"digit/{number}", "prompt": [number]} for number in range(12)]
loader = Loader([prompts[:4], prompts[4:8], prompts[8:]])
limits = SimpleNamespace(consumer_batch_size=4, max_concurrent_rollouts=8, max_head_offpolicyness=1)
executor = rollout.WorkflowExecutor(limits, engine := ToyEngine())
executor.initialize()
for step in range(5):
    with rs.step(step):  # groups whose rewards are all the same teach nothing, so they are left out
        batch = executor.prepare_batch(
            loader, Guess(), lambda group: group["rewards"].std() > 0, group_size=4
        )
        ages = {step - int(group["versions"][:, -1].min()) for group in batch}
        print(f"step {step}: {len(batch)} groups, ages {sorted(ages)}; {executor.stats_text()}")
        engine.version = step + 1  # a trainer would train first
        executor.set_version(engine.version)
print("not finished:", len(executor.destroy().unfinished))
