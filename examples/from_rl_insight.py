"""A trainer that tells of itself with RL-Insight's calls; `rollscope view FOLDER` shows it.

    python examples/from_rl_insight.py FOLDER

The import is all that differs from a program for RL-Insight itself.
"""

import asyncio
import sys
from types import SimpleNamespace

import rollscope.integrations.rl_insight as rl_insight


@rl_insight.trace_op("update_actor")
def update_actor() -> int:
    """Stand for an optimiser's step."""
    return sum(range(10_000))


async def run_session(step: int, number: int) -> None:
    """Run one session of an agent loop."""
    session = rl_insight.agent_loop_session(
        project="examples", experiment_name="ppo", sample=step, session=number, global_steps=step
    )
    with rl_insight.trace_state("generate", state_lane_id=f"replica_{number}"):
        await asyncio.sleep(0.01)
    answer = SimpleNamespace(chain_id=1, reward_score=0.5, num_turns=1)
    session.finish(trajectories=[answer], status="success")


async def run_step(step: int) -> None:
    """Run two sessions at once."""
    await asyncio.gather(*(run_session(step, number) for number in range(2)))


def main() -> None:
    """Train for three steps, or so it seems."""
    own = {"dir": sys.argv[1]}
    config = {"prometheus": {"metrics_report_port": None}, "rollscope": own}
    rl_insight.init("examples", "ppo", config)
    for step in range(3):
        asyncio.run(run_step(step))
        with rl_insight.trace_state("train", state_lane_id="trainer_0"):
            update_actor()
        rl_insight.metric_gauge("critic/rewards/mean", 0.5)
    rl_insight.finish()


main()
