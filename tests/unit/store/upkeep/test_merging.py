from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from rollscope.store.embedded import RunStore
from rollscope.store.intake import Intake
from rollscope.store.schema import TABLES
from rollscope.store.upkeep import merging
from rollscope.store.upkeep.merging import merge_segments, tidy
from rollscope.store.upkeep.retention import plan_removal, remove_segments
from rollscope.testing import RunShape, generate_run
from tests.builders import dead_header, make_batch, make_columns, make_row, write_log
from tests.unit.store.upkeep.sealed_runs import (
    HOUR,
    named_files,
    open_sealer,
    rows_of,
    segment_files,
    span_ids,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from rollscope.store.sealer import Sealer


def test_merging_keeps_every_row_as_it_was(run: Path) -> None:
    before, ids = rows_of(run), span_ids(run)
    sealer = open_sealer(run)
    tables = [segment.table for segment in sealer.manifest.segments]
    assert tables.count("spans") > 2

    saved = merge_segments(sealer)

    after = [segment.table for segment in open_sealer(run).manifest.segments]
    assert len(after) == len(set(after)) == len(tables) - saved
    assert rows_of(run) == before
    assert span_ids(run) == ids
    assert merge_segments(open_sealer(run)) == 0


def test_merged_segments_are_no_larger_than_full_ones(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(run)
    sizes = [s.rows for s in open_sealer(run).manifest.segments if s.table == "spans"]
    limit = sizes[0] + sizes[1]
    monkeypatch.setattr(merging, "SEAL_ROWS", limit)
    merge_segments(open_sealer(run))
    merged = [s.rows for s in open_sealer(run).manifest.segments if s.table == "spans"]
    assert merged[0] == limit
    assert 1 < len(merged) < len(sizes)
    assert max(merged) <= limit
    assert rows_of(run) == before


def test_replaced_files_stay_for_readers_and_go_when_none_can_need_them(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = segment_files(run)
    merge_segments(open_sealer(run))
    tidy(open_sealer(run))
    assert segment_files(run) == before | named_files(run)
    for name in before:
        os.utime(run / "segments" / name, (1, 1))
    tidy(open_sealer(run))
    assert segment_files(run) == before | named_files(run)
    later = open_sealer(run)
    later.manifest.made_ns -= HOUR
    monkeypatch.setattr(Intake, "is_over", lambda intake: False)
    tidy(later)
    assert segment_files(run) == before | named_files(run)
    monkeypatch.undo()
    tidy(later)
    assert segment_files(run) == named_files(run)


def test_what_another_is_writing_stays(run: Path) -> None:
    sealer = open_sealer(run)
    sealer.manifest.made_ns -= HOUR
    young = run / "segments" / "spans-young.parquet"
    young.write_bytes(b"being written")
    tidy(sealer)
    assert young.exists()


def test_an_older_schema_is_rewritten(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merge_segments(open_sealer(run))
    before = rows_of(run)
    monkeypatch.setattr(merging, "SEGMENT_SCHEMA", 2)
    files = {segment.file for segment in open_sealer(run).manifest.segments}
    merge_segments(open_sealer(run))
    assert not files & {segment.file for segment in open_sealer(run).manifest.segments}
    assert rows_of(run) == before


def test_a_slower_compactor_loses_nothing_and_leaves_nothing(run: Path) -> None:
    before, files = rows_of(run), segment_files(run)
    slow = open_sealer(run)
    merge_segments(open_sealer(run))
    assert merge_segments(slow) == 0
    assert rows_of(run) == before
    assert segment_files(run) == files | named_files(run)


def test_a_compactor_goes_on_after_retention_took_its_files(run: Path) -> None:
    slow = open_sealer(run)
    other = open_sealer(run)
    removed = remove_segments(other, plan_removal(other, excess_bytes=1))
    assert merge_segments(slow) > 0
    assert open_sealer(run).manifest.removed_rows == removed.spans


def test_what_another_sealed_meanwhile_is_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = run / "log" / "zz-late.rsl"
    process = b"\x07" * 8
    mine = open_sealer(run)
    before = span_ids(run)
    publish = merging._publish_merges

    def seal_first(sealer: Sealer, groups: list[merging._Group]) -> list[merging._Group]:
        rows = make_columns(make_row(77, "late"))
        header = make_batch(0, process=process, header=dead_header())
        write_log(late, [header, make_batch(1, process=process, spans=rows)])
        other = open_sealer(run)
        other.poll()
        assert other.seal()
        return publish(sealer, groups)

    monkeypatch.setattr(merging, "_publish_merges", seal_first)
    assert merge_segments(mine) > 0
    assert span_ids(run) == sorted([*before, 77])


COMPACT = """
import sys
from pathlib import Path
from rollscope.store.sealer import Sealer, find_shelf
from rollscope.store.upkeep.logs import seal_all
from rollscope.store.upkeep.merging import merge_segments
run = Path(sys.argv[1])
sys.stdin.readline()
sealer = Sealer(run, find_shelf(run))
seal_all(sealer)
print(merge_segments(sealer))
"""


def test_two_compactors_at_once_keep_every_row(run: Path, tmp_path: Path) -> None:
    before = rows_of(run)
    generate_run(tmp_path / "other", RunShape(seed=9, steps=1, tasks_per_step=3))
    for log in (tmp_path / "other" / "log").iterdir():
        log.rename(run / "log" / f"more-{log.name}")
    with RunStore(run) as store:
        ids = store.query("SELECT span_id FROM spans ORDER BY 1")["span_id"].to_pylist()
    both = [
        subprocess.Popen(
            [sys.executable, "-c", COMPACT, str(run)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for each in both:  # both are started before either may begin
        assert each.stdin is not None
        each.stdin.write(b"\n")
        each.stdin.flush()
    ends = [each.communicate(timeout=60) for each in both]
    assert [each.returncode for each in both] == [0, 0], ends
    assert span_ids(run) == ids
    after = rows_of(run)
    assert all(set(before[name]) <= set(after[name]) for name in TABLES)
    sealer = open_sealer(run)
    assert sealer.problems == []
