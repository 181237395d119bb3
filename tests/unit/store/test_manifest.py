from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.errors import UnknownSchema
from rollscope.store.followedlog import LogState
from rollscope.store.intake import IntakeState
from rollscope.store.manifest import Manifest, Shelf
from rollscope.store.schema import SEGMENT_SCHEMA
from rollscope.store.segments import Segment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def segment(name: str) -> Segment:
    return Segment(
        table="spans", file=f"{name}.parquet", rows=1, size=4, crc=0, columns=["span_id"]
    )


def publish(shelf: Shelf, number: int, *names: str) -> bool:
    for name in names:
        (shelf.folder / f"{name}.parquet").write_bytes(b"PAR1")
    state = IntakeState(logs={"a.rsl": LogState(offset=number)})
    return shelf.publish(Manifest(number=number, segments=[segment(n) for n in names]), state)


def files(shelf: Shelf) -> set[str]:
    return {path.name for path in shelf.folder.iterdir()}


def age(shelf: Shelf, *, hours: int = 1) -> None:
    """Let every file be older than the time of grace."""
    past = time.time() - hours * 3600
    for path in shelf.folder.iterdir():
        os.utime(path, (past, past))


def test_an_empty_shelf_holds_an_empty_manifest(shelf: Shelf) -> None:
    loaded = shelf.load()
    assert (loaded.manifest.number, loaded.manifest.segments, loaded.problems) == (0, [], [])
    assert shelf.newest() == 0


def test_the_newest_manifest_is_loaded_with_its_state(shelf: Shelf) -> None:
    assert publish(shelf, 1, "a")
    assert publish(shelf, 2, "a", "b")
    loaded = shelf.load()
    assert [s.file for s in loaded.manifest.segments] == ["a.parquet", "b.parquet"]
    assert loaded.state.logs["a.rsl"].offset == 2
    assert not any(name.endswith(".tmp") for name in files(shelf))


def test_of_two_that_publish_one_number_the_first_wins(shelf: Shelf) -> None:
    assert publish(shelf, 1, "a")
    before = files(shelf) | {"b.parquet"}
    assert not publish(shelf, 1, "b")
    assert files(shelf) == before
    assert [s.file for s in shelf.load().manifest.segments] == ["a.parquet"]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe\x00", b"[]", b'{"number":"x"}', b"\x00" * 9]
)
def test_a_manifest_that_cannot_be_read_gives_way_to_the_one_before(
    shelf: Shelf, data: bytes
) -> None:
    publish(shelf, 1, "a")
    publish(shelf, 2, "a", "b")
    (shelf.folder / "manifest-00000002.json").write_bytes(data)
    loaded = shelf.load()
    assert [s.file for s in loaded.manifest.segments] == ["a.parquet"]
    assert loaded.state.logs["a.rsl"].offset == 1
    assert "manifest-00000002.json cannot be used" in loaded.problems[0]
    # What is published next has to be the newest.
    assert loaded.manifest.number == 2


@pytest.mark.parametrize("data", [None, b"", b"\xc1", b"\x93\x01"])
def test_a_manifest_without_its_state_gives_way_to_the_one_before(
    shelf: Shelf, data: bytes | None
) -> None:
    publish(shelf, 1, "a")
    publish(shelf, 2, "a", "b")
    path = shelf.folder / shelf.load().manifest.state
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    loaded = shelf.load()
    assert loaded.state.logs["a.rsl"].offset == 1
    assert len(loaded.problems) == 1


def test_a_manifest_of_a_newer_version_is_refused(shelf: Shelf) -> None:
    manifest = Manifest(number=1, schema=SEGMENT_SCHEMA + 1)
    (shelf.folder / "manifest-00000001.json").write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(UnknownSchema, match="upgrade rollscope"):
        shelf.load()


def test_files_of_other_names_are_no_manifests(shelf: Shelf) -> None:
    (shelf.folder / "manifest-old.json").touch()
    (shelf.folder / "manifest-.json").touch()
    assert shelf.numbers() == []


def test_a_manifest_that_cannot_be_written_leaves_nothing_behind(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: object, target: object) -> None:
        raise OSError(errno.EPERM, "links are not allowed")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(OSError, match="not allowed"):
        publish(shelf, 1)
    assert files(shelf) == set()


def test_sweeping_keeps_what_recent_manifests_name_and_what_is_young(shelf: Shelf) -> None:
    for number in range(1, 8):
        publish(shelf, number, f"s{number}")
    age(shelf)
    for name in ("orphan.parquet", "young.parquet", "left.tmp", "notes.txt"):
        (shelf.folder / name).touch()
    for name in ("orphan.parquet", "left.tmp", "notes.txt"):
        os.utime(shelf.folder / name, (1, 1))
    shelf.sweep()
    left = files(shelf)
    assert {f"s{number}.parquet" for number in range(4, 8)} <= left
    assert not {"s1.parquet", "s3.parquet", "orphan.parquet", "left.tmp"} & left
    assert {"young.parquet", "notes.txt"} <= left
    assert shelf.numbers() == [7, 6, 5, 4]
    assert len([name for name in left if name.endswith(".state")]) == 4


def test_a_damaged_segment_is_set_aside_and_not_lost(shelf: Shelf) -> None:
    publish(shelf, 1, "a")
    aside = shelf.set_aside(segment("a"))
    assert aside.read_bytes() == b"PAR1"
    assert not (shelf.folder / "a.parquet").exists()
    assert shelf.set_aside(segment("a")) == aside  # the second reader to find it
