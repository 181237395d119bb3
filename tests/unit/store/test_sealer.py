from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollscope.store import sealer as module
from rollscope.store import sealing
from rollscope.store.manifest import Shelf
from rollscope.store.sealer import Sealer, find_shelf
from tests.builders import make_batch, make_header, make_row, span_batch, write_log

if TYPE_CHECKING:
    from rollscope.model.batch import Batch


def log_of(spans: int, process: bytes = b"\0\0\0\0\0\0\0\1") -> list[Batch]:
    header = make_batch(0, header=make_header(), process=process)
    first = process[-1] * 1000
    rest = [span_batch(n, make_row(first + n), process=process) for n in range(1, spans + 1)]
    return [header, *rest]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_log(tmp_path / "run" / "log" / "a.rsl", log_of(5))
    return tmp_path / "run"


def sealer_of(run: Path) -> Sealer:
    return Sealer(run, find_shelf(run))


def rows_of(sealer: Sealer) -> list[int]:
    """Give every span that is final, sealed or not."""
    from rollscope.store.segments import read_segment

    assert sealer.shelf is not None
    tables = [read_segment(sealer.shelf.folder, s) for s in sealer.manifest.segments]
    tables.append(sealer.tail_table("spans"))
    return sorted(span_id for table in tables for span_id in table["span_id"].to_pylist())


def test_what_is_taken_in_is_in_memory_until_it_is_sealed(run: Path) -> None:
    sealer = sealer_of(run)
    assert sealer.poll()
    assert (sealer.unsealed_rows, sealer.manifest.segments) == (5, [])
    assert sealer.seal()
    assert (sealer.unsealed_rows, len(sealer.manifest.segments)) == (0, 1)
    assert not sealer.poll()
    assert rows_of(sealer) == [1001, 1002, 1003, 1004, 1005]


def test_another_reader_starts_from_what_was_sealed(run: Path) -> None:
    sealer = sealer_of(run)
    sealer.poll()
    sealer.seal()
    write_log(run / "log" / "a.rsl", log_of(7))
    other = sealer_of(run)
    assert other.poll()
    assert other.unsealed_rows == 2
    assert rows_of(other) == list(range(1001, 1008))


def test_a_reader_takes_over_what_another_one_sealed(run: Path) -> None:
    first, second = sealer_of(run), sealer_of(run)
    first.poll()
    second.poll()
    assert second.seal()
    assert not first.poll()
    assert (first.unsealed_rows, first.manifest.number) == (0, 1)
    assert rows_of(first) == rows_of(second)


def test_of_two_that_seal_at_once_one_throws_its_work_away(run: Path) -> None:
    first, second = sealer_of(run), sealer_of(run)
    first.poll()
    write_log(run / "log" / "a.rsl", log_of(7))
    second.poll()
    assert second.seal()
    assert first.seal()
    assert first.manifest.number == 1
    first.poll()
    assert rows_of(first) == rows_of(second) == list(range(1001, 1008))
    assert len(list(run.glob("segments/*.parquet"))) == 1


def test_a_reader_that_is_overtaken_in_the_middle_of_a_poll_doubles_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollscope.store.intake._CHUNK_BYTES", 1)
    monkeypatch.setattr(module, "SEAL_ROWS", 2)
    slow = sealer_of(run)
    published = Shelf.publish
    overtaken: list[bool] = []

    def publish(shelf: Shelf, *args: object) -> bool:
        if not overtaken:
            overtaken.append(True)
            quick = sealer_of(run)
            quick.poll()
            quick.seal()
        return published(shelf, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Shelf, "publish", publish)
    slow.poll()
    slow.poll()
    assert rows_of(slow) == [1001, 1002, 1003, 1004, 1005]


def test_a_full_segment_is_sealed_while_reading_on(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollscope.store.intake._CHUNK_BYTES", 1)
    monkeypatch.setattr(module, "SEAL_ROWS", 2)
    monkeypatch.setattr(module, "_MUCH_BYTES", 0)
    sealer = sealer_of(run)
    told: list[tuple[int, int]] = []
    sealer.poll(lambda done, total: told.append((done, total)))
    assert [segment.rows for segment in sealer.manifest.segments] == [2, 2]
    assert sealer.unsealed_rows == 1
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]


def test_a_live_run_is_sealed_beside_and_every_row_stays_in_sight(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollscope.store.intake._CHUNK_BYTES", 1)
    monkeypatch.setattr(module, "SEAL_ROWS", 2)
    sealer = sealer_of(run)
    for _ in range(3):
        sealer.poll()
        assert rows_of(sealer) == [1001, 1002, 1003, 1004, 1005]
    sealer.finish()
    assert rows_of(sealer) == [1001, 1002, 1003, 1004, 1005]
    assert sum(segment.rows for segment in sealer.manifest.segments) >= 2
    assert rows_of(sealer_of(run)) == rows_of(sealer_of(run))


def test_what_could_not_be_sealed_beside_stays_in_memory(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SEAL_ROWS", 2)
    monkeypatch.setattr(
        sealing, "write_segment", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "gone"))
    )
    sealer = sealer_of(run)
    sealer.poll()
    sealer.finish()
    assert rows_of(sealer) == [1001, 1002, 1003, 1004, 1005]
    assert "gone" in sealer.problems[0]


