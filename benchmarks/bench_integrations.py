"""What the stand-ins cost beside a native span: the CPU time of the calling thread per call.

    python benchmarks/bench_integrations.py [--quick] [--json]

Each subject runs in a process of its own, several times in turn; the best repetition is the figure.
A span or state that records may cost three native ones at most, and so may one that is off beside a
native one that is off. Whole sessions, which take seconds in life, have no limit: beside the native
task, session, phase and verdict they also make the lines of the classic files and the context that
travels with a rollout.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
from overhead.measure import FULL, QUICK, Result
from reporting import print_table, to_json
from standins.subjects import SUBJECTS

_LIMIT: Final = 3.0
_TIMEOUT_S: Final = 300


def run_in_process(name: str, *, quick: bool) -> Result:
    """Measure one subject in a process of its own."""
    command = [sys.executable, __file__, "--worker", name, *(["--quick"] if quick else [])]
    ours = ("ROLLSCOPE", "XTUNER_", "OTEL_", "RL_INSIGHT")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        command, capture_output=True, timeout=_TIMEOUT_S, check=False, env=env, cwd=_home()
    )
    if done.returncode:
        sys.stderr.write(done.stderr.decode(errors="replace"))
        raise SystemExit(f"{name} could not be measured")
    return msgspec.json.decode(done.stdout.rpartition(b"\n")[2], type=Result)


def _home() -> Path:
    return Path(__file__).parent


def show(results: dict[str, Result]) -> tuple[list[list[str]], dict[str, Any]]:
    """Give the rows of the table, and the figures."""
    best = {name: min(result.caller_ns) for name, result in results.items()}
    rows, figures = [], {}
    for name, subject in SUBJECTS.items():
        ratio = None if subject.beside is None else best[name] / best[subject.beside]
        is_judged = ratio is not None and subject.is_limited
        verdict = "" if not is_judged else "pass" if (ratio or 0.0) <= _LIMIT else "FAIL"
        shown = "" if ratio is None else f"{ratio:.2f}"
        rows.append([subject.title, f"{best[name]:,.0f}", shown, verdict])
        figures[name] = {"caller_ns": best[name], "ratio": ratio}
    return rows, figures


def main() -> int:
    """Measure and print; 1 if a stand-in costs too much."""
    parser = argparse.ArgumentParser(description="Measure what the stand-ins cost.")
    parser.add_argument("--quick", action="store_true", help="one round of each")
    parser.add_argument("--json", action="store_true", help="end with a line of JSON")
    parser.add_argument("--worker", choices=SUBJECTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    if options.worker:
        result = SUBJECTS[options.worker].run(scale)
        sys.stdout.buffer.write(b"\n" + msgspec.json.encode(result))
        return 0
    results = {name: Result() for name in SUBJECTS}
    for _ in range(scale.rounds):
        for name in SUBJECTS:
            results[name].add(run_in_process(name, quick=options.quick))
    rows, figures = show(results)
    header = ["CPU ns of the caller", "best", "x native", f"limit {_LIMIT:g}"]
    print_table("Stand-ins beside native calls", header, rows)
    if options.json:
        print(to_json("integrations", figures))
    return 1 if any(row[-1] == "FAIL" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
