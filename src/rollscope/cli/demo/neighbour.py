"""The demo's second process: rolls out until it is killed."""

import asyncio
import sys
from itertools import count

import rollscope as rs
from rollscope.cli.demo.rollouts import RolloutWorker

_TASKS_PER_STEP = 3


async def _roll_out(seed: int) -> None:
    worker = RolloutWorker(seed, slots=4)
    for number in count():
        step = number // _TASKS_PER_STEP
        await worker.run_task(f"swe/{number}", step=step, version=step)


if __name__ == "__main__":
    rs.init()
    asyncio.run(_roll_out(int(sys.argv[1])))
