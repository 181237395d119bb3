"""Rollouts traced with XTuner's calls; look at them with `rollscope view FOLDER`.

    python examples/from_xtuner.py FOLDER

The import is all that differs from a program for XTuner itself.
"""

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Any

from rollscope.integrations import xtuner as trace


@dataclass
class RolloutState:
    """One rollout; XTuner's own state has these fields and more."""

    rollout_id: int
    group_id: int
    status: str = "init"
    reward: dict[str, float] | None = None
    extra_fields: dict[str, Any] = field(default_factory=dict)


@trace.trace_rollout_endpoint("rollout.worker.generate")
async def generate(rollout_state: RolloutState) -> RolloutState:
    """Stand for an engine."""
    await asyncio.sleep(0.01)
    return rollout_state


@trace.trace_rollout_endpoint("single_turn_agent_loop.run")
async def run(rollout_state: RolloutState) -> RolloutState:
    """Run one rollout."""
    await generate(rollout_state)
    with trace.trace_span("check", {"stage": "reward"}):
        rollout_state.reward = {"score": 1.0}
    rollout_state.status = "completed" if rollout_state.rollout_id else "filtered"
    return rollout_state


async def main() -> None:
    """Run two groups of two rollouts."""
    config = trace.TraceConfig(
        enabled=True, output_dir=sys.argv[1], enable_rollout_trace=True, viewer_enabled=False
    )
    runtime = trace.configure_trace(config)
    await asyncio.gather(*(run(RolloutState(n, n // 2)) for n in range(4)))
    print(runtime.run_dir.name)
    trace.close_trace()


asyncio.run(main())
