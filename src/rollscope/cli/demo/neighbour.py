"""The demo's second process: rolls out until it is killed, or the demo is."""

import asyncio
import os
import sys
from itertools import count

import rollscope as rs
from rollscope.cli.demo.rollouts import RolloutWorker

_TASKS_PER_STEP = 3


async def _roll_out(seed: int) -> None:
    worker = RolloutWorker(seed, slots=4)
    demo = os.getppid()
    for number in count():
        if os.getppid() != demo:  # it was ended from outside, and could not end us
            return
        step = number // _TASKS_PER_STEP
        await worker.run_task(f"swe/{number}", step=step, version=step)


if __name__ == "__main__":
    rs.init()
    asyncio.run(_roll_out(int(sys.argv[1])))
