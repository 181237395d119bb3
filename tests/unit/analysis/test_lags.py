"""Percentiles read off the buckets of a histogram."""

from collections import Counter
from random import Random

import pytest

from rollscope.analysis.lags import merge_buckets, rank_ns
from rollscope.analysis.ranks import nearest_rank
from rollscope.metrics.buckets import bucket_of


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_a_percentile_is_within_five_percent_of_the_truth(percent: int) -> None:
    random = Random(3)
    values = [random.lognormvariate(-4, 2) for _ in range(400)]
    halves = (Counter(map(bucket_of, values[:150])), Counter(map(bucket_of, values[150:])))
    found = rank_ns(merge_buckets(halves), percent)
    truth = nearest_rank(sorted(values), percent) * 1e9
    assert found is not None
    assert found == pytest.approx(truth, rel=0.05)


def test_a_histogram_without_values_has_no_percentile() -> None:
    assert rank_ns({}, 99) is None
