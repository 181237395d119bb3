"""What recording costs its caller with each sink: CPU of the calling thread, in alternation.

A process has its own luck with addresses and caches, worth some five per cent of a span. So each
has three tracers, two that write files and one with the sink in question, and each records for a
while in turn. The two with files show how far figures of equals lie apart.
"""

from __future__ import annotations

import gc
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from overhead.measure import empty_loop

from ingesting.receivers import clean_environment, cores, rollscope

if TYPE_CHECKING:
    import rollscope as rs

__all__ = ["measure_callers", "work"]

_SUBJECTS: Final = ("http", "ray")
_TRACERS: Final = ("file", "again", "sink")
_TURNS: Final = 15
_PIECES: Final = 20
_PIECE: Final = 500
_PAUSE_S: Final = 0.01
"""After each piece: some 45,000 spans a second, so that the sink has to send meanwhile."""
_PATIENCE_S: Final = 10.0
_TIMEOUT_S: Final = 120


def work(subject: str) -> None:
    """Record with files and with one sink in turn, and print what it cost."""
    import rollscope as rs

    if subject == "ray":
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
    sinks = {"file": "file", "again": "file", "sink": os.environ["ROLLSCOPE_SINK"]}
    tracers = {name: rs.Tracer(run=name, sink=sinks[name]) for name in _TRACERS}
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in _TRACERS}
    for turn in range(_TURNS + 1):
        shift = turn % len(_TRACERS)
        for name in _TRACERS[shift:] + _TRACERS[:shift]:
            gc.collect()
            costs[name].append(_record(tracers[name]))
    for tracer in tracers.values():
        tracer.shutdown()
    # The first turn warms up: imports, caches, the first frame of a log.
    print(msgspec.json.encode({name: cost[1:] for name, cost in costs.items()}).decode())


def _record(tracer: rs.Tracer) -> tuple[float, float]:
    """Record for a while; give the CPU of this thread and of the process for a span, in ns."""
    spans = _PIECES * _PIECE
    bare_ns = empty_loop(spans)
    caller_ns = 0
    began_ns = time.process_time_ns()
    with tracer.span("weights.sync"):
        for _ in range(_PIECES):
            caller_ns += _record_piece(tracer)
            time.sleep(_PAUSE_S)
    if not tracer.flush():
        raise RuntimeError("the sink did not take everything in time")
    _wait_for_delivery(tracer)
    total_ns = time.process_time_ns() - began_ns
    return (caller_ns - bare_ns) / spans, (total_ns - bare_ns) / spans


def _record_piece(tracer: rs.Tracer) -> int:
    began_ns = time.thread_time_ns()
    for i in range(_PIECE):
        with tracer.span("weights.pack", category="comm", bytes=i, host="h1"):
            pass
    return time.thread_time_ns() - began_ns


def _wait_for_delivery(tracer: rs.Tracer) -> None:
    """Wait until the other side has all, so that it is not sent in the time of the next."""
    sent: Any = getattr(tracer._sink, "_now", None)
    ends_at = time.monotonic() + _PATIENCE_S
    while sent is not None and sent.spool.waiting_bytes > 0:
        if time.monotonic() > ends_at:
            raise RuntimeError("the other side did not take everything in time")
        time.sleep(_PAUSE_S)


def measure_callers(script: Path) -> dict[str, float]:
    """Record with each sink, each in a process of its own."""
    figures: dict[str, float] = {}
    for subject in _SUBJECTS:
        costs = _run(script, subject)
        for name, key in {"file": f"file_beside_{subject}", "sink": subject}.items():
            callers, totals = zip(*costs[name], strict=True)
            figures[f"{key}_caller_ns"] = statistics.median(callers)
            figures[f"{key}_total_ns"] = statistics.median(totals)
        turns = [[cost[0] for cost in turn] for turn in zip(*costs.values(), strict=True)]
        figures[f"{subject}_x_file"] = statistics.median(
            2 * sink / (file + again) for file, again, sink in turns
        )
        figures[f"file_x_file_beside_{subject}"] = statistics.median(
            again / file for file, again, _ in turns
        )
    return figures


def _run(script: Path, subject: str) -> dict[str, list[tuple[float, float]]]:
    with tempfile.TemporaryDirectory() as name:
        if subject == "ray":
            return _run_at(script, Path(name), subject, "ray")
        with rollscope(Path(name, "received")) as server:
            return _run_at(script, Path(name), subject, f"http://127.0.0.1:{server.port}")


def _run_at(
    script: Path, folder: Path, subject: str, sink: str
) -> dict[str, list[tuple[float, float]]]:
    env = clean_environment(
        ROLLSCOPE_SINK=sink,
        ROLLSCOPE_DIR=str(folder / "runs"),
        ROLLSCOPE_SPOOL_DIR=str(folder / "spools"),
    )
    command = [sys.executable, str(script), "--worker", "caller", "--subject", subject]
    done = subprocess.run(command, env=env, capture_output=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{subject}: {done.stderr.decode(errors='replace')[-2000:]}")
    said = done.stdout.strip().rpartition(b"\n")[2]
    return msgspec.json.decode(said, type=dict[str, list[tuple[float, float]]])
