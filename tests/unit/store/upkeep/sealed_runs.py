"""What the tests of upkeep look at: a run's sealer, its rows, and the files of its segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollscope.store.embedded import RunStore
from rollscope.store.schema import TABLES
from rollscope.store.sealer import Sealer, find_shelf
from rollscope.store.segments import read_segment
from tests.builders import SECOND

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3600 * SECOND


def open_sealer(run: Path) -> Sealer:
    return Sealer(run, find_shelf(run))


def rows_of(run: Path) -> dict[str, list[str]]:
    """Give every sealed row, in an order of its own."""
    sealer = open_sealer(run)
    assert sealer.shelf is not None
    rows: dict[str, list[str]] = {name: [] for name in TABLES}
    for segment in sealer.manifest.segments:
        table = read_segment(sealer.shelf.folder, segment)
        rows[segment.table] += map(repr, table.to_pylist())
    return {name: sorted(found) for name, found in rows.items()}


def span_ids(run: Path) -> list[int]:
    with RunStore(run) as store:
        ids: list[int] = store.query("SELECT span_id FROM spans ORDER BY 1")["span_id"].to_pylist()
    return ids


def segment_files(run: Path) -> set[str]:
    return {path.name for path in (run / "segments").glob("*.parquet")}


def named_files(run: Path) -> set[str]:
    return {segment.file for segment in open_sealer(run).manifest.segments}
