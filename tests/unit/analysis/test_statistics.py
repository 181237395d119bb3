"""The tests and estimates that comparisons rest on, refereed by scipy."""

import random
from itertools import product

import pytest
from scipy import stats

from rollscope.analysis.statistics import (
    Line,
    MedianDifference,
    average_ranks,
    benjamini_hochberg,
    cliffs_delta,
    fisher_exact,
    mad,
    mann_whitney,
    median_difference,
    theil_sen,
)


def test_cliffs_delta_tells_how_often_one_is_above_the_other() -> None:
    assert cliffs_delta([3, 4], [1, 2]) == 1.0
    assert cliffs_delta([1, 2], [3, 4]) == -1.0
    assert cliffs_delta([1, 3], [2]) == 0.0
    assert cliffs_delta([2, 3], [2, 2]) == 0.5
    assert cliffs_delta([], [1]) == 0.0


@pytest.mark.parametrize(("n", "m", "spread"), [(8, 30, 5), (8, 30, 1000), (50, 200, 3), (1, 1, 2)])
def test_mann_whitney_agrees_with_scipy(n: int, m: int, spread: int) -> None:
    source = random.Random(n * m + spread)
    first = [source.randrange(spread) for _ in range(n)]
    second = [source.randrange(spread) + spread // 4 for _ in range(m)]

    wanted = stats.mannwhitneyu(first, second, method="asymptotic").pvalue

    assert mann_whitney(first, second) == pytest.approx(wanted, rel=1e-9)


def test_mann_whitney_finds_nothing_where_there_is_nothing() -> None:
    assert mann_whitney([], [1]) == 1.0
    assert mann_whitney([2, 2], [2, 2, 2]) == 1.0


@pytest.mark.parametrize("table", list(product((0, 3, 9), (1, 14), (0, 5), (2, 40))))
def test_fisher_agrees_with_scipy_on_small_tables(table: tuple[int, int, int, int]) -> None:
    a, b, c, d = table

    wanted = stats.fisher_exact([[a, b], [c, d]]).pvalue

    assert fisher_exact(a, b, c, d) == pytest.approx(wanted, rel=1e-9)


def test_fisher_agrees_with_scipy_on_large_tables() -> None:
    wanted = stats.fisher_exact([[170, 70], [300, 4580]]).pvalue

    assert fisher_exact(170, 70, 300, 4580) == pytest.approx(wanted, rel=1e-6)


def test_benjamini_hochberg_agrees_with_scipy() -> None:
    p_values = [0.01, 0.04, 0.03, 0.005, 0.5, 0.04, 1.0]

    wanted = stats.false_discovery_control(p_values)

    assert benjamini_hochberg(p_values) == pytest.approx(list(wanted))
    assert benjamini_hochberg([]) == []


def test_theil_sen_is_not_moved_by_an_outlier() -> None:
    assert theil_sen([1, 2, 3, 4, 5], [3, 5, 7, 9, 1000]) == Line(2.0, 1.0)
    assert theil_sen([4, 4], [1, 3]) == Line(0.0, 2.0)
    assert theil_sen([], []) == Line(0.0, 0.0)


def test_median_absolute_deviation() -> None:
    assert mad([1, 1, 2, 2, 4, 6, 9]) == 1.0
    assert mad([]) == 0.0


def test_equal_values_share_their_rank() -> None:
    assert average_ranks([10, 30, 10, 20]) == [1.5, 4.0, 1.5, 3.0]


def test_a_clear_difference_of_medians_does_not_reach_across_zero() -> None:
    source = random.Random(7)
    before = [(n // 4, round(source.gauss(1000, 100))) for n in range(400)]
    after = [(task, value + 100) for task, value in before]

    found = median_difference(before, after)

    assert found is not None
    assert found.difference == 100
    assert found.low is not None
    assert found.high is not None
    assert 60 < found.low < 100 < found.high < 140
    assert found.is_clear


def _width(found: MedianDifference | None) -> int:
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_samples_of_few_tasks_say_less_than_as_many_tasks() -> None:
    source = random.Random(8)
    of_task = [round(source.gauss(1000, 100)) for _ in range(10)]
    clustered = [(n % 10, of_task[n % 10]) for n in range(400)]
    single = [(None, value) for _, value in clustered]

    narrow, wide = median_difference(single, single), median_difference(clustered, clustered)

    assert _width(wide) > 2 * _width(narrow)


def test_the_same_question_gets_the_same_answer() -> None:
    first, second = [(n, n * n % 101) for n in range(50)], [(n, n * n % 89) for n in range(60)]

    assert median_difference(first, second) == median_difference(first, second)


def test_too_few_tasks_give_a_difference_without_interval() -> None:
    found = median_difference([(1, 10), (1, 11)], [(n, 20) for n in range(9)])

    assert found is not None
    assert (found.difference, found.low, found.high) == (10, None, None)
    assert not found.is_clear
    assert median_difference([], [(1, 2)]) is None


def test_the_interval_is_as_wide_as_drawing_tasks_one_by_one_makes_it() -> None:
    source = random.Random(9)
    tasks = [[round(source.gauss(source.gauss(1000, 80), 50)) for _ in range(8)] for _ in range(60)]
    values = [(n, value) for n, samples in enumerate(tasks) for value in samples]
    drawn = []
    for _ in range(1000):
        first, second = (
            sorted(value for task in source.choices(tasks, k=len(tasks)) for value in task)
            for _ in range(2)
        )
        drawn.append(second[len(second) // 2 - 1] - first[len(first) // 2 - 1])
    drawn.sort()

    found = median_difference(values, values, resamples=1000)

    assert _width(found) == pytest.approx(drawn[974] - drawn[24], rel=0.2)
