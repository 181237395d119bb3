"""What the shared store takes: bytes per span, rows per second, and the time of a percentile.

A generated run is sealed, fed to the ClickHouse engine inside this process, and asked the same
question as the embedded store. The embedded store is the rival in the same run: the size of its
segments, and the time of its answer.
"""

import argparse
import gzip
import json
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from rollscope.answers.source import Source
from rollscope.store.clickhouse.feed import feed
from rollscope.store.clickhouse.store import ClickHouseStore
from rollscope.store.clickhouse.tables import create_tables
from rollscope.store.clickhouse.transport import ChdbTransport
from rollscope.store.embedded import RunStore
from rollscope.store.segments import read_segment
from rollscope.testing import RunShape, generate_run

_REPEATS = 5
_RUN = "bench"


def _percentiles(source: Source) -> str:
    ranks = ", ".join(f"{source.dialect.rank('duration_ns', p)} AS p{p}" for p in (50, 95, 99))
    counted = f"count(*) AS n, {ranks}"
    return f"SELECT name, {counted} FROM phases GROUP BY name ORDER BY name"  # noqa: S608  (ours)


def _ask_s(source: Source) -> float:
    def once() -> float:
        start = time.perf_counter()
        source.query(_percentiles(source))
        return time.perf_counter() - start

    return statistics.median(once() for _ in range(_REPEATS))


def _columns(engine: ChdbTransport) -> list[tuple[str, float]]:
    """Give the bytes per row of each column of spans, the largest first."""
    found = engine.query(
        "SELECT name, data_compressed_bytes AS size FROM system.columns "
        "WHERE database = $database AND table = 'spans' ORDER BY size DESC",
        {"database": engine.database},
    )
    return [(row["name"], row["size"]) for row in found.to_pylist()]


def _wire_bytes(rows: pa.Table) -> float:
    """Give what a row takes on its way over HTTP."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return len(gzip.compress(sink.getvalue(), 1)) / int(rows.num_rows)


def measure(folder: Path, spans: int) -> dict[str, float]:
    """Generate, seal, feed and ask; give the figures."""
    generate_run(folder / "run", RunShape.sized(spans))
    with (
        RunStore(folder / "run") as store,
        ChdbTransport(str(folder / "clickhouse")) as engine,
    ):
        store.seal()
        create_tables(engine)
        start = time.perf_counter()
        fed = feed(store, engine, _RUN)
        fed_s = time.perf_counter() - start
        fresh_s = _ask_s(ClickHouseStore(engine, _RUN))
        engine.command(f"OPTIMIZE TABLE {engine.database}.spans FINAL")
        shared = ClickHouseStore(engine, _RUN)
        asked, rival = shared.query(_percentiles(shared)), store.query(_percentiles(store))
        assert asked.to_pylist() == rival.to_pylist()
        parts = engine.query(
            "SELECT sum(rows) AS rows, sum(bytes_on_disk) AS bytes, "
            "sum(data_uncompressed_bytes) AS plain, sum(primary_key_bytes_in_memory) AS memory "
            "FROM system.parts WHERE active AND database = $database AND table = 'spans'",
            {"database": engine.database},
        ).to_pylist()[0]
        segments = [s for s in store.sealer.manifest.segments if s.table == "spans"]
        for name, size in _columns(engine)[:8]:
            print(f"  {name:<14} {size / parts['rows']:6.2f} B")
        return {
            "spans": parts["rows"],
            "clickhouse_bytes_per_span": parts["bytes"] / parts["rows"],
            "plain_bytes_per_span": parts["plain"] / parts["rows"],
            "segment_bytes_per_span": sum(s.size for s in segments) / sum(s.rows for s in segments),
            "key_bytes_per_1000_spans": 1000 * parts["memory"] / parts["rows"],
            "wire_bytes_per_span": _wire_bytes(read_segment(folder / "run/segments", segments[0])),
            "rows_per_s": fed.rows / fed_s,
            "percentile_fresh_s": fresh_s,
            "percentile_s": _ask_s(shared),
            "embedded_percentile_s": _ask_s(store),
        }


def main() -> None:
    """Print one table, and one JSON line when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.spans)
    for name, figure in figures.items():
        print(f"{name:<26} {figure:14,.3f}")
    if arguments.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
