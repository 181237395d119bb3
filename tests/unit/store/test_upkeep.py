from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.errors import StoreError
from rollscope.store import upkeep
from rollscope.store.embedded import RunStore
from rollscope.store.schema import TABLES
from rollscope.store.sealer import Sealer, find_shelf
from rollscope.store.segments import Segment, read_segment
from rollscope.store.upkeep import (
    drop_logs,
    finished_logs,
    merge_segments,
    plan_removal,
    remove_segments,
    seal_all,
    sizes_of,
    tidy,
)
from rollscope.testing import RunShape, generate_run
from tests.builders import SECOND, dead_header, make_batch, make_columns, make_row, write_log

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3600 * SECOND
SHAPE = RunShape(steps=3, tasks_per_step=4, group_size=2, rollout_processes=3, slots=8)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Give a run that was sealed in several goes, a log at a time."""
    path = tmp_path / "run"
    generate_run(path, SHAPE)
    aside = tmp_path / "aside"
    (path / "log").rename(aside)
    (path / "log").mkdir()
    for log in sorted(aside.iterdir()):
        log.rename(path / "log" / log.name)
        sealer = open_sealer(path)
        sealer.poll()
        assert sealer.seal()
    return path


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
    monkeypatch.setattr(upkeep, "SEAL_ROWS", limit)
    merge_segments(open_sealer(run))
    merged = [s.rows for s in open_sealer(run).manifest.segments if s.table == "spans"]
    assert merged[0] == limit
    assert 1 < len(merged) < len(sizes)
    assert max(merged) <= limit
    assert rows_of(run) == before


def segment_files(run: Path) -> set[str]:
    return {path.name for path in (run / "segments").glob("*.parquet")}


def named_files(run: Path) -> set[str]:
    return {segment.file for segment in open_sealer(run).manifest.segments}


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
    monkeypatch.setattr(upkeep, "is_over", lambda sealer: False)
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
    monkeypatch.setattr(upkeep, "SEGMENT_SCHEMA", 2)
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
    publish = upkeep._publish_merges

    def seal_first(sealer: Sealer, groups: list[upkeep._Group]) -> list[upkeep._Group]:
        rows = make_columns(make_row(77, "late"))
        header = make_batch(0, process=process, header=dead_header())
        write_log(late, [header, make_batch(1, process=process, spans=rows)])
        other = open_sealer(run)
        other.poll()
        assert other.seal()
        return publish(sealer, groups)

    monkeypatch.setattr(upkeep, "_publish_merges", seal_first)
    assert merge_segments(mine) > 0
    assert span_ids(run) == sorted([*before, 77])


COMPACT = """
import sys
from pathlib import Path
from rollscope.store.sealer import Sealer, find_shelf
from rollscope.store.upkeep import merge_segments, seal_all
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


def test_only_sealed_logs_of_finished_processes_are_dropped(run: Path) -> None:
    sealer = open_sealer(run)
    seal_all(sealer)
    now = time.time_ns()
    with RunStore(run) as store:
        statuses = store.query("SELECT status FROM processes")["status"].to_pylist()
    assert set(statuses) == {"ended", "dead"}
    assert len(finished_logs(sealer, now)) == statuses.count("ended")
    assert len(finished_logs(sealer, now + 2 * HOUR)) == len(statuses)


def test_a_reader_does_not_miss_dropped_logs(run: Path) -> None:
    sealer = open_sealer(run)
    seal_all(sealer)
    before = span_ids(run)
    with RunStore(run) as store:
        processes = store.query("SELECT * FROM processes").to_pylist()
    drop_logs(sealer, time.time_ns() + 2 * HOUR)
    assert list((run / "log").iterdir()) == []
    assert span_ids(run) == before
    with RunStore(run) as store:
        assert store.problems == []
        assert store.query("SELECT * FROM processes").to_pylist() == processes
        assert not store.refresh()


def test_a_log_that_grew_after_sealing_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log" / "a.rsl"
    batches = [
        make_batch(0, header=dead_header()),
        make_batch(1, spans=make_columns(make_row(1))),
    ]
    write_log(log, batches, tail=b"RSF1 torn")
    sealer = open_sealer(tmp_path)
    seal_all(sealer)
    later = time.time_ns() + 2 * HOUR
    assert finished_logs(sealer, later) == [log]
    write_log(log, [*batches, make_batch(2, spans=make_columns(make_row(2)))])
    assert finished_logs(sealer, later) == []


def test_a_damaged_log_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log" / "a.rsl"
    write_log(log, [make_batch(n, header=dead_header()) for n in range(3)])
    data = bytearray(log.read_bytes())
    data[30] ^= 0xFF
    log.write_bytes(data)
    sealer = open_sealer(tmp_path)
    seal_all(sealer)
    assert finished_logs(sealer, time.time_ns() + 2 * HOUR) == []


def test_logs_are_kept_while_a_segment_is_damaged(run: Path) -> None:
    sealer = open_sealer(run)
    seal_all(sealer)
    path = run / "segments" / sealer.manifest.segments[0].file
    data = bytearray(path.read_bytes())
    data[8:200] = bytes(192)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="logs are still needed"):
        drop_logs(sealer, time.time_ns() + 2 * HOUR)
    assert list((run / "log").iterdir())


def test_sealing_twice_changes_nothing(run: Path) -> None:
    seal_all(open_sealer(run))
    number = open_sealer(run).manifest.number
    seal_all(open_sealer(run))
    assert open_sealer(run).manifest.number == number


def test_a_run_that_nothing_can_be_written_to_says_what_to_do(run: Path) -> None:
    with pytest.raises(StoreError, match="XDG_CACHE_HOME"):
        seal_all(Sealer(run, None))


def test_sizes_add_up_to_what_lies_on_disk(run: Path) -> None:
    sizes = sizes_of(open_sealer(run))
    on_disk = sum(path.stat().st_size for path in run.rglob("*") if path.is_file())
    assert sizes.total_bytes == on_disk
    assert sizes.logs == len(list((run / "log").iterdir()))
    assert msgspec.json.decode(msgspec.json.encode(sizes))["segments"] == sizes.segments
