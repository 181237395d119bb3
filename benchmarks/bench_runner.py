"""What the runner costs: beside the least code that does the same, and beside other runners.

    python benchmarks/bench_runner.py [--only MEASURE ...] [--subjects NAME ...] [--rounds N]
                                      [--areal PATH]

*bridge* is a loop in a thread, a call into it for each task, and a queue out of it: no account, no
limit, no tracing. *ours* does everything it always does, and records every task; *ours, off* does
not record. Each measure of each subject runs in processes of its own, in rounds, and the median is
the figure. Machines differ and so do days; the ratios, taken in one run, are what to compare.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import msgspec
from reporting import print_table, to_json
from running.measures import MEASURES
from running.promises import FIGURES, Verdict, judge_all
from running.subjects import NotOffered, find_subjects

_TIMEOUT_S: Final = 60
_OURS: Final = "ours"


class Answer(msgspec.Struct, omit_defaults=True):
    """What one process found out."""

    figures: dict[str, float] = {}
    not_offered: str = ""
    problem: str = ""


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure what the runner costs.")
    parser.add_argument("--only", nargs="+", choices=MEASURES, metavar="MEASURE", default=[])
    parser.add_argument("--subjects", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--rounds", type=int, default=3, help="processes per figure")
    parser.add_argument("--areal", type=Path, metavar="PATH", help="checkout of AReaL 1.0")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def work(subject: str, measure: str, areal: Path | None) -> Answer:
    """Measure, in this process; one whose thread dies would leave us waiting for ever."""
    threading.excepthook = _end_at_once
    try:
        return Answer(MEASURES[measure](find_subjects(areal)[subject]))
    except NotOffered as reason:
        return Answer(not_offered=str(reason))


def _end_at_once(what: threading.ExceptHookArgs) -> None:
    print(f"{what.exc_type.__name__}: {what.exc_value}", file=sys.stderr, flush=True)
    os._exit(1)


def run_in_process(subject: str, measure: str, areal: Path | None) -> Answer:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--worker", subject, measure]
    command += ["--areal", str(areal)] if areal else []
    # Settings of whoever runs the benchmark must not change what is measured.
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_TIMEOUT_S, check=False, env=env
        )
    except subprocess.TimeoutExpired:
        return Answer(problem=f"took longer than {_TIMEOUT_S} s")
    if done.returncode != 0:
        last_words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return Answer(problem=f"failed: {last_words}")
    return msgspec.json.decode(done.stdout.rpartition(b"\n")[2], type=Answer)


class Findings:
    """Every figure of every round."""

    def __init__(self, subjects: list[str]) -> None:
        self.values: dict[str, dict[str, list[float]]] = {subject: {} for subject in subjects}
        self.left_out: dict[tuple[str, str], str] = {}
        self.problems: dict[tuple[str, str], str] = {}

    def add(self, subject: str, measure: str, areal: Path | None) -> None:
        """Measure once more, unless it is known to be in vain."""
        where = subject, measure
        if where in self.left_out or where in self.problems:
            return
        answer = run_in_process(subject, measure, areal)
        if answer.not_offered:
            self.left_out[where] = answer.not_offered
        if answer.problem:
            self.problems[where] = answer.problem
        for name, value in answer.figures.items():
            self.values[subject].setdefault(name, []).append(value)

    def medians(self) -> dict[str, dict[str, float]]:
        """Give each figure's median, by subject."""
        return {
            subject: {name: statistics.median(values) for name, values in figures.items()}
            for subject, figures in self.values.items()
        }


def measure_all(subjects: list[str], options: argparse.Namespace) -> Findings:
    """Measure in rounds, so that a noisy minute does not hit one subject alone."""
    findings = Findings(subjects)
    for number in range(options.rounds):
        for measure in options.only or MEASURES:
            print(f"round {number + 1} of {options.rounds}: {measure}", file=sys.stderr)
            for subject in subjects:
                findings.add(subject, measure, options.areal)
    return findings


def print_figures(medians: dict[str, dict[str, float]]) -> None:
    """Print a row for each figure, a column for each subject that has any."""
    subjects = [subject for subject, figures in medians.items() if figures]
    rows = []
    for name, figure in FIGURES.items():
        if any(name in medians[subject] for subject in subjects):
            values = (medians[subject].get(name) for subject in subjects)
            cells = ["-" if value is None else figure.shown_as.format(value) for value in values]
            rows.append([figure.title, *cells])
    print_table("Runner, medians of fresh processes", ["", *subjects], rows)


def print_verdicts(verdicts: list[Verdict]) -> None:
    """Print each promise that could be judged."""
    rows = [
        [v.name, f"{v.value:.4g}", f"{v.limit:.4g}", "pass" if v.passed else "FAIL"]
        for v in verdicts
    ]
    print_table("Promises", ["", "here", "limit", ""], rows)


def main() -> int:
    """Measure, print; 1 if something of Rollscope's own could not be measured."""
    options = parse_arguments()
    if options.worker:
        subject, measure = options.worker
        answer = work(subject, measure, options.areal)
        sys.stdout.buffer.write(b"\n" + msgspec.json.encode(answer))
        return 0
    known = find_subjects(options.areal)
    unknown = [name for name in options.subjects if name not in known]
    if unknown:
        print(f"no such subject: {unknown[0]!r}; there are {sorted(known)}", file=sys.stderr)
        return 2
    findings = measure_all(options.subjects or [*known], options)
    medians = findings.medians()
    verdicts = judge_all(medians)
    print_figures(medians)
    print_verdicts(verdicts)
    for (subject, measure), problem in findings.problems.items():
        print(f"{subject}: {measure} could not be measured: {problem}", file=sys.stderr)
    left_out = {
        f"{subject}: {measure}": why for (subject, measure), why in findings.left_out.items()
    }
    problems = {
        f"{subject}: {measure}": why for (subject, measure), why in findings.problems.items()
    }
    print(
        to_json(
            "runner",
            {
                "rounds": options.rounds,
                "figures": medians,
                "promises": verdicts,
                "left_out": left_out,
                "problems": problems,
            },
        )
    )
    return 1 if any(subject.startswith(_OURS) for subject, _ in findings.problems) else 0


if __name__ == "__main__":
    sys.exit(main())
