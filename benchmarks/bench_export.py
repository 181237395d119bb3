"""What it takes to export a run for other tools: seconds, size, and the most memory held.

    python benchmarks/bench_export.py [--spans N ...] [--run DIR] [--json]

Each export runs in a process of its own, which only reads the run and writes the files. In the same
run: the floor, which is reading the same rows in batches and nothing else.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from reporting import peak_mb, print_table, time_once, to_json

from rollscope.exporting.areal import write_areal
from rollscope.exporting.chrome import write_chrome
from rollscope.exporting.jsonlines import write_lines
from rollscope.exporting.output import open_output
from rollscope.exporting.perfetto import write_perfetto
from rollscope.exporting.reading import PlacedRun
from rollscope.exporting.scratch import Scratch
from rollscope.exporting.tables import TABLES
from rollscope.exporting.tables_writing import write_table
from rollscope.otlp.export.rows import ExportRows
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run


def _traced(write: Callable[[PlacedRun, Any], None]) -> Callable[[RunStore, Path], None]:
    def export(store: RunStore, path: Path) -> None:
        with PlacedRun(store) as placed, open_output(path) as sink:
            write(placed, sink)

    return export


def _tables(store: RunStore, folder: Path) -> None:
    folder.mkdir()
    for name in TABLES:
        with Scratch(store) as scratch:
            path = folder / f"{name}{folder.suffix}"
            write_table(name, path, scratch, store, as_csv=folder.suffix == ".csv")


def _lines(store: RunStore, path: Path) -> None:
    with Scratch(store) as scratch, open_output(path) as sink:
        write_lines(scratch, "run", sink)


def _areal(store: RunStore, folder: Path) -> None:
    with Scratch(store) as scratch:
        write_areal(scratch, "run", folder)


_WAYS = {
    "chrome": ("run.json", _traced(write_chrome)),
    "chrome, packed": ("run.json.gz", _traced(write_chrome)),
    "perfetto": ("run.pftrace", _traced(write_perfetto)),
    "parquet": ("tables.parquet", _tables),
    "csv": ("tables.csv", _tables),
    "jsonl": ("run.jsonl", _lines),
    "areal": ("session_tracer", _areal),
}


def measure(run: Path, way: str) -> dict[str, Any]:
    """Export once, in this process."""
    with RunStore(run) as store, tempfile.TemporaryDirectory() as folder:
        if way == "reading":
            with ExportRows(store) as rows:
                cost = time_once(lambda: [len(batch) for batch in rows.ended(None)])
            return {"wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "mb": 0.0, "peak_mb": peak_mb()}
        name, export = _WAYS[way]
        cost = time_once(lambda: export(store, Path(folder, name)))
        size = sum(one.stat().st_size for one in Path(folder).rglob("*") if one.is_file()) / 1e6
    return {"wall_s": cost.wall_s, "cpu_s": cost.cpu_s, "mb": size, "peak_mb": peak_mb()}


def measure_apart(run: Path, way: str) -> dict[str, Any]:
    """Export once, in a process of its own."""
    asked = [sys.executable, __file__, "--run", str(run), "--way", way]
    out = subprocess.run(asked, capture_output=True, check=True).stdout
    figures: dict[str, Any] = msgspec.json.decode(out)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--run", type=Path, help="a run to export instead of generated ones")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.way:
        print(msgspec.json.encode(measure(args.run, args.way)).decode())
        return
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = {args.run.name: args.run} if args.run else {}
        for spans in () if args.run else args.spans:
            runs[f"{spans:,}"] = Path(folder, str(spans))
            generate_run(runs[f"{spans:,}"], RunShape.sized(spans))
        for title, run in runs.items():
            with RunStore(run) as store:  # so that none of them pays for the logs
                store.seal()
            figures[title] = {way: measure_apart(run, way) for way in ("reading", *_WAYS)}
    if args.json:
        print(to_json("export", figures))
        return
    rows = [
        (f"{title} {way}", *(f"{one[name]:.1f}" for name in ("wall_s", "cpu_s", "mb", "peak_mb")))
        for title, ways in figures.items()
        for way, one in ways.items()
    ]
    print_table("Exports", ("spans, format", "wall s", "CPU s", "MB", "peak MB"), rows)
    print(to_json("export", figures))


if __name__ == "__main__":
    main()
