from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from rollscope.instrument.sinks.spool import SEGMENT_BYTES, Spool
from rollscope.instrument.sinks.spooldir import Destination, spooled_bytes
from rollscope.model.frames import pack_frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TO = Destination("http://head:7077", "a-run", "00" * 8, "node", 42, {"lr": "1e-5"})
SMALL = 64 * 1024


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / TO.process)


@pytest.fixture
def spool(place: str) -> Iterator[Spool]:
    spool = Spool.make(place, TO, SMALL)
    yield spool
    spool.let_go()


def frame(number: int, size: int = 100) -> bytes:
    return pack_frame(b"%08d" % number + bytes(size))


def take_all(spool: Spool, most: int = 1024 * 1024) -> bytes:
    taken = b""
    while data := spool.peek(most):
        spool.take()
        taken += data
    return taken


def claimed(place: str) -> Spool:
    spool = Spool.claim(place)
    assert spool is not None
    return spool


def test_frames_come_out_in_the_order_they_went_in(spool: Spool) -> None:
    frames = [frame(number) for number in range(10)]
    for data in frames:
        spool.write(data)
    assert spool.waiting_bytes == sum(map(len, frames))
    assert take_all(spool) == b"".join(frames)
    assert spool.waiting_bytes == 0
    assert spool.peek(1) == b""


def test_a_piece_holds_whole_frames_up_to_the_size_asked_for(spool: Spool) -> None:
    frames = [frame(number, 30_000) for number in range(6)]
    for data in frames:
        spool.write(data)
    pieces = []
    while data := spool.peek(70_000):
        pieces.append(data)
        spool.take()
    assert pieces == [b"".join(frames[at : at + 2]) for at in (0, 2, 4)]


def test_a_frame_that_is_larger_than_asked_for_comes_alone(spool: Spool) -> None:
    large = frame(0, 300_000)
    spool.write(large)
    spool.write(frame(1))
    assert spool.peek(100_000) == large


def test_what_was_not_taken_comes_again(spool: Spool) -> None:
    spool.write(frame(0))
    assert spool.peek(1000) == spool.peek(1000) == frame(0)


def test_delivered_segments_are_removed(spool: Spool, place: str) -> None:
    for number in range(100):
        spool.write(frame(number, 10_000))
    assert spooled_bytes(place) == spool.disk_bytes > 15 * SMALL
    take_all(spool)
    assert spooled_bytes(place) == spool.disk_bytes < SMALL


