from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rollscope.store.embedded import RunStore
from rollscope.store.schema import TABLES
from rollscope.store.sealer import Sealer
from rollscope.store.segments import Segment
from rollscope.store.upkeep.retention import plan_removal, remove_segments
from rollscope.store.upkeep.sizes import sizes_of
from tests.unit.store.upkeep.sealed_runs import open_sealer, span_ids

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def segment(table: str, low: int, high: int, size: int = 10) -> Segment:
    return Segment(
        table=table,
        file=f"{table}-{low}",
        rows=100,
        size=size,
        crc=0,
        low_ns=low,
        high_ns=high,
        columns=TABLES[table].names,
    )


def planned(sealer: Sealer, older_than_ns: int | None = None, excess_bytes: int = 0) -> list[str]:
    plan = plan_removal(sealer, older_than_ns=older_than_ns, excess_bytes=excess_bytes)
    return sorted(each.file for each in plan.segments)


def test_retention_takes_the_oldest_and_what_belongs_to_them(tmp_path: Path) -> None:
    sealer = Sealer(tmp_path, None)
    sealer.manifest.segments = [
        segment("spans", 1, 20),
        segment("facts", 2, 8),
        segment("facts", 9, 25),
        segment("spans", 10, 40),
        segment("metrics", 3, 50),
        segment("spans", 41, 60),
    ]
    assert planned(sealer) == []
    assert planned(sealer, older_than_ns=20) == []
    # The second facts may tell of spans that stay; the first cannot.
    assert planned(sealer, older_than_ns=30) == ["facts-2", "spans-1"]
    assert planned(sealer, older_than_ns=45) == ["facts-2", "facts-9", "spans-1", "spans-10"]
    assert len(planned(sealer, older_than_ns=1_000)) == 6
    assert planned(sealer, excess_bytes=1) == ["facts-2", "spans-1"]
    assert planned(sealer, excess_bytes=21) == ["facts-2", "facts-9", "spans-1", "spans-10"]
    assert len(planned(sealer, excess_bytes=10_000)) == 6


def test_removed_spans_are_counted_and_their_files_deleted(run: Path) -> None:
    sealer = open_sealer(run)
    before = sizes_of(sealer)
    plan = plan_removal(sealer, excess_bytes=1)
    assert 0 < plan.spans < before.spans

    done = remove_segments(sealer, plan)

    after = open_sealer(run)
    assert done.spans == plan.spans == after.manifest.removed_rows
    assert sizes_of(after).spans == before.spans - plan.spans
    assert not any((run / "segments" / each.file).exists() for each in plan.segments)
    remove_segments(after, plan_removal(after, older_than_ns=time.time_ns()))
    assert open_sealer(run).manifest.removed_rows == before.spans


def test_removing_goes_on_after_another_was_faster(run: Path) -> None:
    sealer = open_sealer(run)
    plan = plan_removal(sealer, excess_bytes=1)
    other = open_sealer(run)
    assert other.replace(list(other.manifest.segments))
    assert remove_segments(sealer, plan).spans == plan.spans
    assert open_sealer(run).manifest.removed_rows == plan.spans


def test_a_reader_at_work_survives_a_removal(run: Path) -> None:
    with RunStore(run) as reader:
        sealer = open_sealer(run)
        plan = plan_removal(sealer, excess_bytes=1)
        count = reader.query("SELECT count(*) AS n FROM spans")["n"][0].as_py()
        remove_segments(sealer, plan)
        left = reader.query("SELECT count(*) AS n FROM spans")["n"][0].as_py()
        assert left == count - plan.spans
        assert reader.problems == []


def test_a_reader_that_is_just_opening_survives_a_removal(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = RunStore._create_views
    removals: list[int] = []

    def remove_first(store: RunStore, *given: object) -> None:
        if not removals:
            sealer = open_sealer(run)
            done = remove_segments(sealer, plan_removal(sealer, excess_bytes=1))
            removals.append(done.spans)
        create(store, *given)  # type: ignore[arg-type]  # what it came with

    total = len(span_ids(run))
    monkeypatch.setattr(RunStore, "_create_views", remove_first)
    assert len(span_ids(run)) == total - removals[0]
