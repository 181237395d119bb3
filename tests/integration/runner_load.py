"""Sends many tasks through a runner with a bounded number out, and says what it took.

`python -m tests.integration.runner_load 1000000` by hand; the suite runs a smaller load.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import rollscope as rs
from rollscope.errors import WaitTimeout
from rollscope.runner import Runner
from tests.integration.misbehaviour import CountingSink, RssWatch

_OUT = 2_000
_WARM_UP = 20_000


async def work(number: int) -> int:
    if number % 7 == 0:
        await asyncio.sleep(0)
    if number % 11 == 0:
        raise ValueError(number)
    return number


def run(runner: Runner, first: int, count: int) -> int:
    """Have tasks done, with callers that give up among those that wait; give how many came."""
    submitted = fetched = 0
    while fetched < count:
        while submitted < count and submitted - fetched < _OUT:
            number = first + submitted
            handle = runner.options(queue_timeout_s=600.0).submit(work, number)
            submitted += 1
            if number % 50 == 0:
                runner.cancel(handle.id)
            if number % 500 == 0:
                give_up(runner)
        ready = runner.wait(min(500, count - fetched), 60.0)
        fetched += len(ready)
    return fetched


def give_up(runner: Runner) -> None:
    """Wait for what does not come."""
    with suppress(WaitTimeout):
        runner.wait(10 * _OUT, timeout_s=0.0)
    with suppress(WaitTimeout):
        runner.wait(1, timeout_s=0.0, where=lambda one: one.id == -1)
    runner.pause("nobody", mode="hold")
    runner.resume("nobody")


def measure(count: int, *, is_recorded: bool) -> dict[str, Any]:
    """Give figures about a load."""
    if is_recorded:
        rs.init(sink=CountingSink(), buffer_mb=8.0)
    with Runner(concurrency=256, breaker=None) as runner:
        run(runner, 0, _WARM_UP)
        gc.collect()
        watch = RssWatch()
        objects = len(gc.get_objects())
        began, cpu = time.monotonic(), time.process_time()
        fetched = run(runner, _WARM_UP, count)
        took_s, cpu_s = time.monotonic() - began, time.process_time() - cpu
        gc.collect()
        ledger = runner.ledger()
        figures = {
            "tasks": fetched,
            "growth_mb": watch.growth_mb,
            "objects": len(gc.get_objects()) - objects,
            "tasks_per_s": round(fetched / took_s),
            "cpu_us_per_task": round(cpu_s / fetched * 1e6, 1),
            "adds_up": ledger.adds_up(),
            "left": ledger.unfinished + ledger.outbox,
            "threads": threading.active_count(),
        }
    rs.shutdown()
    return figures


if __name__ == "__main__":
    is_recorded = "recorded" in sys.argv[2:]
    print(json.dumps(measure(int(sys.argv[1]), is_recorded=is_recorded)))  # noqa: T201
