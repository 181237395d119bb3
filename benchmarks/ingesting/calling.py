"""What recording costs its caller with each sink: CPU of the calling thread, in alternation."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import thread_time_ns
from typing import Any, Final

import msgspec
from overhead.measure import FULL, Scale, measure

from ingesting.receivers import clean_environment, cores, rollscope

__all__ = ["measure_callers", "work"]

_SUBJECTS: Final = {"file": "file", "http": "http", "file_beside_ray": "file", "ray": "ray"}
"""Where each records to. A process that runs Ray too is another one to start with."""
_FLOORS: Final = {"http": "file", "ray": "file_beside_ray"}
_SCALE: Final = msgspec.structs.replace(FULL, repetitions=20)
_TIMEOUT_S: Final = 120


def work(subject: str) -> None:
    """Record bursts with one sink, and print what they cost."""
    import rollscope as rs

    if "ray" in subject:
        import ray

        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100_000_000,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    # After Ray, whose own processes may have the other core as well.
    os.sched_setaffinity(0, {cores()[1]})
    rs.init()

    def burst(count: int) -> int:
        with rs.span("weights.sync"):
            began = thread_time_ns()
            for i in range(count):
                with rs.span("weights.pack", category="comm", bytes=i, host="h1"):
                    pass
            return thread_time_ns() - began

    def flush() -> None:
        if not rs.flush():
            raise RuntimeError("the sink did not take everything in time")

    scale: Scale = _SCALE
    result = measure(scale, burst, flush)
    rs.shutdown()
    figures = {"caller_ns": min(result.caller_ns), "total_ns": min(result.total_ns)}
    print(msgspec.json.encode(figures).decode())


def measure_callers(script: Path) -> dict[str, float]:
    """Record with each sink, each in a process of its own."""
    figures: dict[str, float] = {}
    for subject in _SUBJECTS:
        found = _run(script, subject)
        figures |= {f"{subject}_{name}": value for name, value in found.items()}
    for subject, floor in _FLOORS.items():
        ratio = figures[f"{subject}_caller_ns"] / figures[f"{floor}_caller_ns"]
        figures[f"{subject}_x_file"] = ratio
    return figures


def _run(script: Path, subject: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        sink = _SUBJECTS[subject]
        if sink != "http":
            return _run_at(script, Path(name), subject, sink)
        with rollscope(Path(name, "runs")) as server:
            return _run_at(script, Path(name), subject, f"http://127.0.0.1:{server.port}")


def _run_at(script: Path, folder: Path, subject: str, sink: str) -> dict[str, float]:
    env = clean_environment(
        ROLLSCOPE_SINK=sink,
        ROLLSCOPE_RUN="bench",
        ROLLSCOPE_DIR=str(folder / "runs"),
        ROLLSCOPE_SPOOL_DIR=str(folder / "spools"),
    )
    command = [sys.executable, str(script), "--worker", "caller", "--subject", subject]
    done = subprocess.run(command, env=env, capture_output=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{subject}: {done.stderr.decode(errors='replace')[-2000:]}")
    found: Any = msgspec.json.decode(done.stdout.strip().rpartition(b"\n")[2])
    return {str(key): float(value) for key, value in found.items()}
