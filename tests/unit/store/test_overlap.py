from __future__ import annotations

import numpy as np
import pytest

from rollscope.analysis.intervals import Interval
from rollscope.store import overlap
from rollscope.store.overlap import add_to, union_additions


def additions(*given: tuple[int, int, int]) -> list[int]:
    parents, starts, ends = (np.array(column) for column in zip(*given, strict=True))
    added: list[int] = union_additions(parents.astype(np.uint64), starts, ends).tolist()
    return added


def test_no_intervals_add_nothing() -> None:
    empty = np.zeros(0, np.int64)
    assert union_additions(empty.astype(np.uint64), empty, empty).tolist() == []


def test_children_of_different_parents_do_not_overlap() -> None:
    assert additions((1, 0, 10), (2, 0, 10)) == [10, 10]


def test_the_later_of_two_siblings_adds_what_the_earlier_left() -> None:
    assert additions((1, 5, 15), (1, 0, 10)) == [5, 10]


def test_an_interval_inside_a_longer_one_adds_nothing() -> None:
    assert additions((1, 0, 100), (1, 10, 20), (1, 30, 40), (1, 90, 110)) == [100, 0, 0, 10]


def test_a_group_does_not_reach_into_the_next() -> None:
    assert additions((1, 0, 1_000), (2, 1, 5), (2, 3, 9), (3, 0, 2)) == [1_000, 4, 4, 2]


def test_siblings_in_a_row_beside_tangled_ones_add_all_of_their_time() -> None:
    in_a_row = [(1, 0, 10), (1, 10, 20), (1, 25, 30)]
    tangled = [(2, 0, 50), (2, 10, 20), (2, 40, 60)]
    assert additions(*tangled, *in_a_row) == [50, 0, 10, 10, 10, 5]


def test_intervals_that_end_before_they_start_add_nothing() -> None:
    assert additions((1, 0, 10), (1, 20, 5), (1, 20, 30)) == [10, 0, 10]


@pytest.mark.parametrize(
    ("interval", "added", "covered"),
    [
        ((20, 30), 10, [(0, 10), (20, 30), (40, 50)]),
        ((5, 45), 30, [(0, 50)]),
        ((10, 12), 2, [(0, 12), (40, 50)]),
        ((-5, 60), 45, [(-5, 60)]),
        ((2, 3), 0, [(0, 10), (40, 50)]),
        ((30, 30), 0, [(0, 10), (40, 50)]),
        ((30, 20), 0, [(0, 10), (40, 50)]),
    ],
)
def test_an_interval_adds_what_is_not_covered(
    interval: Interval, added: int, covered: list[Interval]
) -> None:
    times: list[Interval] = [(0, 10), (40, 50)]
    assert add_to(times, interval) == added
    assert times == covered


def test_many_stretches_are_joined_from_the_earliest_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "_MOST_STRETCHES", 3)
    covered: list[Interval] = []
    for start in range(0, 100, 10):
        assert add_to(covered, (start, start + 1)) == 1
    assert covered == [(0, 71), (80, 81), (90, 91)]
