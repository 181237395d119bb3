"""What recording costs: Rollscope beside a floor and beside other recorders.

    python benchmarks/bench_overhead.py [--quick] [--json] [--areal PATH]

Two costs count. *caller* is the CPU time that the calling thread spends on a span: what a trainer
feels. *total* is the CPU time of the whole process, writer thread, encoding and files included.
Each subject runs in processes of its own, since recorders disturb each other. Figures vary between
machines and days; the ratios, taken in one run, are what to compare.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from overhead import floors, looplag, recording, rivals
from overhead.measure import FULL, QUICK, Result, Scale
from overhead.report import make_report, print_report

_TIMEOUT_S: Final = 300


class Subject(NamedTuple):
    """Something to measure."""

    run: Callable[[Scale], Result]
    title: str | None = None
    """Of its row in the table. A subject without one gives other figures, in a single process."""
    is_ours: bool = True
    """Whether the benchmark fails when this subject does."""


def list_subjects(areal: Path | None) -> dict[str, Subject]:
    """Name everything that is measured, in the order of the table."""
    return {
        "floor": Subject(floors.floor, "floor: two clock reads, one append"),
        "floor_with_parent": Subject(floors.floor_with_parent, "floor + parent in a contextvar"),
        "spans": Subject(recording.spans, "rollscope span, 2 attributes"),
        "async": Subject(recording.async_spans, "rollscope span over an await, 100 tasks"),
        "decorator": Subject(recording.decorated_calls, "rollscope @trace, over the bare call"),
        "disabled": Subject(recording.disabled, "rollscope span, 2 attributes, disabled"),
        "session": Subject(recording.sessions, "rollscope session with 3 phases (4 spans)"),
        "opentelemetry": Subject(
            rivals.opentelemetry, "OpenTelemetry SDK, no-op exporter", is_ours=False
        ),
        "viztracer": Subject(rivals.viztracer, "viztracer log_event, 0 attributes", is_ours=False),
        "areal": Subject(
            partial(rivals.areal, checkout=areal), "AReaL perf_tracer trace_scope", is_ours=False
        ),
        "memory": Subject(recording.memory),
        "loop_lag": Subject(looplag.loop_lag),
    }


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure what recording costs.")
    parser.add_argument("--quick", action="store_true", help="half a minute instead of two or so")
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    parser.add_argument("--areal", type=Path, metavar="PATH", help="checkout of AReaL 1.0")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_in_process(subject: str, options: argparse.Namespace) -> Result:
    """Measure one subject in a process of its own."""
    command = [sys.executable, __file__, "--worker", subject]
    command += ["--quick"] if options.quick else []
    command += ["--areal", str(options.areal)] if options.areal else []
    # Settings of whoever runs the benchmark must not change what is measured.
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_TIMEOUT_S, check=False, env=env
        )
    except subprocess.TimeoutExpired:
        return Result(problem=f"took longer than {_TIMEOUT_S} s")
    if done.returncode != 0:
        last_words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return Result(problem=f"failed: {last_words}")
    return msgspec.json.decode(done.stdout.rpartition(b"\n")[2], type=Result)


def measure_all(subjects: dict[str, Subject], options: argparse.Namespace) -> dict[str, Result]:
    """Measure every subject, in rounds, so that a noisy minute does not hit one of them alone."""
    scale = QUICK if options.quick else FULL
    results = {name: Result() for name in subjects}
    for number in range(scale.rounds):
        for name, subject in subjects.items():
            if results[name].problem or (number > 0 and subject.title is None):
                continue
            print(f"round {number + 1} of {scale.rounds}: {name}", file=sys.stderr)
            results[name].add(run_in_process(name, options))
    return results


def main() -> int:
    """Measure, print; 1 if something of Rollscope's own could not be measured."""
    options = parse_arguments()
    subjects = list_subjects(options.areal)
    if options.worker:
        result = subjects[options.worker].run(QUICK if options.quick else FULL)
        sys.stdout.buffer.write(b"\n" + msgspec.json.encode(result))
        return 0
    results = measure_all(subjects, options)
    titles = {name: subject.title for name, subject in subjects.items() if subject.title}
    report = make_report(titles, results)
    print_report(report)
    if options.json:
        print(msgspec.json.encode(report).decode())
    broken = [name for name in subjects if subjects[name].is_ours and results[name].problem]
    for name in broken:
        print(f"{name} could not be measured: {results[name].problem}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
