from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rollscope.instrument.wholefile import replace_file, write_private

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    replace_file(path, b"old")
    replace_file(path, b"new", mode=0o644, is_synced=True)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["state.json"]


def test_a_file_is_for_its_owner_alone_unless_somebody_else_has_to_read_it(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"secret")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_replaced_stays_and_no_draft_does(tmp_path: Path) -> None:
    (tmp_path / "taken" / "deep").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        replace_file(tmp_path / "taken", b"new")
    assert os.listdir(tmp_path) == ["taken"]


def test_a_draft_that_cannot_be_finished_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="full"):
        replace_file(tmp_path / "file", b"new", is_synced=True)
    assert os.listdir(tmp_path) == []


def test_a_link_that_somebody_laid_out_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    (tmp_path / "draft").symlink_to("theirs")
    write_private(tmp_path / "draft", b"ours")
    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert not (tmp_path / "draft").is_symlink()
