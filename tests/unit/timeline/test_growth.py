from __future__ import annotations

import numpy as np
import pytest

from rollscope.timeline.building import Layout, PlacedSessions
from rollscope.timeline.columns import LOST, NEVER, Part, Rows
from rollscope.timeline.growth import CannotFollow, Growth, News, rows_of
from rollscope.timeline.lanes import Lanes

Span = tuple[int, int]


def make_rows(*spans: Span) -> Rows:
    """Give spans of the first row of the first lane."""
    times = np.array(spans, np.int64).reshape(-1, 2)
    none = np.zeros(len(times), np.uint32)
    short, flags = none.astype(np.uint16), none.astype(np.uint8)
    return Rows(times[:, 0], times[:, 1], none, short, flags, none, short)


def make_growth(*sorted_spans: Span) -> Growth:
    """Give the growth of an index with one lane, which may hold spans already."""
    part = Part(make_rows(*sorted_spans))
    nobody = PlacedSessions(
        np.zeros(0, np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, int)
    )
    depths = np.zeros(part.lines, np.uint8)
    no_depths = np.zeros(0, np.uint8)
    no_ids = np.zeros(0, np.uint64)
    return Growth(Layout(Lanes(), nobody, [], [], part, depths, no_ids, Rows.none(), no_depths))


def place(growth: Growth, *spans: Span, depth: int = 0, open_id: int = 0) -> list[int]:
    """Place spans that come at once, and give their rows; all are final, or one is open."""
    ids = np.full(len(spans), open_id, np.uint64)
    depths = np.full(len(spans), depth, np.uint8)
    news = News(ids, make_rows(*spans), depths, np.full(len(spans), not open_id))
    growth.place(news)
    rows: list[int] = news.rows.row.tolist()
    return rows


def test_what_overlaps_gets_a_row_of_its_own_and_what_does_not_shares_one() -> None:
    growth = make_growth((0, 10), (20, 30))
    assert place(growth, (10, 20), (15, 25), (30, 40), (31, 31)) == [0, 1, 0, 1]


@pytest.mark.parametrize("is_at_once", [True, False])
def test_what_comes_late_fills_gaps_whether_it_comes_at_once_or_not(is_at_once: bool) -> None:
    growth = make_growth((0, 10), (20, 30), (50, 60))
    late = [(12, 18), (32, 40), (41, 55), (42, 43), (60, 70)]
    rows = place(growth, *late) if is_at_once else [place(growth, one)[0] for one in late]
    assert rows == [0, 0, 1, 0, 0]


def test_instants_share_a_row_with_what_begins_or_ends_then() -> None:
    growth = make_growth((0, 10))
    assert place(growth, (20, 30), (20, 20), (10, 10), (30, 30)) == [0, 0, 0, 0]
    starts, ends = growth.recent.start.tolist(), growth.recent.end.tolist()
    assert list(zip(starts, ends, strict=True)) == [(10, 10), (20, 20), (20, 30), (30, 30)]


def test_an_open_span_makes_room_when_it_ends() -> None:
    growth = make_growth()
    place(growth, (0, NEVER), open_id=7)
    assert place(growth, (1, 2)) == [1]
    growth.end(7, 5, 0)
    assert place(growth, (5, 9)) == [0]


@pytest.mark.parametrize("instant", [5, 6])
def test_a_lost_span_that_ends_later_after_all_does_not_cover_what_came_next(instant: int) -> None:
    growth = make_growth()
    place(growth, (0, 5), open_id=7)
    place(growth, (instant, instant))
    with pytest.raises(CannotFollow):
        growth.end(7, 8, LOST)


def test_nor_does_it_cover_what_ends_at_the_same_look() -> None:
    growth = make_growth()
    place(growth, (0, 5), open_id=7)
    place(growth, (6, NEVER), open_id=8)
    growth.end(8, 9, 0)
    with pytest.raises(CannotFollow):
        growth.end(7, 8, LOST)


@pytest.mark.parametrize("instant", [5, 6])
def test_nor_does_it_cover_what_is_sorted_already(instant: int) -> None:
    growth = make_growth((instant, instant))
    place(growth, (0, 5), open_id=7)
    with pytest.raises(CannotFollow):
        growth.end(7, 8, LOST)


def test_what_was_merged_keeps_its_place_and_its_depth() -> None:
    growth = make_growth((0, 10))
    place(growth, (1, 4), depth=1)
    place(growth, (12, NEVER), open_id=7)
    growth.merge()
    assert len(growth.recent) == 0
    assert place(growth, (2, 3), (5, 8), depth=1) == [2, 1]
    assert growth.depths_in(growth.recent).tolist() == [1, 1]


def test_a_row_on_which_only_an_open_span_stands_keeps_its_depth_when_others_are_merged() -> None:
    growth = make_growth((0, 10))
    place(growth, (2, NEVER), depth=3, open_id=7)
    place(growth, (12, 14))
    growth.merge()
    assert growth.depths_in(Part(rows_of([*growth.open.values()]))).tolist() == [3]
