from __future__ import annotations

import math
import random
import sys

import pytest

from rollscope.metrics.buckets import ZERO_BUCKET, bucket_of, bucket_rank, bucket_upper

VALUES = [
    *(random.Random(1).lognormvariate(0, 20) for _ in range(2000)),
    *(2.0**n for n in range(-1074, 1024, 7)),
    *(2.0 ** (n / 8) for n in range(-400, 400)),
    sys.float_info.min,
    sys.float_info.max,
    5e-324,
    1,
    7,
    10**15,
]


def test_a_bucket_holds_what_lies_above_the_one_below_it() -> None:
    for value in VALUES:
        if value < sys.float_info.min:
            continue  # below, numbers themselves are too coarse for it
        bucket = bucket_of(value)
        assert bucket_upper(bucket - 1) < value <= bucket_upper(bucket) * (1 + 1e-9)


def test_the_middle_of_a_bucket_is_within_five_percent_of_every_value_in_it() -> None:
    for value in VALUES:
        if value < sys.float_info.min:
            continue
        bucket = bucket_of(value)
        middle = math.exp2((bucket - 0.5) / 8)
        assert abs(middle - value) / value <= 0.05


def test_a_percentile_read_off_the_buckets_is_within_five_percent() -> None:
    source = random.Random(7)
    values = sorted(source.lognormvariate(3, 1.5) for _ in range(5000))
    counts: dict[int, int] = {}
    for value in values:
        counts[bucket_of(value)] = counts.get(bucket_of(value), 0) + 1
    for share in (0.5, 0.95, 0.99):
        wanted, seen = int(share * len(values)), 0
        for bucket in sorted(counts):
            seen += counts[bucket]
            if seen > wanted:
                break
        assert math.exp2((bucket - 0.5) / 8) == pytest.approx(values[wanted], rel=0.05)


def test_larger_values_never_lie_in_lower_buckets() -> None:
    buckets = [bucket_of(value) for value in sorted([*VALUES, 0.0, -1.0, math.inf])]
    assert buckets == sorted(buckets)


@pytest.mark.parametrize("value", [0.0, -0.0, -1.0, -math.inf, math.nan])
def test_what_is_not_above_zero_has_a_bucket_of_its_own(value: float) -> None:
    assert bucket_of(value) == ZERO_BUCKET
    assert bucket_upper(ZERO_BUCKET) == 0.0


def test_infinity_lies_in_the_highest_bucket() -> None:
    assert bucket_of(math.inf) == bucket_of(sys.float_info.max)
    assert bucket_upper(bucket_of(math.inf)) == math.inf


def test_an_upper_edge_lies_in_its_own_bucket() -> None:
    for bucket in range(-800, 800):
        assert bucket_of(bucket_upper(bucket)) == bucket


def test_a_rank_is_the_middle_of_its_bucket() -> None:
    buckets = {bucket_of(1.0): 50, bucket_of(8.0): 45, bucket_of(100.0): 5}
    found = [bucket_rank(buckets, percent) for percent in (1, 50, 51, 95, 96, 100)]
    assert found == pytest.approx([1, 1, 8, 8, 100, 100], rel=0.05)


def test_ranks_at_the_edges_are_what_the_buckets_can_tell() -> None:
    assert bucket_rank({ZERO_BUCKET: 1}, 50) == 0.0
    assert bucket_rank({bucket_of(math.inf): 1}, 50) == math.inf
    assert bucket_rank({}, 50) is None
