"""How fast the timeline of a run is built, cut into tiles, and sent.

    python benchmarks/bench_timeline.py [--spans N] [--run DIR] [--windows K] [--json]

The floor in the same run is reading the columns that the timeline is made of, and nothing else.
"""

from __future__ import annotations

import argparse
import random
import statistics
from pathlib import Path
from typing import Any, Final

from bench_store import find_or_make_run
from reporting import peak_mb, print_table, time_once, to_json

from rollscope.store.embedded import RunStore
from rollscope.timeline import TileQuery, TimelineIndex, decode_frame
from rollscope.timeline.reading import SpanReader

_SHARES: Final = (1.0, 0.5, 0.1, 0.01, 0.0001)
_MOST_IN_A_FRAME: Final = 2_000_000


def random_window(index: TimelineIndex, share: float, source: random.Random) -> TileQuery:
    """Give a window of 64 lanes and 1,500 pixels somewhere in the run."""
    length = index.last_ns - index.t0_ns
    t0_ns = index.t0_ns + int(source.random() * (1 - share) * length)
    return TileQuery(
        t0_ns=t0_ns,
        t1_ns=t0_ns + max(int(length * share), 1),
        width=1500,
        first=source.randrange(max(len(index.lanes) - 64, 1)),
    )


def measure_tiles(index: TimelineIndex, share: float, windows: int) -> dict[str, Any]:
    """Cut tiles at random places; give milliseconds and the largest frame."""
    source = random.Random(1)
    sizes: list[int] = []
    walls, cpus = [], []
    for _ in range(windows):
        query = random_window(index, share, source)
        cost = time_once(lambda query=query: sizes.append(len(index.tile(query))))
        walls.append(cost.wall_s * 1e3)
        cpus.append(cost.cpu_s * 1e3)
    return {
        "p50_ms": statistics.median(walls),
        "p95_ms": sorted(walls)[int(0.95 * (len(walls) - 1))],
        "cpu_p50_ms": statistics.median(cpus),
        "max_kb": max(sizes) / 1e3,
    }


def measure_frames(index: TimelineIndex) -> dict[str, Any]:
    """Write and read whole frames; megabytes and seconds."""
    found: dict[str, Any] = {}
    for mode in ("raw", "packed"):
        frames: list[bytes] = []

        def write(mode: str = mode, into: list[bytes] = frames) -> None:
            into.append(index.frame(mode))

        found[f"{mode}_encode_s"] = time_once(write).wall_s
        found[f"{mode}_mb"] = len(frames[0]) / 1e6
        found[f"{mode}_decode_s"] = time_once(lambda data=frames[0]: decode_frame(data)).wall_s
    return found


def measure(run: Path, by: str, windows: int) -> dict[str, Any]:
    """Measure one run."""
    with RunStore(run) as store:
        reader = SpanReader(store)
        floor = time_once(lambda: [None for _ in reader.sealed()])
        built: list[TimelineIndex] = []
        build = time_once(lambda: built.append(TimelineIndex(store, by)))
        (index,) = built
        found: dict[str, Any] = {
            "spans": index.total_spans,
            "lanes": len(index.lanes),
            "read_floor_s": floor.wall_s,
            "build_s": build.wall_s,
            "build_cpu_s": build.cpu_s,
            "index_mb": index.nbytes / 1e6,
            "peak_mb": peak_mb(),
            "tiles": {str(share): measure_tiles(index, share, windows) for share in _SHARES},
            "overview_ms": time_once(lambda: index.overview(1500)).wall_s * 1e3,
            "extend_ms": time_once(index.extend).wall_s * 1e3,
        }
        if index.total_spans <= _MOST_IN_A_FRAME:
            found |= measure_frames(index)
    return found


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    plain = {key: value for key, value in found.items() if key != "tiles"}
    rows = [[key, f"{value:,.2f}"] for key, value in plain.items()]
    for share, tile in found["tiles"].items():
        rows += [
            [f"tile of {share} of the run, {key}", f"{value:,.2f}"] for key, value in tile.items()
        ]
    print_table(f"timeline of {found['spans']:,} spans", ["what", "figure"], rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--by", default="host")
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with find_or_make_run(options.run, options.spans) as run:
        found = measure(run, options.by, options.windows)
    if options.json:
        print(to_json("timeline", found))
    else:
        show(found)


if __name__ == "__main__":
    main()
