from __future__ import annotations

import numpy as np
import pytest

from rollscope.timeline.building import Layout, PlacedSessions
from rollscope.timeline.columns import LOST, NEVER, NO_SESSION, Part, Rows
from rollscope.timeline.growth import CannotFollow, Placed, Young
from rollscope.timeline.lanes import Lanes


def make_rows(*spans: tuple[int, int]) -> Rows:
    """Give spans of the first row of the first lane."""
    times = np.array(spans, np.int64).reshape(-1, 2)
    none = np.zeros(len(times), np.uint32)
    short, flags = none.astype(np.uint16), none.astype(np.uint8)
    return Rows(times[:, 0], times[:, 1], none, short, flags, none, short)


def make_young(*sorted_spans: tuple[int, int]) -> Young:
    """Give the young part of an index with one lane, which may hold spans already."""
    part = Part(make_rows(*sorted_spans))
    nobody = PlacedSessions(
        np.zeros(0, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, int)
    )
    depths = np.zeros(part.lines, np.uint8)
    no_depths = np.zeros(0, np.uint8)
    no_ids = np.zeros(0, np.uint64)
    return Young(Layout(Lanes(), nobody, [], [], part, depths, no_ids, Rows.none(), no_depths))


def span(start: int, end: int) -> Placed:
    return Placed(start, end, NO_SESSION, 0, 0, 0, 0, 0)


def test_what_overlaps_gets_a_row_of_its_own_and_what_does_not_shares_one() -> None:
    young = make_young((0, 10), (20, 30))
    spans = [span(10, 20), span(15, 25), span(30, NEVER), span(31, 31)]
    for one in spans:
        young.place(one, 0, None)
    assert [one.row for one in spans] == [0, 1, 0, 1]


def test_an_open_span_makes_room_when_it_ends() -> None:
    young = make_young()
    young.place(span(0, NEVER), 0, 7)
    young.end(7, 5, 0)
    later = span(5, 9)
    young.place(later, 0, None)
    assert later.row == 0


@pytest.mark.parametrize("instant", [5, 6])
def test_a_lost_span_that_ends_later_after_all_does_not_cover_what_came_next(instant: int) -> None:
    young = make_young()
    young.place(span(0, 5), 0, 7)
    young.place(span(instant, instant), 0, None)
    with pytest.raises(CannotFollow):
        young.end(7, 8, LOST)


@pytest.mark.parametrize("instant", [5, 6])
def test_nor_does_it_cover_what_is_sorted_already(instant: int) -> None:
    young = make_young((instant, instant))
    young.place(span(0, 5), 0, 7)
    with pytest.raises(CannotFollow):
        young.end(7, 8, LOST)


def test_what_has_settled_keeps_its_place_and_its_depth() -> None:
    young = make_young((0, 10))
    young.place(span(1, 4), 1, None)
    young.place(span(12, NEVER), 0, 7)
    part = Part(Rows.join([make_rows((0, 10)), young.rows().take(np.arange(1))]))
    young.settle(part)
    again = span(5, 8)
    young.place(again, 1, None)
    assert again.row == 1
    assert young.depths_in(part).tolist() == [0, 1]
