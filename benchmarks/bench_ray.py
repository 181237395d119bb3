"""How busy the Ray backend keeps its actors: tasks of 10 ms on two actors of 16 slots each.

    python benchmarks/bench_ray.py [--rounds N] [--tasks N]

*ideal* is what the arithmetic gives: 32 slots, 10 ms, 3,200 tasks a second. *floor* is two plain
actors that each sleep their half behind a semaphore and send nothing at all: what a sleep of 10 ms
really takes on this machine. *ours* submits each task by itself at the head and fetches each
outcome there. Every round runs in a process, and on a Ray cluster, of its own; medians count.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import statistics
import subprocess
import sys
import time
from typing import Any, Final

from reporting import print_table, to_json

_ACTORS: Final = 2
_SLOTS: Final = 16
_SLEEP_S: Final = 0.01
_IDEAL: Final = _ACTORS * _SLOTS / _SLEEP_S
_TIMEOUT_S: Final = 180


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure how busy Ray's actors are kept.")
    parser.add_argument("--rounds", type=int, default=3, help="processes per figure")
    parser.add_argument("--tasks", type=int, default=6_000)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


async def nap() -> None:
    """Be the task."""
    await asyncio.sleep(_SLEEP_S)


class Sleeper:
    """A plain actor: everything stays inside of it."""

    async def sleep(self, tasks: int) -> float:
        """Sleep so many times behind a semaphore; give how long that took."""
        slots = asyncio.Semaphore(_SLOTS)

        async def one() -> None:
            async with slots:
                await nap()

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(tasks)))
        return time.perf_counter() - began


def measure_floor(ray: Any, tasks: int) -> float:  # noqa: ANN401  (the module)
    """Give tasks a second of actors that talk to nobody."""
    sleeper = ray.remote(num_cpus=0)(Sleeper)
    sleepers = [sleeper.remote() for _ in range(_ACTORS)]
    ray.get([one.sleep.remote(_SLOTS) for one in sleepers])
    took_s = max(ray.get([one.sleep.remote(tasks // _ACTORS) for one in sleepers]))
    for one in sleepers:
        ray.kill(one)
    return tasks / took_s


def measure_ours(tasks: int) -> float:
    """Give tasks a second of our runner, seen from its caller."""
    from rollscope.runner.ray import RayRunner

    with RayRunner(
        actors=_ACTORS, per_actor=_SLOTS, resources={"CPU": 0}, inbox=2 * tasks
    ) as runner:
        rates = []
        for count in (tasks // 10, tasks):  # the first is to warm up
            began = time.perf_counter()
            for _ in range(count):
                runner.submit(nap)
            outcomes = runner.wait(count, timeout_s=_TIMEOUT_S)
            rates.append(count / (time.perf_counter() - began))
            assert all(one.is_ok for one in outcomes)
    return rates[-1]


def work(tasks: int) -> None:
    """Measure both in this process."""
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100_000_000,
        logging_level=logging.ERROR,
    )
    figures = {"floor": measure_floor(ray, tasks), "ours": measure_ours(tasks)}
    ray.shutdown()
    print(json.dumps(figures))


def run_round(tasks: int) -> dict[str, float]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--worker", "--tasks", str(tasks)]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=True)
    figures: dict[str, float] = json.loads(done.stdout.decode().strip().rpartition("\n")[2])
    return figures


def main() -> None:
    """Run the rounds and print the table."""
    arguments = parse_arguments()
    if arguments.worker:
        work(arguments.tasks)
        return
    rounds = [run_round(arguments.tasks) for _ in range(arguments.rounds)]
    floor = statistics.median(one["floor"] for one in rounds)
    ours = statistics.median(one["ours"] for one in rounds)
    to_floor = statistics.median(one["ours"] / one["floor"] for one in rounds)
    rows = [
        ["ideal", f"{_IDEAL:,.0f}", "1.00", ""],
        ["floor", f"{floor:,.0f}", f"{floor / _IDEAL:.2f}", "1.00"],
        ["ours", f"{ours:,.0f}", f"{ours / _IDEAL:.2f}", f"{to_floor:.2f}"],
    ]
    print_table(
        f"{arguments.tasks:,} tasks of 10 ms on {_ACTORS} actors of {_SLOTS} slots",
        ["", "tasks/s", "of ideal", "of floor"],
        rows,
    )
    figures = {"floor": floor, "ours": ours, "of_ideal": ours / _IDEAL, "of_floor": to_floor}
    print(to_json("ray", figures))


if __name__ == "__main__":
    main()
