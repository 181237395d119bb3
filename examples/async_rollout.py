"""Rollouts that go on while the trainer trains, with a bound on how old their weights are.

python examples/async_rollout.py [runs], then: rollscope steps runs/async-rollout
"""

import asyncio
import random
import sys
from types import SimpleNamespace
from typing import Any

import rollscope
from rollscope.rollout import ModelRequest, ModelResponse, RolloutWorkflow, generate
from rollscope.rollout.executor import WorkflowExecutor
from rollscope.rollout.transcript import Transcript


class ToyEngine:
    """Answers with one digit, after a while."""

    version = 0

    async def agenerate(self, req: ModelRequest) -> ModelResponse:  # noqa: D102
        await asyncio.sleep(random.uniform(0.005, 0.010))
        return ModelResponse(req.input_ids, [random.randrange(10)], [-2.3])

    def get_version(self) -> int:  # noqa: D102
        return self.version


class Guess(RolloutWorkflow):
    """Rewards even digits."""

    async def arun_episode(self, engine: Any, data: Any) -> Any:  # noqa: D102, ANN401
        sample = Transcript(data["prompt"])
        with rollscope.phase("generate"):
            sample.add_generated(await generate(engine, ModelRequest(data["prompt"])))
        return sample.to_trajectory(reward=float(sample.input_ids[-1] % 2 == 0))


rollscope.init(run="async-rollout", dir=sys.argv[1] if len(sys.argv) > 1 else "runs")
prompts = [{"id": f"digit/{number}", "prompt": [number]} for number in range(12)]
loader = type("Loader", (list,), {"batch_size": 4})(prompts[at : at + 4] for at in (0, 4, 8))
limits = SimpleNamespace(consumer_batch_size=4, max_concurrent_rollouts=8, max_head_offpolicyness=1)
executor = WorkflowExecutor(limits, engine := ToyEngine())
executor.initialize()
check = executor.submit(prompts[0], Guess(), is_eval=True)
for step in range(5):
    with rollscope.step(step):  # groups whose rewards are all the same teach nothing
        batch = executor.prepare_batch(
            loader, Guess(), lambda group: group["rewards"].std() > 0, group_size=4
        )
        ages = sorted({step - int(group["versions"][:, -1].min()) for group in batch})
        print(f"step {step}: {len(batch)} groups, ages {ages}; {executor.stats_text()}")
        engine.version = step + 1  # a trainer would train first
        executor.set_version(engine.version)
print("evaluation:", executor.wait_for_task(check)["rewards"].tolist())
print("not finished:", len(executor.destroy().unfinished))
rollscope.shutdown()
