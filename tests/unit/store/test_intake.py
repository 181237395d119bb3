from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.model.kinds import Status
from rollscope.store.intake import Intake, IntakeState
from tests.builders import (
    EPOCH,
    SECOND,
    dead_header,
    frame_of,
    make_batch,
    make_header,
    make_row,
    remote_header,
    span_batch,
    write_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rollscope.model.batch import Batch

NOW = EPOCH + 1_000_000 * SECOND
OTHER = b"\0\0\0\0\0\0\0\2"


def log_of(*ids: int, process: bytes = b"\0\0\0\0\0\0\0\1") -> list[Batch]:
    batches = [make_batch(0, header=make_header(), process=process)]
    for number, span_id in enumerate(ids, start=1):
        batches.append(span_batch(number, make_row(span_id), process=process))
    return batches


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return tmp_path


def ids_in(intake: Intake) -> list[int]:
    """Take in everything and give the spans that became final."""
    return [
        span_id
        for taken in intake.poll()
        for table in taken.tables.get("spans", [])
        for span_id in table["span_id"].to_pylist()
    ]


def restored(intake: Intake) -> Intake:
    stored = msgspec.msgpack.encode(intake.to_state())
    return Intake(intake.run, msgspec.msgpack.decode(stored, type=IntakeState))


def test_all_logs_are_taken_in_and_then_what_is_added(run: Path) -> None:
    intake = Intake(run)
    assert ids_in(intake) == []
    log = write_log(run / "log" / "a.rsl", log_of(1, 2))
    write_log(run / "log" / "b.rsl", log_of(10, process=OTHER))
    assert sorted(ids_in(intake)) == [1, 2, 10]
    assert ids_in(intake) == []
    with log.open("ab") as file:
        file.write(frame_of(span_batch(3, make_row(3)))[:-1])
    assert ids_in(intake) == []
    with log.open("ab") as file:
        file.write(frame_of(span_batch(3, make_row(3)))[-1:])
    assert ids_in(intake) == [3]
    assert intake.total_bytes()[0] == intake.total_bytes()[1]
    assert intake.problems == []


def test_another_reader_goes_on_where_this_one_stopped(run: Path) -> None:
    log = write_log(run / "log" / "a.rsl", log_of(1))
    intake = Intake(run)
    assert ids_in(intake) == [1]
    write_log(log, log_of(1, 2))
    assert ids_in(restored(intake)) == [2]


def test_a_single_log_is_a_run_too(run: Path) -> None:
    log = write_log(run / "log" / "a.rsl", log_of(1))
    intake = Intake(log)
    assert ids_in(intake) == [1]
    write_log(log, log_of(1, 2))
    again = restored(intake)
    assert (ids_in(again), again.problems) == ([2], [])


def test_logs_take_turns_so_that_their_rows_are_close_in_time(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollscope.store.intake._CHUNK_BYTES", 1)
    for name, process in (("a", b"\0" * 7 + b"\1"), ("b", OTHER)):
        batches = [make_batch(0, header=make_header(), process=process)]
        for number in range(1, 5):
            row = make_row(
                process[-1] * 10 + number, start_ns=number * SECOND, end_ns=(number + 1) * SECOND
            )
            batches.append(span_batch(number, row, process=process))
        write_log(run / "log" / f"{name}.rsl", batches)
    found = ids_in(Intake(run))
    assert sorted(found) == [11, 12, 13, 14, 21, 22, 23, 24]
    assert max(abs(found.index(10 + n) - found.index(20 + n)) for n in range(1, 5)) <= 2


def test_much_can_be_taken_in_by_and_by(run: Path) -> None:
    processes = [bytes(7) + bytes([number]) for number in (1, 2, 3)]
    for process in processes:
        log = log_of(10 * process[-1], process=process)
        write_log(run / "log" / f"{process[-1]}.rsl", log)
    intake = Intake(run)
    looks = [(len(list(intake.poll(max_s=0))), intake.is_behind) for _ in range(4)]
    assert [taken for taken, _ in looks] == [1, 1, 1, 0]
    assert looks[0][1]
    assert not looks[3][1]
    assert sum(ledger.state.spans for ledger in intake.ledgers.values()) == 3


@pytest.mark.parametrize("length", [2, 3, 50])
def test_a_log_that_was_replaced_is_read_from_its_beginning(run: Path, length: int) -> None:
    log = write_log(run / "log" / "a.rsl", log_of(1, 2, 3))
    intake = Intake(run)
    assert ids_in(intake) == [1, 2, 3]
    write_log(log, log_of(*range(7, 7 + length), process=OTHER))
    # One of the same length is found by the next reader only.
    for reader in (restored(intake), *([intake] if length != 3 else [])):
        assert ids_in(reader)[:2] == [7, 8]
        assert any("was replaced" in problem for problem in reader.problems)
        assert ids_in(reader) == []


def test_a_log_that_lost_its_end_gives_nothing_twice(run: Path) -> None:
    log = write_log(run / "log" / "a.rsl", log_of(1, 2, 3))
    intake = Intake(run)
    ids_in(intake)
    write_log(log, log_of(1, 2))
    assert ids_in(intake) == []
    write_log(log, log_of(1, 2, 3, 4))
    assert ids_in(intake) == [4]


def test_frames_of_another_process_are_told_and_left_out(run: Path) -> None:
    foreign = span_batch(0, make_row(5), process=OTHER)
    write_log(run / "log" / "a.rsl", [*log_of(1), foreign])
    intake = Intake(run)
    assert ids_in(intake) == [1]
    assert any("another process" in problem for problem in intake.problems)


@pytest.mark.parametrize("odd", ["garbage", "folder", "dangling"])
def test_what_is_no_log_is_told_and_hides_no_other(run: Path, odd: str) -> None:
    write_log(run / "log" / "b.rsl", log_of(1))
    path = run / "log" / "a.rsl"
    if odd == "garbage":
        path.write_bytes(b"\x7fELF" * 100)
    elif odd == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    intake = Intake(run)
    assert ids_in(intake) == [1]
    assert ids_in(intake) == []
    assert len([problem for problem in intake.problems if "a.rsl" in problem]) == 1


def test_damage_hides_what_follows_only_while_its_process_lives(run: Path) -> None:
    header = frame_of(make_batch(0, header=dead_header()))
    bad = bytearray(frame_of(span_batch(1, make_row(1))))
    bad[4:8] = (10_000_000).to_bytes(4, "little")  # a length that is too long
    good = frame_of(span_batch(2, make_row(2)))
    (run / "log" / "a.rsl").write_bytes(header + bytes(bad) + good)
    intake = Intake(run)
    assert ids_in(intake) == [2]
    assert any("damaged" in problem for problem in intake.problems)
    assert restored(intake).damage() == intake.damage() != {}


def test_covering_a_state_takes_all_of_its_logs(run: Path) -> None:
    log = write_log(run / "log" / "a.rsl", log_of(1, 2))
    intake = Intake(run)
    ids_in(intake)
    state = intake.to_state()
    assert intake.covers(state)
    os.truncate(log, 10)
    assert not intake.covers(state)
    log.unlink()
    assert not intake.covers(state)


@pytest.mark.parametrize(
    ("header", "status"),
    [(make_header(), "open"), (dead_header(), "lost"), (remote_header(), "lost")],
)
def test_open_spans_look_like_their_process(run: Path, header: object, status: str) -> None:
    start = span_batch(1, make_row(1, status=Status.OPEN))
    write_log(run / "log" / "a.rsl", [make_batch(0, header=header), start])
    intake = Intake(run)
    assert ids_in(intake) == []
    (row,) = intake.open_rows(NOW).to_pylist()
    assert row["status"] == status


# Rows that come before the announcement of what is open


def mark(number: int) -> Batch:
    return make_batch(number, mono_ns=(number + 3) * SECOND, drained=True)


def paths_in(intake: Intake) -> dict[int, str]:
    return {
        row["span_id"]: row["path"]
        for taken in intake.poll()
        for table in taken.tables.get("spans", [])
        for row in table.to_pylist()
    }


def marked_log(header: Batch) -> list[Batch]:
    """A child ends between two full drains; its parent is announced with the second."""
    child = make_row(2, "http", parent_id=9)
    return [header, span_batch(1, make_row(1)), mark(2), span_batch(3, child)]


def test_a_row_waits_until_all_that_is_open_has_been_announced(run: Path) -> None:
    header = make_batch(0, header=make_header())
    log = write_log(run / "log" / "a.rsl", marked_log(header))
    intake = Intake(run)
    assert list(paths_in(intake)) == [1]
    assert paths_in(restored(intake)) == {}
    parent = span_batch(4, make_row(9, "generate", status=Status.OPEN))
    with log.open("ab") as file:
        file.write(frame_of(parent) + frame_of(mark(5)))
    assert paths_in(restored(intake)) == {2: "generate / http"}
    assert paths_in(intake) == {2: "generate / http"}


def test_a_row_does_not_wait_for_a_process_that_is_gone(run: Path) -> None:
    header = make_batch(0, header=dead_header())
    write_log(run / "log" / "a.rsl", marked_log(header))
    assert paths_in(Intake(run)) == {1: "work", 2: "http"}


def test_a_row_does_not_wait_for_ever(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = make_batch(0, header=make_header())
    write_log(run / "log" / "a.rsl", marked_log(header))
    intake = Intake(run)
    assert list(paths_in(intake)) == [1]
    monkeypatch.setattr("rollscope.store.followedlog._PATIENCE_S", 0.0)
    assert list(paths_in(intake)) == [2]
