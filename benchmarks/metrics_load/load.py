"""What becomes of many calls: programs that call at a given rate, and what their run holds then."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from rollscope.store.fold import read_run

__all__ = ["LOADS", "Load", "LoadResult", "measure_load"]

_TIMEOUT_S: Final = 120
_PROGRAM: Final = """
import json, resource, sys, time
import rollscope as rs

folder, rate, seconds, distinct = sys.argv[1], *map(float, sys.argv[2:])
distinct = int(distinct)
texts = [f"id-{n}" for n in range(distinct)]
rs.init(run="load", dir=folder)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began, made, longest = time.perf_counter(), 0, 0.0
slot, due = 0.005, time.perf_counter()
size = int(rate * slot)
while time.perf_counter() - began < seconds:
    for n in range(made, made + size):
        rs.count("load", id=texts[n % distinct], kind="train")
    made += size
    at = time.perf_counter()
    rs.count("probe", id="probe", kind="train")
    now = time.perf_counter()
    longest = max(longest, now - at)
    due = max(due + slot, now)  # what a busy machine has kept it from is not made up for
    time.sleep(due - now)
wall = time.perf_counter() - began
rs.shutdown(30)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"made": made, "wall_s": wall, "grown_mb": grown / 1024,
    "cpu_s": time.process_time(), "longest_ms": longest * 1e3}))
"""


class Load(msgspec.Struct, frozen=True):
    """A number of programs that call at a rate."""

    name: str
    processes: int
    rate: int
    """Calls a second of each process, or as many as it gets to make."""
    distinct: int
    """Sets of labels."""


class LoadResult(msgspec.Struct):
    """What was called, and what the run holds."""

    name: str
    calls: int
    rate: float
    """Calls a second that a process really made."""
    counted: int
    """What the counters of the run add up to."""
    dropped: dict[str, int]
    records_per_s: float
    """Records of metrics that a process wrote a second."""
    bytes_per_s: float
    grown_mb: float
    """The most memory that a process took beyond what it had."""
    longest_ms: float
    """The longest of some hundred single calls, waiting for the processor included."""


LOADS: Final = (
    Load("8 processes x 50k calls/s, 100 series", 8, 50_000, 100),
    Load("1 process x 1M calls/s, 100 series", 1, 1_000_000, 100),
    Load("1 process x 1M calls/s, 1M label sets", 1, 1_000_000, 1_000_000),
)


def measure_load(load: Load, seconds: float) -> LoadResult:
    """Run the programs of a load to their end, and read what they recorded."""
    with tempfile.TemporaryDirectory() as folder:
        told = [_program(folder, load, seconds) for _ in range(load.processes)]
        figures = [_figures(process) for process in told]
        run = Path(folder) / "load"
        size = sum(file.stat().st_size for file in run.rglob("*.rsl"))
        folded = read_run(run)
    metrics = [metric for metric in folded.metrics if metric.name == "load"]
    dropped: dict[str, int] = {}
    for drops in folded.drops.values():
        for what, count in drops.items():
            dropped[what] = dropped.get(what, 0) + count
    wall_s = sum(each["wall_s"] for each in figures)
    calls = int(sum(each["made"] for each in figures))
    return LoadResult(
        name=load.name,
        calls=calls,
        rate=calls / wall_s,
        counted=int(sum(metric.value for metric in metrics)),
        dropped=dropped,
        records_per_s=len(folded.metrics) / wall_s,
        bytes_per_s=size / wall_s,
        grown_mb=max(each["grown_mb"] for each in figures),
        longest_ms=max(each["longest_ms"] for each in figures),
    )


def _program(folder: str, load: Load, seconds: float) -> subprocess.Popen[bytes]:
    words = [folder, str(load.rate), str(seconds), str(load.distinct)]
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def _figures(process: subprocess.Popen[bytes]) -> dict[str, float]:
    out, _ = process.communicate(timeout=_TIMEOUT_S)
    if process.returncode != 0:
        raise RuntimeError(f"a program of the load ended with {process.returncode}")
    return msgspec.json.decode(out, type=dict[str, float])
