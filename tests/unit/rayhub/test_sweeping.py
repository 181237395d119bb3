"""What dead processes left in their spools is kept; what living ones have there is not touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rollscope.collect.keeping import Keeper
from rollscope.errors import NoRoom
from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spooldir import Destination
from rollscope.rayhub.sweeping import Sweeper, sweep_up
from tests.builders import frame_of, make_batch, make_header

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "ray:/head/runs"


def frames_of(process: bytes) -> list[bytes]:
    return [
        frame_of(make_batch(n, header=None if n else make_header(), process=process))
        for n in range(3)
    ]


def make_spool(home: Path, process: bytes, address: str = ADDRESS, run: str = "run") -> Spool:
    to = Destination(
        address=address, run=run, process=process.hex(), host=os.uname().nodename, pid=1, tags={}
    )
    spool = Spool.make(str(home / process.hex()), to)
    for frame in frames_of(process):
        spool.write(frame)
    return spool


def leave_spool(home: Path, process: bytes, **of: str) -> None:
    make_spool(home, process, **of).let_go()


def logs_of(directory: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in (directory / "run" / "log").glob("*"))


def test_all_that_was_left_for_this_address_is_kept_and_removed(tmp_path: Path) -> None:
    home = tmp_path / "spool"
    processes = [bytes([number]) * 8 for number in (1, 2, 3)]
    for process in processes:
        leave_spool(home, process)
    leave_spool(home, b"others'.", address="ray:/elsewhere")
    sweep_up(ADDRESS, str(tmp_path / "runs"), str(home), patience_s=0.0)
    kept = logs_of(tmp_path / "runs")
    assert kept == sorted(b"".join(frames_of(process)) for process in processes)
    assert [path.name for path in home.iterdir()] == [b"others'.".hex()]


def test_a_living_process_keeps_its_spool_and_is_waited_for(tmp_path: Path) -> None:
    home = tmp_path / "spool"
    living = make_spool(home, b"\1" * 8)
    leave_spool(home, b"\2" * 8)
    keeper = Keeper(tmp_path / "runs")
    sweeper = Sweeper(ADDRESS, keeper.keep, str(home))
    while sweeper.sweep():
        pass
    assert sweeper.are_others_left
    assert len(logs_of(tmp_path / "runs")) == 1
    living.let_go()
    while sweeper.sweep():
        pass
    assert not sweeper.are_others_left
    assert len(logs_of(tmp_path / "runs")) == 2
    keeper.close()


def test_what_cannot_be_kept_now_stays_and_what_never_can_is_set_aside(tmp_path: Path) -> None:
    home = tmp_path / "spool"
    leave_spool(home, b"\1" * 8)

    def refuse(*args: object) -> None:
        raise NoRoom("the disk is full")

    sweeper = Sweeper(ADDRESS, refuse, str(home))  # type: ignore[arg-type]
    assert not sweeper.sweep()
    assert sweeper.are_others_left
    leave_spool(home, b"\2" * 8, run="../escape")
    sweep_up(ADDRESS, str(tmp_path / "runs"), str(home), patience_s=0.0)
    assert len(logs_of(tmp_path / "runs")) == 1
    assert [path.name for path in home.iterdir()] == [(b"\2" * 8).hex()]
    assert list(tmp_path.rglob("escape")) == []


def test_a_torn_end_is_left_out(tmp_path: Path) -> None:
    home = tmp_path / "spool"
    leave_spool(home, b"\1" * 8)
    (segment,) = home.rglob("*.rsl")
    with segment.open("ab") as file:
        file.write(frames_of(b"\1" * 8)[0][:20])
    sweep_up(ADDRESS, str(tmp_path / "runs"), str(home), patience_s=0.0)
    assert logs_of(tmp_path / "runs") == [b"".join(frames_of(b"\1" * 8))]
    assert list(home.iterdir()) == []


def test_a_home_that_does_not_exist_is_passed_over(tmp_path: Path) -> None:
    sweeper = Sweeper(ADDRESS, Keeper(tmp_path).keep, str(tmp_path / "nowhere"))
    sweeper.watch(str(tmp_path / "neither"))
    assert not sweeper.sweep()
