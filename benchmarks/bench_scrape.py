"""What a scrape of a run costs: the first look, those after it, and a floor without anything kept.

    python benchmarks/bench_scrape.py [--spans N] [--run DIR] [--repeats K] [--json]

The floor in the same run is one query of DuckDB for one family, the lengths of phases by family and
name, which is what every scrape would have to ask at least if no sums were kept. Figures are CPU
time of one core; `longest piece` is how long a page may have to wait for the first look.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path
from typing import Any, Final

from bench_store import find_or_make_run
from reporting import peak_mb, pin_to_one_core, print_table, time_best, time_once, to_json

from rollscope.exposing.catalogue import TIME_BOUNDS
from rollscope.exposing.runs import RunExposition
from rollscope.metrics.exposition import TextFormat, write_text
from rollscope.store.embedded import RunStore

_MS: Final = 1_000


def floor_sql() -> str:
    """Give the query for the lengths of phases in buckets."""
    bounds = " ".join(
        f"WHEN duration_ns <= {round(bound * 1e9)} THEN {place}"
        for place, bound in enumerate(TIME_BOUNDS)
    )
    return f"""
        SELECT family, name, CASE {bounds} ELSE {len(TIME_BOUNDS)} END AS bucket,
            count(*) AS count, sum(duration_ns) AS total
        FROM spans WHERE kind = 'phase' AND end_ns IS NOT NULL AND status <> 'lost'
        GROUP BY ALL"""  # noqa: S608  (our own pieces)


def read_in_pieces(exposition: RunExposition, store: RunStore) -> float:
    """Read a run for the first time; give the longest that one piece took."""
    longest_s, has_more = 0.0, True

    def piece() -> None:
        nonlocal has_more
        has_more = exposition.catch_up(store)

    while has_more:
        longest_s = max(longest_s, time_once(piece).cpu_s)
    return longest_s


def measure(run: Path, repeats: int) -> dict[str, Any]:
    """Measure the scrapes of one run."""
    with RunStore(run, threads=1) as store:
        store.seal()
        spans = store.query("SELECT count(*) AS n FROM spans")["n"][0].as_py()
        exposition, longest = RunExposition("run"), 0.0

        def first() -> None:
            nonlocal longest
            longest = read_in_pieces(exposition, store)

        reading = time_once(first).cpu_s
        last_step = time_once(lambda: exposition.look(store)).cpu_s
        look = time_best(lambda: exposition.look(store), repeats).cpu_s
        exposed = exposition.look(store)
        text = write_text(exposed, TextFormat.OPENMETRICS)
        writing = time_best(lambda: write_text(exposed, TextFormat.OPENMETRICS), repeats).cpu_s
        packed = gzip.compress(text, 1, mtime=0)
        packing = time_best(lambda: gzip.compress(text, 1, mtime=0), repeats).cpu_s
        floor = time_best(lambda: store.query(floor_sql()), repeats).cpu_s
    return {
        "spans": spans,
        "first_look_ms": (reading + last_step) * _MS,
        "longest_piece_ms": longest * _MS,
        "last_step_ms": last_step * _MS,
        "look_ms": look * _MS,
        "write_ms": writing * _MS,
        "pack_ms": packing * _MS,
        "scrape_ms": (look + writing + packing) * _MS,
        "floor_ms": floor * _MS,
        "ratio": (look + writing + packing) / floor,
        "series": sum(len(one.points) for one in exposed),
        "bytes": len(text),
        "packed_bytes": len(packed),
        "peak_mb": peak_mb(),
    }


def main() -> None:
    """Print one table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print the JSON line only")
    args = parser.parse_args()
    pin_to_one_core()
    with find_or_make_run(args.run, args.spans) as run:
        found = measure(run, args.repeats)
    if not args.json:
        titles = {
            "first_look_ms": "first look, all of it",
            "longest_piece_ms": "longest piece of it",
            "last_step_ms": "last step worked out",
            "look_ms": "a look after that",
            "write_ms": "text",
            "pack_ms": "gzip of it",
            "scrape_ms": "a scrape: look, text, gzip",
            "floor_ms": "one family, nothing kept",
        }
        rows = [[title, f"{found[key]:.1f}"] for key, title in titles.items()]
        rows.append(["a scrape over that", f"{found['ratio']:.2f}x"])
        rows.append(["bytes of text; gzipped", f"{found['bytes']:,}; {found['packed_bytes']:,}"])
        print_table(f"scrapes of {found['spans']:,} spans", ["", "CPU ms"], rows)
    print(to_json("scrape", found))


if __name__ == "__main__":
    main()
