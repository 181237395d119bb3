import math
import random

import pytest

from rollscope.screens.plots import (
    bar,
    histogram,
    log_bins,
    share_bar,
    sparkline,
    stacked_bar,
)


def test_a_sparkline_rises_from_zero_to_the_highest() -> None:
    assert sparkline([0, 1, 2, 4, 8]) == "▁▁▂▄█"
    assert sparkline([0, 1, 2, 4, 8], is_unicode=False) == "__.=#"
    assert sparkline([1, None, math.nan, 1]) == "█  █"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""


def test_a_long_sparkline_keeps_its_peaks() -> None:
    values = [0.0] * 1000
    values[777] = 5.0
    line = sparkline(values, width=20)
    assert len(line) == 20
    assert line.count("█") == 1


def test_a_small_share_is_not_drawn_as_nothing() -> None:
    assert bar(0, 10) == ""
    assert bar(1e-9, 10) == "▏"
    assert bar(1e-9, 10, is_unicode=False) == "#"
    assert bar(0.5, 10) == "█████"
    assert bar(7, 10) == "█" * 10
    assert bar(math.nan, 10) == ""
    assert share_bar(1, 4, 8) == "██      "
    assert share_bar(1, 0, 4) == "    "


@pytest.mark.parametrize("seed", range(20))
def test_a_stacked_bar_is_exactly_as_long_as_it_should_be(seed: int) -> None:
    rng = random.Random(seed)
    parts = [(f"p{n}", rng.random()) for n in range(rng.randint(1, 12))]
    line, _ = stacked_bar(parts, 40)
    assert len(line) == 40
    assert len(stacked_bar(parts, 40, is_unicode=False)[0].encode("ascii")) == 40


def test_a_stacked_bar_names_its_parts() -> None:
    line, legend = stacked_bar([("generate", 3), ("tool", 1), ("none", 0)], 8)
    assert line == "██████▓▓"
    assert legend == "█ generate 75 %  ▓ tool 25 %"
    assert stacked_bar([], 8) == ("", "")


def test_bins_grow_by_equal_factors_and_hold_every_positive_value() -> None:
    values = [1, 10, 100, 1000, 0, -5, math.inf]
    bins = log_bins(values, per_decade=1)
    assert [count for _, _, count in bins] == [1, 1, 1, 1]
    assert [round(low) for low, _, _ in bins] == [1, 10, 100, 1000]
    assert log_bins([]) == []
    wide = log_bins([1e-9, 1e9])
    assert len(wide) <= 24
    assert sum(count for _, _, count in wide) == 2


def test_a_histogram_lines_up() -> None:
    assert histogram([("1 s", 10), ("10 s", 1_000)], width=8, is_unicode=False) == [
        " 1 s     10  #",
        "10 s  1,000  ########",
    ]
    assert histogram([]) == []
    assert histogram([("a", 0)]) == ["a  0"]
