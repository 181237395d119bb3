from __future__ import annotations

import fcntl
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.collect import keeping
from rollscope.collect.keeping import Keeper, Kept
from rollscope.errors import CollectorAway, FramesRefused, NoRoom, WrongRun
from rollscope.instrument.sinks import Frame, Opening
from rollscope.instrument.sinks.file import FileSink
from rollscope.model.batch import Payload
from rollscope.model.clockline import ClockLine
from rollscope.model.rundir import RunFile
from tests.builders import PROCESS, frame_of, make_batch, make_header, make_row, span_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHER = b"\0\0\0\0\0\0\0\2"
HEADER = make_header(host="gpu/07", pid=42)
FIRST = frame_of(make_batch(0, header=HEADER))
NAME = "gpu_07-42-00000001.rsl"
UNNAMED = "unknown-0-00000001.rsl"


def spans(number: int, process: bytes = PROCESS) -> bytes:
    return frame_of(span_batch(number, make_row(number), process=process))


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    made = Keeper(tmp_path / "runs")
    yield made
    made.close()


@pytest.fixture
def log(keeper: Keeper) -> Path:
    return keeper.directory / "run" / "log" / NAME


def keep(keeper: Keeper, *frames: bytes, run: str = "run") -> Kept:
    return keeper.keep(run, {"who": "me"}, PROCESS, b"".join(frames))


def again(keeper: Keeper) -> Keeper:
    """Give another life of the same receiver, which knows only what lies on the disk."""
    keeper.close()
    return Keeper(keeper.directory)


def test_frames_are_kept_as_the_file_sink_of_their_process_would_have(
    keeper: Keeper, tmp_path: Path
) -> None:
    sink = FileSink()
    sink.open(Opening("run", str(tmp_path / "local"), PROCESS, HEADER, {"who": "me"}))
    for frame in (FIRST, spans(1), spans(2)):
        sink.write(Frame(frame))
    sink.close()

    assert keep(keeper, FIRST, spans(1)) == Kept(2)
    assert keep(keeper, spans(2)) == Kept(1)

    def content(place: Path) -> dict[str, bytes]:
        files = [path for path in place.rglob("*") if path.is_file()]
        return {str(path.relative_to(place)): path.read_bytes() for path in files}

    assert content(tmp_path / "runs") == content(tmp_path / "local")


def test_frames_that_come_again_are_answered_and_not_written(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST, spans(1))
    assert keep(keeper, FIRST, spans(1), spans(2), spans(2)) == Kept(4, doubled=3)
    assert log.read_bytes() == FIRST + spans(1) + spans(2)


def test_a_new_life_knows_what_was_kept_before(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST, spans(1), spans(5))
    later = again(keeper)
    assert keep(later, spans(5), spans(3)) == Kept(2, doubled=1)
    assert later.line_of("run", PROCESS) == ClockLine(0, 1_700_000_000_000_000_000)
    later.close()
    assert log.read_bytes() == FIRST + spans(1) + spans(5) + spans(3)


def test_payloads_go_to_a_file_of_their_own(keeper: Keeper, log: Path) -> None:
    text = frame_of(make_batch(-1, payloads=[Payload(b"\1" * 16, 1, 1, "messages", "hi", False)]))
    assert keep(keeper, FIRST, text, spans(1), text) == Kept(4, doubled=1)
    assert log.read_bytes() == FIRST + spans(1)
    assert (log.parents[1] / "payloads" / NAME).read_bytes() == text


def test_a_process_whose_header_was_lost_is_kept_without_its_name(
    keeper: Keeper, log: Path
) -> None:
    keep(keeper, spans(3))
    assert (log.parent / UNNAMED).read_bytes() == spans(3)
    # A header that comes later does not split the log in two, nor in another life.
    keep(keeper, FIRST)
    later = again(keeper)
    assert keep(later, FIRST, spans(4)) == Kept(2, doubled=1)
    later.close()
    assert [path.name for path in log.parent.iterdir()] == [UNNAMED]


@pytest.mark.parametrize("cut", [1, 11, 12, 30, 200])
def test_a_frame_that_was_cut_short_is_taken_off_and_kept_when_it_comes_again(
    keeper: Keeper, log: Path, cut: int
) -> None:
    keep(keeper, FIRST, spans(1))
    later = again(keeper)
    with log.open("ab") as file:
        file.write(spans(2)[:cut])
    assert keep(later, spans(2), spans(3)) == Kept(2)
    later.close()
    assert log.read_bytes() == FIRST + spans(1) + spans(2) + spans(3)


def test_damage_amid_a_log_stays_and_what_follows_is_known(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST, spans(1), spans(2))
    later = again(keeper)
    damaged = bytearray(log.read_bytes())
    damaged[len(FIRST)] ^= 0xFF
    log.write_bytes(bytes(damaged))
    assert keep(later, spans(2), spans(3)) == Kept(2, doubled=1)
    later.close()
    assert log.read_bytes() == bytes(damaged) + spans(3)


def test_a_last_frame_that_is_whole_in_length_only_is_taken_off(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST, spans(1))
    later = again(keeper)
    content = log.read_bytes()
    log.write_bytes(content[:-40] + bytes(40))
    assert keep(later, spans(1)) == Kept(1)
    later.close()
    assert log.read_bytes() == content


def test_a_log_that_another_server_holds_is_left_alone(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST)
    other = Keeper(keeper.directory)
    with pytest.raises(CollectorAway, match="another server holds"):
        keep(other, spans(1))
    keeper.close()
    assert keep(other, spans(1)) == Kept(1)
    other.close()


