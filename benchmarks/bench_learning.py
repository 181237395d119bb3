"""Whether the demo learns, and how soon: all of it, with its processes, page and recording.

    python benchmarks/bench_learning.py [--seeds 1 2 3] [--steps N]

Runs `rollscope demo` once for each seed. *first* and *last* are the mean rewards of the first and
the last five steps, as the demo itself sums up. *to 0.8* is the time until the mean of five steps
in a row is over 0.8, counted from the start of the command, so with the start of all processes.
Wanted on two cores: from under 0.3 to over 0.8 within 120 seconds, on every seed.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Final, NamedTuple

from reporting import print_table, to_json

_STEP: Final = re.compile(r"  step +\d+  reward (\d\.\d+) ")
_FEW: Final = 5
_GOAL: Final = 0.8
_START: Final = 0.3
_LIMIT_S: Final = 120


class Learned(NamedTuple):
    """What came of one training."""

    first: float
    last: float
    goal_s: float
    """Not a number if it was never reached."""
    steps_s: float

    @property
    def is_as_wanted(self) -> bool:
        """Whether it rose as far as it should, in the time it has."""
        return self.first < _START and self.last > _GOAL and self.goal_s <= _LIMIT_S


def train(seed: int, steps: int) -> Learned:
    """Run the demo; follow what it prints."""
    command = [sys.executable, "-m", "rollscope", "demo", "--exit", "--port", "0"]
    command += ["--seed", str(seed), "--steps", str(steps)]
    environ = {name: value for name, value in os.environ.items() if "ROLLSCOPE" not in name}
    rewards: list[float] = []
    goal_s = math.nan
    began = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True
        ) as demo,
    ):
        for line in demo.stdout or ():
            found = _STEP.match(line)
            if found is None:
                continue
            rewards.append(float(found[1]))
            steps_s = time.perf_counter() - began
            if math.isnan(goal_s) and statistics.fmean(rewards[-_FEW:]) > _GOAL:
                goal_s = steps_s
    assert (demo.returncode, len(rewards)) == (0, steps)
    first, last = statistics.fmean(rewards[:_FEW]), statistics.fmean(rewards[-_FEW:])
    return Learned(first, last, goal_s, steps_s)


def main() -> None:
    """Train on every seed and print the table."""
    parser = argparse.ArgumentParser(description="Measure how soon the demo learns.")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=80, help="as many as the demo has of itself")
    arguments = parser.parse_args()
    learned = {seed: train(seed, arguments.steps) for seed in arguments.seeds}
    rows = [
        [
            str(seed),
            f"{one.first:.2f}",
            f"{one.last:.2f}",
            f"{one.goal_s:.0f} s",
            f"{one.steps_s:.0f} s",
            "yes" if one.is_as_wanted else "no",
        ]
        for seed, one in learned.items()
    ]
    print_table(
        f"The demo, {arguments.steps} steps",
        ["seed", "first", "last", "to 0.8", "all steps", "as wanted"],
        rows,
    )
    figures = {f"seed {seed}": one._asdict() for seed, one in learned.items()}
    print(to_json("learning", figures))


if __name__ == "__main__":
    main()
