"""What the benchmarks of the store share: timing, and the table with its line of JSON."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import time
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "Cost",
    "peak_mb",
    "pin_to_one_core",
    "print_table",
    "time_best",
    "time_once",
    "time_query",
    "to_json",
]


class Cost(msgspec.Struct):
    """What something took, at best."""

    wall_s: float
    cpu_s: float


def pin_to_one_core() -> None:
    """Keep this process, and the threads of its libraries, on one core."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})


def peak_mb() -> float:
    """Give the most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def time_once(action: Callable[[], object]) -> Cost:
    """Time something, wall clock and CPU of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def time_best(action: Callable[[], object], repeats: int) -> Cost:
    """Time something a few times; each figure is its best."""
    costs = [time_once(action) for _ in range(repeats)]
    return Cost(min(cost.wall_s for cost in costs), min(cost.cpu_s for cost in costs))


def time_query(action: Callable[[], object], repeats: int) -> dict[str, float]:
    """Time a question in milliseconds: the first time, and then its median and best."""
    first = time_once(action).wall_s
    later = [time_once(action).wall_s for _ in range(repeats)]
    return {
        "first_ms": first * 1e3,
        "median_ms": statistics.median(later) * 1e3,
        "best_ms": min(later) * 1e3,
    }


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a title with the machine, and columns of which all but the first stand right."""
    load = os.getloadavg()[0]
    print(f"{title}; Python {platform.python_version()}, load {load:.1f}\n")
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        first, *others = row
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    print()


def to_json(benchmark: str, figures: Mapping[str, Any]) -> str:
    """Give all figures as one line."""
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    everything = {"benchmark": benchmark, **machine, "load": os.getloadavg()[0], **figures}
    return msgspec.json.encode(everything).decode()