def test_a_segment_that_is_still_written_is_given_up_once_it_is_delivered(
    spool: Spool, place: str
) -> None:
    spool.write(frame(0, SMALL // 2))
    take_all(spool)
    assert spooled_bytes(place) == 0
    spool.write(frame(1))
    assert take_all(spool) == frame(1)


def test_nothing_is_left_of_a_spool_that_was_delivered(spool: Spool, place: str) -> None:
    spool.write(frame(0))
    take_all(spool)
    spool.release()
    assert not os.path.exists(place)


def test_a_spool_of_the_living_cannot_be_claimed(spool: Spool, place: str) -> None:
    spool.write(frame(0))
    assert Spool.claim(place) is None


def test_who_claims_a_spool_goes_on_where_its_writer_was(spool: Spool, place: str) -> None:
    for number in range(20):
        spool.write(frame(number, 10_000))
    spool.peek(40_000)
    spool.take()
    left = spool.waiting_bytes
    spool.let_go()

    heir = claimed(place)
    assert heir.to == TO
    assert heir.waiting_bytes == left
    assert Spool.claim(place) is None
    taken = take_all(heir, 40_000)
    assert len(taken) == left
    assert taken.endswith(frame(19, 10_000))
    heir.release()
    assert not os.path.exists(place)


def test_what_an_heir_does_not_deliver_stays_for_the_next(spool: Spool, place: str) -> None:
    for number in range(20):
        spool.write(frame(number, 10_000))
    spool.release()
    first = claimed(place)
    first.peek(SMALL)
    first.take()
    first.release()
    second = claimed(place)
    assert second.waiting_bytes == first.waiting_bytes > 0
    second.let_go()


@pytest.mark.parametrize(
    "tail", [b"R", b"RSF1", frame(9)[:-1], bytes(5000), b"RSF1" + b"\xff" * 50]
)
def test_a_torn_end_is_stepped_over(spool: Spool, place: str, tail: bytes) -> None:
    spool.write(frame(0))
    spool.let_go()
    with open(os.path.join(place, "00000000.rsl"), "ab") as file:
        file.write(tail)
    heir = claimed(place)
    assert take_all(heir) == frame(0)
    assert heir.waiting_bytes == 0
    heir.release()
    assert not os.path.exists(place)


def test_damage_in_the_middle_costs_only_what_it_hit(spool: Spool, place: str) -> None:
    for number in range(3):
        spool.write(frame(number))
    spool.let_go()
    with open(os.path.join(place, "00000000.rsl"), "r+b") as file:
        file.seek(len(frame(0)) + 50)
        file.write(b"\xff")
    heir = claimed(place)
    assert take_all(heir) == frame(0) + frame(2)
    heir.release()


@pytest.mark.parametrize("noted", [b"", b"what", b"0 999999999\n", b"7", b"99 0\n", b"99 9\n"])
def test_a_damaged_note_of_what_was_taken_is_no_harm(
    spool: Spool, place: str, noted: bytes
) -> None:
    spool.write(frame(0))
    spool.let_go()
    with open(os.path.join(place, "taken"), "wb") as file:
        file.write(noted)
    heir = claimed(place)
    assert take_all(heir) == frame(0)
    heir.release()


def test_refused_frames_are_kept_apart_and_the_rest_goes_on(spool: Spool, place: str) -> None:
    spool.write(frame(0))
    refused = spool.peek(1000)
    kept = spool.set_aside(refused)
    spool.write(frame(1))
    assert take_all(spool) == frame(1)
    spool.release()
    assert kept is not None
    assert os.path.dirname(os.path.dirname(kept)) == place
    with open(kept, "rb") as file:
        assert file.read() == frame(0)
    heir = claimed(place)
    assert heir.waiting_bytes == 0
    heir.let_go()


def test_a_spool_that_somebody_removed_is_made_again(spool: Spool, place: str) -> None:
    spool.write(frame(0))
    shutil.rmtree(place)
    assert take_all(spool) == b""
    assert spool.waiting_bytes == 0
    spool.write(frame(1))
    assert take_all(spool) == frame(1)
    assert Spool.claim(place) is None


def test_a_program_that_closes_our_descriptors_loses_nothing(spool: Spool, place: str) -> None:
    spool.write(frame(0))
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
        if target.startswith(place):
            os.close(int(name))
    spool.write(frame(1))
    assert take_all(spool) == frame(0) + frame(1)
    assert Spool.claim(place) is None


def test_a_frame_takes_one_look_at_the_files(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.write(frame(0))
    looks: list[int] = []
    look = os.fstat

    def count(descriptor: int) -> os.stat_result:
        looks.append(descriptor)
        return look(descriptor)

    monkeypatch.setattr(os, "fstat", count)
    for number in range(1, 11):
        spool.write(frame(number))
    assert len(looks) == 10


def test_a_spool_whose_making_was_cut_short_is_cleared_away(place: str) -> None:
    os.makedirs(place)
    with open(os.path.join(place, "lock"), "wb"):
        pass
    assert Spool.claim(place) is None
    assert not os.path.exists(place)


def test_a_spool_that_does_not_say_where_it_belongs_keeps_its_frames(
    spool: Spool, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.write(frame(0))
    spool.let_go()
    with monkeypatch.context() as patched:  # as where no descriptor is left to read it with
        patched.setattr("rollscope.instrument.sinks.spool.read_destination", lambda _: None)
        assert Spool.claim(place) is None
    heir = claimed(place)
    assert take_all(heir) == frame(0)
    heir.release()


def test_segments_are_of_moderate_size(place: str) -> None:
    spool = Spool.make(place, TO)
    for number in range(6):
        spool.write(frame(number, 1024 * 1024))
    sizes = [os.path.getsize(os.path.join(place, f"0000000{at}.rsl")) for at in range(2)]
    assert max(sizes) <= SEGMENT_BYTES
    take_all(spool)
    spool.release()
