"""Payloads are found by their spans, in the frames that hold them and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollscope.model.batch import SCHEMA_VERSION, Batch, Payload, encode_batch
from rollscope.model.frames import pack_frame
from rollscope.store.payloads import PayloadIndex
from tests.builders import EPOCH, LINE, PROCESS

TRACE = b"\x01" * 16


def frame(number: int, *payloads: tuple[int, str]) -> bytes:
    held = [Payload(TRACE, span_id, number, "m", text, False) for span_id, text in payloads]
    batch = Batch(SCHEMA_VERSION, PROCESS, number, number, LINE, payloads=held)
    return pack_frame(encode_batch(batch))


def log(run: Path, name: str = "a.rsl") -> Path:
    folder = run / "payloads"
    folder.mkdir(exist_ok=True)
    return folder / name


def texts(index: PayloadIndex, *span_ids: int) -> list[str]:
    index.refresh()
    return [one.text for one in index.find(span_ids)]


def test_a_run_without_payloads_has_none(tmp_path: Path) -> None:
    index = PayloadIndex(tmp_path)
    assert texts(index, 1) == []
    assert not index.has_any


def test_payloads_come_in_order_of_time_from_all_logs(tmp_path: Path) -> None:
    log(tmp_path).write_bytes(frame(1, (7, "one"), (8, "other")) + frame(3, (7, "three")))
    log(tmp_path, "b.rsl").write_bytes(frame(2, (2**64 - 1, "two")))
    index = PayloadIndex(tmp_path)
    assert texts(index, 7, 2**64 - 1, 99) == ["one", "two", "three"]
    (found,) = index.find([8])
    assert (found.time_ns, found.process, found.span_id) == (EPOCH + 1, 1, 8)


def test_what_is_added_is_found_and_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    path = log(tmp_path)
    first, second = frame(1, (1, "one")), frame(2, (2, "two"))
    path.write_bytes(first + second[:20])
    index = PayloadIndex(tmp_path)
    assert texts(index, 1, 2) == ["one"]
    # What stands before is spoilt: reading it again would show.
    path.write_bytes(b"\0" * len(first) + second)
    assert texts(index, 2) == ["two"]
    assert texts(index, 1) == []


def test_damage_is_stepped_over(tmp_path: Path) -> None:
    good = frame(2, (1, "kept"))
    log(tmp_path).write_bytes(frame(1, (1, "lost"))[:-3] + b"RSF1 junk" + good + frame(3, (1, "x")))
    log(tmp_path, "b.rsl").write_bytes(pack_frame(b"no batch at all"))
    assert texts(PayloadIndex(tmp_path), 1) == ["kept", "x"]


@pytest.mark.parametrize("most_ids", [0, 3, 100])
def test_beyond_its_bound_the_index_knows_ranges_and_finds_the_same(
    tmp_path: Path, most_ids: int
) -> None:
    frames = [frame(n, (10 * n, f"{n}"), (10 * n + 5, "twin")) for n in range(10)]
    log(tmp_path).write_bytes(b"".join(frames))
    index = PayloadIndex(tmp_path, most_ids=most_ids)
    assert texts(index, 30, 31, 70) == ["3", "7"]
    assert texts(index, 31) == []


def test_only_frames_that_hold_a_span_are_read(tmp_path: Path) -> None:
    frames = [frame(n, (n, f"{n}")) for n in range(1, 101)]
    path = log(tmp_path)
    path.write_bytes(b"".join(frames))
    index = PayloadIndex(tmp_path)
    index.refresh()
    # All but the one frame is gone.
    before = sum(map(len, frames[:41]))
    path.write_bytes(b"\0" * before + frames[41] + b"\0" * sum(map(len, frames[42:])))
    assert [one.text for one in index.find([42])] == ["42"]


def test_reading_stops_once_enough_text_is_found(tmp_path: Path) -> None:
    log(tmp_path).write_bytes(b"".join(frame(n, (1, "x" * 100)) for n in range(10)))
    index = PayloadIndex(tmp_path)
    index.refresh()
    assert len(index.find([1], most_chars=250)) == 3
    assert len(index.find([1])) == 10


def test_a_frame_larger_than_a_piece_is_read_whole(tmp_path: Path) -> None:
    large = "x" * (17 * 1024 * 1024)
    log(tmp_path).write_bytes(frame(1, (1, large)) + frame(2, (2, "after")))
    index = PayloadIndex(tmp_path)
    assert texts(index, 2) == ["after"]
    assert len(texts(index, 1)[0]) == len(large)
