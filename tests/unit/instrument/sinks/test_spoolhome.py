from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spooldir import Destination
from rollscope.instrument.sinks.spoolhome import (
    Room,
    SpoolFull,
    default_home,
    find_spools,
    is_abandoned,
    prepare_home,
)
from rollscope.model.frames import pack_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 2**20


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Spool]]:
    made: list[Spool] = []

    def make(number: int, address: str = "http://head:7077", host: str | None = None) -> Spool:
        process = f"{number:016x}"
        to = Destination(address, "a-run", process, host or os.uname().nodename, number)
        made.append(Spool.make(str(tmp_path / process), to))
        return made[-1]

    yield make
    for spool in made:
        spool.let_go()


def test_spools_lie_in_the_state_directory_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_home() == str(tmp_path / ".local/state/rollscope/spool")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_home() == str(tmp_path / "state/rollscope/spool")


def test_without_a_home_they_lie_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert default_home() == str(tmp_path / f"rollscope-spool-{os.geteuid()}")


def test_nobody_else_may_read_spools(tmp_path: Path, make: Callable[..., Spool]) -> None:
    home = prepare_home(str(tmp_path / "spools"))
    assert os.stat(home).st_mode & 0o777 == 0o700
    assert os.stat(make(1).path).st_mode & 0o777 == 0o700


def test_a_directory_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = os.stat(tmp_path).st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    if owner == 0:  # whom everybody has to trust
        os.chown(tmp_path, 12345, -1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        prepare_home(str(tmp_path))


def test_all_spools_are_found_and_nothing_else(tmp_path: Path, make: Callable[..., Spool]) -> None:
    make(1)
    make(2, "ray")
    (tmp_path / "stray").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "to.json").write_text("{")
    found = {to.pid: to.address for _, to in find_spools(str(tmp_path))}
    assert found == {1: "http://head:7077", 2: "ray"}
    assert list(find_spools(str(tmp_path / "nowhere"))) == []


def test_what_another_host_wrote_lately_is_left_alone(make: Callable[..., Spool]) -> None:
    ours, theirs = make(1), make(2, host="elsewhere")
    assert is_abandoned(ours.path, ours.to)
    assert not is_abandoned(theirs.path, theirs.to)
    long_ago = time.time() - 3600
    for name in os.listdir(theirs.path):
        os.utime(os.path.join(theirs.path, name), (long_ago, long_ago))
    assert is_abandoned(theirs.path, theirs.to)


def test_the_bound_holds_over_all_spools_to_one_address(
    tmp_path: Path, make: Callable[..., Spool]
) -> None:
    mine, neighbour, stranger = make(1), make(2), make(3, "http://other:7077")
    neighbour.write(pack_frame(bytes(MIB)))
    stranger.write(pack_frame(bytes(5 * MIB)))
    room = Room(str(tmp_path), mine, 3 * MIB)
    data = pack_frame(bytes(MIB // 4))
    for _ in range(7):
        room.check(len(data))
        mine.write(data)
    with pytest.raises(SpoolFull, match=r"bound of 3 MiB \(setting spool_mb\)"):
        room.check(len(data))

    neighbour.peek(2 * MIB)
    neighbour.take()
    room.check(len(data))


def test_room_comes_back_as_frames_are_delivered(
    tmp_path: Path, make: Callable[..., Spool]
) -> None:
    mine = make(1)
    room = Room(str(tmp_path), mine, 2 * MIB)
    data = pack_frame(bytes(MIB - 100))
    for _ in range(2):
        room.check(len(data))
        mine.write(data)
    with pytest.raises(SpoolFull):
        room.check(len(data))
    while mine.peek(MIB):
        mine.take()
    room.check(len(data))


def test_a_frame_that_exceeds_the_bound_alone_stops_nobody(
    tmp_path: Path, make: Callable[..., Spool]
) -> None:
    mine = make(1)
    room = Room(str(tmp_path), mine, MIB)
    room.check(3 * MIB)
    mine.write(pack_frame(bytes(3 * MIB)))
    with pytest.raises(SpoolFull):
        room.check(3 * MIB)
