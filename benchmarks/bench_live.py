"""How far behind readers are while a run is written, and what they need.

    python benchmarks/bench_live.py [--rate N] [--seconds N] [--json]

Programs record spans at a fixed rate in all; two readers look four times a second, as a page does.
The lag of a span is the time from its end to the first answer that contains it. The floor in the
same run is a reader that only decodes the frames.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from reporting import print_table, to_json

_RUN: Final = "live"
_READERS: Final = 2
_LOOK_EVERY_S: Final = 0.25
_RATE_PER_WRITER: Final = 10_000
"""Spans a second that one program records and still has time for something else."""
_TICK_S: Final = 0.01


def write(folder: Path, rate: int, seconds: float) -> dict[str, Any]:
    """Record spans at a rate, in small bursts."""
    import rollscope as rs

    rs.init(run=_RUN, dir=str(folder))
    began, recorded, late = time.perf_counter(), 0, 0
    with rs.task("live/1"), rs.session(sample=os.getpid()):
        while (now := time.perf_counter()) - began < seconds:
            due = int((now - began) * rate)
            with rs.phase("generate"):
                for number in range(recorded, due):
                    with rs.span("work", number=number, host="h1"):
                        pass
            late += due - recorded > 5 * rate * _TICK_S
            recorded = due
            time.sleep(_TICK_S)
    rs.shutdown()
    return {"recorded": recorded, "late_bursts": late, "cpu_s": time.process_time()}


def _memory_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def follow(folder: Path, seconds: float) -> dict[str, Any]:
    """Look at the run four times a second and note how old what is new has become."""
    from rollscope.store.embedded import RunStore

    lags: list[Any] = []
    memory: list[float] = []
    looks: list[float] = []
    store = RunStore(folder / _RUN, threads=1)
    began, cpu = time.perf_counter(), time.process_time()
    # Ends come out of order between programs, so what has been seen is remembered by program.
    seen: dict[int, int] = {}
    while time.perf_counter() - began < seconds:
        look = time.perf_counter()
        store.refresh()
        since = min(seen.values(), default=0)
        ends = store.query(
            "SELECT process, end_ns FROM spans WHERE end_ns > $since AND name = 'work'",
            since=since,
        )
        now = time.time_ns()
        processes, times = ends["process"].to_numpy(), ends["end_ns"].to_numpy()
        for process in np.unique(processes):
            own = times[processes == process]
            fresh = own[own > seen.get(int(process), 0)]
            if len(fresh):
                seen[int(process)] = int(fresh.max())
                lags.append(now - fresh)
        looks.append(time.perf_counter() - look)
        memory.append(_memory_mb())
        time.sleep(max(_LOOK_EVERY_S - looks[-1], 0))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    # What was there when the reader came had waited for the reader, not for the store.
    seconds_behind = np.concatenate(lags[len(seen) :] or [np.zeros(1)]) / 1e9
    store.refresh()
    counted = store.query("SELECT count(*) AS n FROM spans WHERE name = 'work'").to_pylist()
    store.close()
    return {
        "lag_p50_s": float(np.quantile(seconds_behind, 0.5)),
        "lag_p99_s": float(np.quantile(seconds_behind, 0.99)),
        "lag_max_s": float(seconds_behind.max()),
        "look_p50_s": float(np.quantile(looks, 0.5)),
        "look_max_s": max(looks),
        "cpu_share": cpu / wall,
        "memory_mb": memory[:: max(len(memory) // 10, 1)],
        "peak_mb": max(memory),
        "spans": counted[0]["n"],
        "problems": store.problems,
    }


def decode(folder: Path, seconds: float) -> dict[str, Any]:
    """Decode what is written, four times a second, and make nothing of it."""
    from rollscope.store.batches import BatchFollower

    followers: dict[Path, BatchFollower] = {}
    began, rows = time.perf_counter(), 0
    cpu = time.process_time()
    while time.perf_counter() - began < seconds:
        for log in (folder / _RUN / "log").glob("*.rsl"):
            follower = followers.setdefault(log, BatchFollower(log))
            rows += sum(len(batch.spans.what) for batch in follower.poll() if batch.spans)
        time.sleep(_LOOK_EVERY_S)
    cpu_share = (time.process_time() - cpu) / (time.perf_counter() - began)
    return {"rows": rows, "cpu_share": cpu_share}


def start(role: str, folder: Path, seconds: float, rate: int = 0) -> subprocess.Popen[bytes]:
    """Start one part in a process of its own."""
    command = [sys.executable, __file__, "--worker", role, "--folder", str(folder)]
    command += ["--seconds", str(seconds), "--rate", str(rate)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=env)


def result_of(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for a part and give what it found."""
    out, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{process.args!r} failed with {process.returncode}")
    found: dict[str, Any] = msgspec.json.decode(out)
    return found


def make_figures(rate: int, seconds: float) -> dict[str, Any]:
    """Let everything run side by side."""
    count = -(-rate // _RATE_PER_WRITER)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writers = [start("write", folder, seconds, rate // count) for _ in range(count)]
        while not any(folder.glob(f"{_RUN}/log/*.rsl")):
            time.sleep(0.05)
        readers = [start("follow", folder, seconds + 1) for _ in range(_READERS)]
        floor = start("decode", folder, seconds + 1)
        written = [result_of(writer) for writer in writers]
        found = [result_of(reader) for reader in readers]
        floor_found = result_of(floor)
    recorded = sum(one["recorded"] for one in written)
    return {
        "seconds": seconds,
        "spans": recorded,
        "spans_per_s": recorded / seconds,
        "late_bursts": sum(one["late_bursts"] for one in written),
        "complete": all(one["spans"] == recorded for one in found),
        "readers": found,
        "floor_cpu_share": floor_found["cpu_share"],
        "cpu_x_floor": max(one["cpu_share"] for one in found) / floor_found["cpu_share"],
    }


def print_figures(figures: dict[str, Any]) -> None:
    """Print the table."""
    rows = [
        [
            f"reader {number}",
            *(f"{one[name]:.2f}" for name in ("lag_p50_s", "lag_p99_s", "lag_max_s")),
            f"{one['look_p50_s'] * 1e3:.0f}",
            f"{one['cpu_share']:.0%}",
            f"{one['memory_mb'][0]:.0f}",
            f"{one['memory_mb'][-1]:.0f}",
            f"{one['peak_mb']:.0f}",
        ]
        for number, one in enumerate(figures["readers"], start=1)
    ]
    rows.append(["floor: decode only", *[""] * 4, f"{figures['floor_cpu_share']:.0%}", *[""] * 3])
    title = f"{figures['spans_per_s']:,.0f} spans a second for {figures['seconds']:g} s"
    header = ["", "lag p50 s", "p99", "max", "look ms", "CPU", "MB first", "last", "peak"]
    print_table(title, header, rows)
    whole = "every span was seen" if figures["complete"] else "SPANS ARE MISSING"
    print(f"{whole}; {figures['late_bursts']} bursts were late")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure how far behind readers are.")
    parser.add_argument("--rate", type=int, default=20_000, help="spans a second in all")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    parser.add_argument("--worker", choices=("write", "follow", "decode"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        if options.worker == "write":
            found = write(options.folder, options.rate, options.seconds)
        else:
            part = {"follow": follow, "decode": decode}[options.worker]
            found = part(options.folder, options.seconds)
        print(msgspec.json.encode(found).decode())
        return
    figures = make_figures(options.rate, options.seconds)
    print_figures(figures)
    if options.json:
        print(to_json("live", figures))


if __name__ == "__main__":
    main()
