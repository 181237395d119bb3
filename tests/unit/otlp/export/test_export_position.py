from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.errors import CommandError
from rollscope.otlp.export.position import Position, SeriesState
from rollscope.store.followedlog import LogState
from rollscope.store.intake import IntakeState

if TYPE_CHECKING:
    from pathlib import Path


def again(path: Path) -> Position:
    return Position("run", "there", path)


def test_what_was_taken_is_known_to_the_next_program(tmp_path: Path) -> None:
    path = tmp_path / "position"
    first = again(path)
    first.note([7, 2**64 - 1])
    first.pending = {5}
    first.save()
    first.note([9])
    second = again(path)
    assert [one for one in (7, 8, 9, 2**64 - 1) if second.is_taken(one)] == [7, 9, 2**64 - 1]
    assert second.pending == {5}
    assert second.intake is None


def test_ids_are_forgotten_once_everything_before_was_taken(tmp_path: Path) -> None:
    path = tmp_path / "position"
    first = again(path)
    first.note([7])
    first.lost = {8}
    first.series["tokens"] = SeriesState(1, 2.5, 3, buckets={4: 5})
    first.settle(IntakeState(logs={"a.rsl": LogState(offset=100)}))
    second = again(path)
    assert second.intake is not None
    assert second.intake.logs["a.rsl"].offset == 100
    assert second.series == {"tokens": SeriesState(1, 2.5, 3, buckets={4: 5})}
    assert not second.is_taken(7)
    assert second.is_taken(8), "it was sent as lost"


def test_half_an_id_at_the_end_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "position"
    again(path).note([7, 8])
    path.write_bytes(path.read_bytes()[:-3])
    torn = again(path)
    assert torn.is_taken(7)
    assert not torn.is_taken(8)
    torn.note([9])
    assert again(path).is_taken(9)


@pytest.mark.parametrize("content", [b"", b"something else", b"rollscope export position 1\n\x00"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "position"
    path.write_bytes(content)
    with pytest.raises(CommandError, match="--state"):
        again(path)
    assert path.read_bytes() == content


def test_the_position_of_another_export_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "position"
    again(path).save()
    with pytest.raises(CommandError, match="exporting run to there"):
        Position("run", "elsewhere", path)


def test_without_a_file_nothing_is_kept(tmp_path: Path) -> None:
    position = Position("run", "there")
    position.note([7])
    position.settle(IntakeState())
    assert list(tmp_path.iterdir()) == []
    assert position.intake is not None