def test_a_shelf_that_cannot_be_written_is_told_and_tried_again(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealer = sealer_of(run)
    sealer.poll()

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(sealing, "write_segment", fail)
        assert not sealer.seal()
        assert not sealer.seal()
    assert len(sealer.problems) == 1
    assert "No space left" in sealer.problems[0]
    assert rows_of(sealer) == [1001, 1002, 1003, 1004, 1005]
    assert not sealer.seal()  # not yet
    monkeypatch.setattr(sealer, "_retry_at", 0.0)
    assert sealer.seal()
    assert rows_of(sealer) == [1001, 1002, 1003, 1004, 1005]


def test_reading_stops_when_memory_is_full_and_goes_on_when_there_is_room(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollscope.store.intake._CHUNK_BYTES", 1)
    monkeypatch.setattr(module, "SEAL_ROWS", 1)
    monkeypatch.setattr(module, "_MOST_UNSEALED", 2)
    monkeypatch.setattr(module, "_MUCH_BYTES", 0)
    sealer = sealer_of(run)
    with monkeypatch.context() as patch:
        patch.setattr(sealing, "write_segment", lambda *_: (_ for _ in ()).throw(OSError("full")))
        sealer.poll()
        sealer.poll()
        assert sealer.unsealed_rows == 3
    monkeypatch.setattr(sealer, "_retry_at", 0.0)
    sealer.poll()
    assert rows_of(sealer) == [1001, 1002, 1003, 1004, 1005]


@pytest.mark.parametrize("has_logs", [True, False])
def test_a_damaged_segment_is_read_anew_from_the_logs_or_told_as_gone(
    run: Path, *, has_logs: bool
) -> None:
    sealer = sealer_of(run)
    sealer.poll()
    sealer.seal()
    (segment,) = sealer.manifest.segments
    (run / "segments" / segment.file).write_bytes(b"short")
    if not has_logs:
        shutil.rmtree(run / "log")
    again = sealer_of(run)
    again.poll()
    assert rows_of(again) == ([1001, 1002, 1003, 1004, 1005] if has_logs else [])
    said = "read again from its logs" if has_logs else "5 spans of it are gone"
    assert any(said in problem for problem in again.problems)
    assert (run / "segments" / f"{segment.file}.damaged").exists()


def test_replacing_segments_keeps_the_state_they_were_sealed_with(run: Path) -> None:
    sealer = sealer_of(run)
    sealer.poll()
    sealer.seal()
    write_log(run / "log" / "a.rsl", log_of(7))
    sealer.poll()
    assert sealer.replace(list(sealer.manifest.segments), removed_rows=2)
    assert sealer.manifest.removed_rows == 2
    other = sealer_of(run)
    other.poll()
    assert other.unsealed_rows == 2
    assert other.seal()
    assert not sealer.replace([])  # the other was faster


# Where segments are kept


def test_segments_are_kept_with_the_run(run: Path) -> None:
    shelf = find_shelf(run)
    assert shelf is not None
    assert shelf.folder == run / "segments"


def test_a_run_that_cannot_hold_them_is_kept_in_the_cache(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (run / "segments").touch()
    shelf = find_shelf(run)
    assert shelf is not None
    assert shelf.folder.parent == tmp_path / "cache" / "rollscope"
    again = find_shelf(tmp_path / "." / "run")
    assert again is not None
    assert again.folder == shelf.folder
    log = find_shelf(run / "log" / "a.rsl")
    assert log is not None
    assert log.folder.parent == shelf.folder.parent
    assert log.folder != shelf.folder


def test_without_any_place_the_run_is_read_into_memory(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "segments").touch()
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert find_shelf(run) is None
    sealer = Sealer(run, None)
    assert sealer.poll()
    assert not sealer.seal()
    assert sealer.unsealed_rows == 5


def test_a_run_made_anew_under_the_same_path_has_nothing_of_the_old_one(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (run / "segments").touch()
    sealer = sealer_of(run)
    sealer.poll()
    sealer.seal()
    shutil.rmtree(run)
    write_log(run / "log" / "b.rsl", log_of(2, process=b"\0\0\0\0\0\0\0\2"))
    (run / "segments").touch()
    again = sealer_of(run)
    again.poll()
    assert rows_of(again) == [2001, 2002]
