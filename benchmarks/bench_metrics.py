"""What metrics cost: one call beside prometheus_client's, and what becomes of many.

    python benchmarks/bench_metrics.py [--quick] [--json]

*caller* is the CPU time of the calling thread; *total* that of the process, until all is written.
Ours and the other are measured burst by burst in turn, and the best of each is taken. The loads run
in processes of their own; what is lost is what was called and is neither counted nor said to be
dropped.
"""

from __future__ import annotations

import argparse
import os
import sys

import msgspec
from metrics_load.calls import CallCost, measure_calls
from metrics_load.load import LOADS, LoadResult, measure_load


class Report(msgspec.Struct):
    """Everything that was measured."""

    calls: list[CallCost]
    loads: list[LoadResult]


def main() -> int:
    """Measure and print; 1 if calls were lost unaccounted for."""
    parser = argparse.ArgumentParser(description="Measure what metrics cost.")
    parser.add_argument("--quick", action="store_true", help="a quarter of a minute instead of one")
    parser.add_argument("--json", action="store_true", help="end with everything as a line of JSON")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("ROLLSCOPE")]:
        del os.environ[name]  # settings of whoever runs it must not change what is measured
    calls = measure_calls(30 if options.quick else 150)
    loads = [measure_load(load, 2.0 if options.quick else 10.0) for load in LOADS]
    print_calls(calls)
    print_loads(loads)
    if options.json:
        print(msgspec.json.encode(Report(calls, loads)).decode())
    return 0 if all(unaccounted(load) == 0 for load in loads) else 1


def print_calls(costs: list[CallCost]) -> None:
    """Print what one call costs."""
    print(f"{'one call':<32}{'caller ns':>10}{'total ns':>10}{'prometheus ns':>15}{'ratio':>8}")
    for cost in costs:
        rival = f"{cost.rival_ns:.0f}" if cost.rival_ns else ""
        ratio = f"{cost.ratio:.2f}" if cost.ratio else ""
        figures = f"{cost.caller_ns:>10.0f}{cost.total_ns:>10.0f}{rival:>15}{ratio:>8}"
        print(f"{cost.name:<32}{figures}")


def print_loads(loads: list[LoadResult]) -> None:
    """Print what became of many calls."""
    titles = ("calls", "calls/s each", "lost", "records/s", "kB/s", "MB grown", "longest ms")
    print(f"\n{'load':<42}" + "".join(f"{title:>14}" for title in titles))
    for load in loads:
        figures = (
            f"{load.calls}",
            f"{load.rate:.0f}",
            f"{unaccounted(load) + load.dropped.get('metric.overload', 0)}",
            f"{load.records_per_s:.1f}",
            f"{load.bytes_per_s / 1000:.1f}",
            f"{load.grown_mb:.0f}",
            f"{load.longest_ms:.2f}",
        )
        print(f"{load.name:<42}" + "".join(f"{figure:>14}" for figure in figures))
        if load.dropped:
            print("    " + ", ".join(f"{what}: {count}" for what, count in load.dropped.items()))


def unaccounted(load: LoadResult) -> int:
    """Give how many calls are neither in the counters nor counted as dropped."""
    # Those beyond the bound on series are in the counters, under `series=other`.
    return load.calls - load.counted - load.dropped.get("metric.overload", 0)


if __name__ == "__main__":
    sys.exit(main())
