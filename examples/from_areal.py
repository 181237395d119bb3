"""Rollouts traced with AReaL's calls; look at them with `rollscope view FOLDER/logs/…/rollscope`.

    python examples/from_areal.py FOLDER

The import is all that differs from a program for AReaL itself.
"""

import asyncio
import sys

from rollscope.integrations import areal as perf_tracer


@perf_tracer.trace_session("generate")
async def generate(prompt: str) -> str:
    """Stand for an engine."""
    await asyncio.sleep(0.01)
    return prompt.upper()


@perf_tracer.session_context()
async def run_episode(prompt: str) -> float:
    """Run one sample of the current task."""
    answer = await generate(prompt)
    with perf_tracer.trace_session_phase("reward"):
        return float(answer == "TWO")


async def run_task(number: int, prompt: str) -> None:
    """Run two samples of a task and judge it."""
    perf_tracer.register_task(number)
    perf_tracer.set_task_id(number)
    rewards = await asyncio.gather(*(run_episode(prompt) for _ in range(2)))
    verdict = {"status": "accepted"} if any(rewards) else {"status": "rejected"}
    perf_tracer.trace_session_event("mark_finalized", task_id=number, **verdict)


def main() -> None:
    """Train for two steps, or so it seems."""
    config = {
        "experiment_name": "example",
        "trial_name": "first",
        "fileroot": sys.argv[1],
        "enabled": True,
        "session_tracer": {"enabled": True},
    }
    perf_tracer.configure(config, rank=0, role="master")
    for step, prompt in enumerate(("one", "two")):
        with perf_tracer.trace_scope("train.rollout", args={"global_step": step}):
            asyncio.run(run_task(step, prompt))
        perf_tracer.save(step=step)
    perf_tracer.reset()


main()
