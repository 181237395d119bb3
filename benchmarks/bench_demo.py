"""What recording costs the demo: throughput, and CPU of all its processes, with it on and off.

    python benchmarks/bench_demo.py [--rounds N] [--steps N]

*off* trains with `ROLLSCOPE=off`. *on* records spans, metrics, payloads and stacks of all processes
into a run directory. *watched* also has the demo's page beside it, which follows the run, though
nobody looks at it. Each is a process of its own, with the demo's other processes under it; they
come in turns, and every second turn backwards, so that whatever else the machine does hits all
alike. A round has one seed; of the ratios of a round to its *off*, the mean counts, and the spread
is its standard error. The first steps, in which everything starts, do not count.

Updates are made, but with a learning rate of zero: what a policy has learned sets how long its
answers are, and no two trainings learn alike.

The demo waits most of the time, as a trainer does whose work is done by GPUs elsewhere: its rate is
set by the waiting. CPU is what recording takes away from whoever needs the cores.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from reporting import print_table, to_json

_SUBJECTS: Final = ("off", "on", "watched")
_WARM_UP: Final = 2
_TIMEOUT_S: Final = 300

Figures = dict[str, float]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure what recording costs the demo.")
    parser.add_argument("--rounds", type=int, default=8, help="trainings of each kind")
    parser.add_argument("--steps", type=int, default=20, help="of each training")
    parser.add_argument("--worker", choices=_SUBJECTS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def train(subject: str, steps: int, seed: int) -> Figures:
    """Train in this process; give sessions and tokens a second, and CPU time a session."""
    import rollscope as rs
    from rollscope.demo import learning
    from rollscope.demo.page import Page
    from rollscope.demo.running import run_demo

    vars(learning)["_RATE"] = 0.0
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        page = Page(run.parent, 0) if subject == "watched" else None
        if page is not None:
            page.wait_ready()
        rs.init(run=run.name, dir=folder, role="trainer", rank=0, stack_after_s=0.5, payloads=True)
        assert rs.enabled() is (subject != "off")
        marks, done = [], []
        for one in run_demo(run, steps=_WARM_UP + steps, seed=seed, fault=None, page=page):
            done.append(one)
            if len(done) in (_WARM_UP, _WARM_UP + steps):
                marks.append((time.perf_counter(), cpu_of_family_s()))
        rs.shutdown()
        if page is not None:
            page.close()
    (began_s, cpu_before_s), (ended_s, cpu_after_s) = marks
    sessions = sum(one.sessions for one in done[_WARM_UP:])
    tokens = sum(one.update.tokens for one in done[_WARM_UP:])
    return {
        "rate": sessions / (ended_s - began_s),
        "token_rate": tokens / (ended_s - began_s),
        "cpu_ms": 1e3 * (cpu_after_s - cpu_before_s) / sessions,
    }


def cpu_of_family_s() -> float:
    """Give the CPU time of this process and all under it, also of those that have ended."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        pid = int(entry.parent.name)
        children.setdefault(int(fields[1]), []).append(pid)
        ticks[pid] = sum(map(int, fields[11:15]))  # its own, and of children that it waited for
    family = [os.getpid()]
    for pid in family:
        family += children.get(pid, [])
    return sum(ticks[pid] for pid in family) / os.sysconf("SC_CLK_TCK")


def run_one(subject: str, steps: int, seed: int) -> Figures:
    """Measure a training in a process of its own."""
    command = [sys.executable, __file__, "--worker", subject]
    command += ["--steps", str(steps), "--seed", str(seed)]
    environ = {name: value for name, value in os.environ.items() if "ROLLSCOPE" not in name}
    if subject == "off":
        environ["ROLLSCOPE"] = "off"
    done = subprocess.run(
        command, env=environ, stdout=subprocess.PIPE, timeout=_TIMEOUT_S, check=True
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def compare(rounds: list[dict[str, Figures]], subject: str, figure: str) -> tuple[float, float]:
    """Give the mean ratio to *off*, and its standard error."""
    ratios = [one[subject][figure] / one["off"][figure] for one in rounds]
    error = statistics.stdev(ratios) / math.sqrt(len(ratios)) if len(ratios) > 1 else math.nan
    return statistics.fmean(ratios), error


def main() -> None:
    """Run the rounds and print the table."""
    arguments = parse_arguments()
    if arguments.worker:
        print(json.dumps(train(arguments.worker, arguments.steps, arguments.seed)))
        return
    rounds = []
    for seed in range(arguments.rounds):
        order = _SUBJECTS if seed % 2 == 0 else _SUBJECTS[::-1]
        rounds.append({subject: run_one(subject, arguments.steps, seed) for subject in order})
    rows, figures = [], {}
    for subject in _SUBJECTS:
        row = [subject]
        for figure, shape in (("rate", "{:.1f}"), ("token_rate", "{:.0f}"), ("cpu_ms", "{:.2f}")):
            mean = statistics.fmean(one[subject][figure] for one in rounds)
            ratio, error = compare(rounds, subject, figure)
            row += [shape.format(mean), f"{ratio:.3f} ± {error:.3f}"]
            figures[f"{subject}_{figure}"] = mean
            figures[f"{subject}_{figure}_ratio"] = ratio
            figures[f"{subject}_{figure}_error"] = error
        rows.append(row)
    print_table(
        f"The demo, {arguments.rounds} rounds of {arguments.steps} steps",
        ["", "sessions/s", "of off", "tokens/s", "of off", "CPU ms a session", "of off"],
        rows,
    )
    print(to_json("demo", figures))


if __name__ == "__main__":
    main()