def test_what_another_server_wrote_meanwhile_is_learned(
    keeper: Keeper, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_MOST_OPEN", 1)
    keep(keeper, FIRST)
    keeper.keep("run", {}, OTHER, spans(0, OTHER))  # so the first log is let go of
    other = Keeper(keeper.directory)
    keep(other, spans(1))
    other.close()
    assert keep(keeper, spans(1), spans(2)) == Kept(2, doubled=1)
    assert log.read_bytes() == FIRST + spans(1) + spans(2)


def test_few_files_are_open_at_a_time(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_MOST_OPEN", 3)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        for number in range(1, 20):
            process = number.to_bytes(8, "big")
            keeper.keep("run", {}, process, spans(0, process))
    assert len(os.listdir("/proc/self/fd")) - before == 3
    assert len(list((keeper.directory / "run" / "log").iterdir())) == 19


def test_a_full_disk_leaves_no_part_of_a_frame(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(FIRST) + 50, limits[1]))
    try:
        with pytest.raises(NoRoom, match="no room for gpu_07"):
            keep(keeper, spans(1), spans(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert log.read_bytes() == FIRST
    assert keep(keeper, spans(1), spans(2)) == Kept(2)


def test_one_request_is_one_write(
    keeper: Keeper, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write = os.write

    def counted(file: int, data: bytes) -> int:
        sizes.append(len(data))
        return write(file, data)

    monkeypatch.setattr(os, "write", counted)
    keep(keeper, FIRST, *map(spans, range(1, 9)))
    assert sizes == [log.stat().st_size]


def test_a_run_that_was_deleted_begins_anew(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST, spans(1))
    for path in (log, log.parents[1] / "run.json"):
        path.unlink()
    log.parent.rmdir()
    log.parents[1].rmdir()
    assert keep(keeper, spans(1)) == Kept(1)
    assert log.read_bytes() == spans(1)
    assert (log.parents[1] / "run.json").exists()


def test_the_log_of_another_process_is_never_written_to(keeper: Keeper, log: Path) -> None:
    twin = b"\1\0\0\0\0\0\0\1"  # whose name ends in the same way
    keep(keeper, FIRST)
    later = again(keeper)
    with pytest.raises(FramesRefused, match="another process"):
        later.keep("run", {}, twin, frame_of(make_batch(0, header=HEADER, process=twin)))
    assert log.read_bytes() == FIRST


def test_a_process_that_ends_is_noted(keeper: Keeper) -> None:
    assert keep(keeper, FIRST, frame_of(make_batch(1, end="exit"))).has_ended


@pytest.mark.parametrize("run", ["", "..", "../up", "a/b", ".hidden", "-x", "x" * 129, "a\0b"])
def test_a_name_that_no_run_may_have_makes_nothing(keeper: Keeper, run: str) -> None:
    with pytest.raises(FramesRefused, match=r"allowed|no run"):
        keep(keeper, FIRST, run=run)
    assert not keeper.directory.exists()


def test_a_host_cannot_name_a_path(keeper: Keeper) -> None:
    header = make_header(host="../../" + "x" * 300, pid=1)
    keep(keeper, frame_of(make_batch(0, header=header)))
    (path,) = (keeper.directory / "run" / "log").iterdir()
    assert path.name == f".._.._{'x' * 122}-1-00000001.rsl"


def test_only_the_run_that_is_shown_is_taken(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, only_run="mine")
    with pytest.raises(WrongRun, match="'mine' only"):
        keep(keeper, FIRST)
    assert keep(keeper, FIRST, run="mine") == Kept(1)
    keeper.close()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"hello", "no whole frame at byte 0"),
        (FIRST + b"RSF1", f"no whole frame at byte {len(FIRST)}"),
        (FIRST[:-1], "no whole frame at byte 0"),
        (FIRST[:-1] + b"\0", "damaged"),
        (spans(0, OTHER), "of another process"),
        (frame_of(make_batch(2**63)), "has the number"),
    ],
)
def test_what_is_no_frame_of_the_process_is_refused_and_nothing_kept(
    keeper: Keeper, data: bytes, told: str
) -> None:
    with pytest.raises(FramesRefused, match=told):
        keep(keeper, data)
    assert not keeper.directory.exists()


def test_nothing_sent_makes_no_run(keeper: Keeper) -> None:
    assert keep(keeper) == Kept(0)
    assert keeper.line_of("run", PROCESS) is None
    assert not keeper.directory.exists()


def test_runs_and_processes_are_bounded(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_MOST_RUNS", 1)
    monkeypatch.setattr(keeping, "_MOST_LOGS", 1)
    keep(keeper, FIRST)
    with pytest.raises(NoRoom, match="has made 1 runs"):
        keep(keeper, FIRST, run="second")
    with pytest.raises(NoRoom, match="1 processes"):
        keeper.keep("run", {}, OTHER, spans(0, OTHER))
    assert keep(keeper, spans(1)) == Kept(1)


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(CollectorAway, match="cannot keep the run run"):
        keep(Keeper(tmp_path / "runs"), FIRST)


def test_the_run_file_stays_as_its_first_process_wrote_it(keeper: Keeper) -> None:
    keep(keeper, FIRST)
    file = keeper.directory / "run" / "run.json"
    assert msgspec.json.decode(file.read_bytes(), type=RunFile).tags == {"who": "me"}
    keeper.keep("run", {"who": "you"}, OTHER, spans(0, OTHER))
    assert msgspec.json.decode(file.read_bytes(), type=RunFile).tags == {"who": "me"}


def test_the_lock_goes_with_the_log(keeper: Keeper, log: Path) -> None:
    keep(keeper, FIRST)
    with log.open("rb") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        keeper.close()
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
