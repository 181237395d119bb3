"""How fast logs become segments, on one core, and how small they are.

    python benchmarks/bench_store.py [--spans N] [--run DIR] [--repeats K] [--json]

In the same run: the floor, which is decoding every frame and nothing else, and the peer, which is
writing the same spans as JSON lines, as `rollscope cat` prints them. Everything runs on one core,
threads of libraries included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from reporting import Cost, peak_mb, pin_to_one_core, print_table, time_best, to_json

from rollscope.store.batches import BatchFollower
from rollscope.store.embedded import RunStore
from rollscope.store.run import RunFollower
from rollscope.testing import RunShape, generate_run

_SEGMENTS: Final = "segments"
_SUBJECTS: Final = ("seal", "decode", "json")


@contextmanager
def find_or_make_run(given: Path | None, spans: int) -> Iterator[Path]:
    """Give the run to measure: the one given, made if it is not there, or one for the moment."""
    if given is not None:
        if not given.exists():
            generate_run(given, RunShape.sized(spans))
        yield given
        return
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        generate_run(run, RunShape.sized(spans))
        yield run


def logs_of(run: Path) -> list[Path]:
    """Give the logs of a run."""
    return sorted((run / "log").glob("*.rsl"))


def bytes_in(folder: Path, pattern: str) -> int:
    """Add up the sizes of files."""
    return sum(path.stat().st_size for path in folder.glob(pattern))


def seal(run: Path) -> int:
    """Turn all logs into segments, from nothing; give the number of spans."""
    shutil.rmtree(run / _SEGMENTS, ignore_errors=True)
    with RunStore(run, threads=1) as store:
        if not store.seal():
            raise RuntimeError(f"the run could not be sealed: {store.problems}")
        segments = store.sealer.manifest.segments
        return sum(segment.rows for segment in segments if segment.table == "spans")


def decode(run: Path) -> int:
    """Decode every frame and make nothing of it; give the number of rows."""
    return sum(
        len(batch.spans.what)
        for log in logs_of(run)
        for batch in BatchFollower(log).poll()
        if batch.spans is not None
    )


def write_json(run: Path) -> int:
    """Write every record as a line of JSON; give the number of lines."""
    encoder = msgspec.json.Encoder()
    lines = 0
    with tempfile.TemporaryFile() as out:
        for record in RunFollower(run).poll(final=True):
            out.write(encoder.encode(record))
            out.write(b"\n")
            lines += 1
    return lines


def measure(subject: str, run: Path, repeats: int) -> dict[str, Any]:
    """Measure one subject; this process does nothing else."""
    pin_to_one_core()
    action = {"seal": seal, "decode": decode, "json": write_json}[subject]
    counts: list[int] = []
    cost: Cost = time_best(lambda: counts.append(action(run)), repeats)
    return {"count": counts[-1], "peak_mb": peak_mb(), **msgspec.structs.asdict(cost)}


def measure_apart(subject: str, run: Path, repeats: int) -> dict[str, Any]:
    """Measure one subject in a process of its own, so that its memory is its own too."""
    command = [sys.executable, __file__, "--worker", subject, "--run", str(run)]
    command += ["--repeats", str(repeats)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=_environment())
    found: dict[str, Any] = msgspec.json.decode(done.stdout)
    return found


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")}


def make_figures(run: Path, repeats: int) -> dict[str, Any]:
    """Measure everything."""
    found = {subject: measure_apart(subject, run, repeats) for subject in _SUBJECTS}
    spans = found["seal"]["count"]
    for result in found.values():
        result["spans_per_cpu_s"] = spans / result["cpu_s"]
        result["spans_per_s"] = spans / result["wall_s"]
    return {
        "spans": spans,
        "segment_bytes_per_span": bytes_in(run, f"{_SEGMENTS}/*.parquet") / spans,
        "log_bytes_per_span": bytes_in(run, "log/*.rsl") / spans,
        "seal_x_decode": found["seal"]["cpu_s"] / found["decode"]["cpu_s"],
        "json_x_seal": found["json"]["cpu_s"] / found["seal"]["cpu_s"],
        **found,
    }


def print_figures(figures: dict[str, Any]) -> None:
    """Print the table."""
    titles = {
        "seal": "logs to segments",
        "decode": "floor: decode the frames",
        "json": "peer: write JSON lines",
    }
    base = figures["seal"]["cpu_s"]
    rows = [
        [
            title,
            f"{figures[name]['spans_per_cpu_s']:,.0f}",
            f"{figures[name]['spans_per_s']:,.0f}",
            f"{figures[name]['cpu_s'] / base:.2f}",
            f"{figures[name]['peak_mb']:.0f}",
        ]
        for name, title in titles.items()
    ]
    header = ["", "spans per CPU s", "spans per s", "x sealing", "peak MB"]
    print_table(f"{figures['spans']:,} spans, one core, best of all repetitions", header, rows)
    print(
        f"bytes per span: {figures['segment_bytes_per_span']:.1f} in segments, "
        f"{figures['log_bytes_per_span']:.1f} in logs"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how logs become segments.")
    parser.add_argument("--spans", type=int, default=1_000_000, help="of the run that is made")
    parser.add_argument("--run", type=Path, help="a run to use; made there if it is not there")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    parser.add_argument("--worker", choices=_SUBJECTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        found = measure(options.worker, options.run, options.repeats)
        print(msgspec.json.encode(found).decode())
        return
    with find_or_make_run(options.run, options.spans) as run:
        figures = make_figures(run, options.repeats)
    print_figures(figures)
    if options.json:
        print(to_json("store", figures))


if __name__ == "__main__":
    main()
