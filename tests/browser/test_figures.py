"""Reading numbers: the same value in other words agrees, its neighbours do not."""

from __future__ import annotations

import pytest

from tests.browser.figures import apart, figures
from tests.browser.paper import Paper


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("145 s", "2 m 25 s"),
        ("3.5 s", "3.47 s"),
        ("5 %", "4.6 %"),
        ("< 0.1 %", "< 0.1 %"),
        ("386 s of slot time", "6 m 26 s"),
        ("-1.2 s", "\u22121.25 s"),
        ("0.46", "0.463"),
        ("q 7e-06", "q 7e-6"),
    ],
)
def test_one_value_written_twice_agrees(printed: str, shown: str) -> None:
    assert len(figures(printed)) == 1
    assert apart(printed, shown) == []


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("24 s", "25 s"),
        ("32", "33"),
        ("3.5 s", "3.56 s"),
        ("5 %", "5"),
        ("-84 ms", "+84 ms"),
        ("1.00 s", "1.20 s"),
        ("12 ms", "12.0 s"),
    ],
)
def test_other_values_do_not(printed: str, shown: str) -> None:
    assert len(apart(printed, shown)) == 1


def test_names_times_of_day_and_ids_are_no_numbers() -> None:
    assert figures("aime/13#0 host-01 14:13:20 00000200000000b2 p95") == []


def test_a_table_is_cut_at_its_columns_and_the_rest_is_left() -> None:
    lines = [
        "2 in all",
        "",
        "name   took      n",
        "a b   9.1 s      1",
        "c      12 s  ██  2",
        "end 3",
    ]
    paper = Paper("\n".join(lines))
    rows = paper.table("name", "took")
    assert [(row["name"], row["took"], row["n"]) for row in rows] == [
        ("a b", "9.1 s", "1"),
        ("c", "12 s", "2"),
    ]
    assert paper.left() == ["2 in all", "end 3"]
