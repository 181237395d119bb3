from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from rollscope.errors import StoreError
from rollscope.store.embedded import RunStore
from rollscope.store.sealer import Sealer
from rollscope.store.upkeep.logs import drop_logs, finished_logs, seal_all
from tests.builders import dead_header, make_batch, make_columns, make_row, write_log
from tests.unit.store.upkeep.sealed_runs import HOUR, open_sealer, span_ids

if TYPE_CHECKING:
    from pathlib import Path


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
