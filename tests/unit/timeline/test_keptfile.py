"""Files of columns are read back as they were written, and never otherwise."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from rollscope.timeline.keptfile import Columns, Unreadable, read_columns, write_columns


class About(msgspec.Struct):
    what: str


COLUMNS: Columns = {
    "numbers": np.arange(40, dtype=np.int64) ** 3,
    "none": np.zeros(0, np.uint16),
    "flags": np.array([True, False, True]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_columns(tmp_path / "some.index", About("cubes"), COLUMNS)
    return tmp_path / "some.index"


def test_columns_come_back_as_they_were(path: Path) -> None:
    about, found = read_columns(path, About)
    assert about == About("cubes")
    assert list(found) == list(COLUMNS)
    for name, column in COLUMNS.items():
        assert found[name].dtype == column.dtype
        np.testing.assert_array_equal(found[name], column)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_file_that_is_cut_or_has_any_bit_flipped_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    broken = [whole[:length] for length in range(len(whole))] + [whole + b"\0"]
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        broken.append(bytes(flipped))
    for data in broken:
        path.write_bytes(data)
        with pytest.raises(Unreadable):
            read_columns(path, About)


def test_a_file_about_something_else_is_refused(path: Path) -> None:
    class Other(msgspec.Struct):
        how: int

    with pytest.raises(Unreadable):
        read_columns(path, Other)


def test_a_write_that_fails_leaves_what_was_there(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(PermissionError):
        write_columns(path, About("squares"), {})
    assert read_columns(path, About)[0] == About("cubes")
    assert [one.name for one in path.parent.iterdir()] == [path.name]
