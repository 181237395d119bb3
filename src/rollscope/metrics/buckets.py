"""Histogram buckets: eight for each doubling, so that a percentile read off them is within 5 %.

Bucket n holds values v with 2**((n - 1) / 8) < v <= 2**(n / 8), so each of them is within 4.5 % of
the middle, 2**((n - 0.5) / 8). Values of zero and below are kept in `ZERO_BUCKET`.
"""

import math
import sys
from collections.abc import Mapping
from typing import Final

__all__ = ["ZERO_BUCKET", "bucket_of", "bucket_rank", "bucket_upper"]

_PER_DOUBLING: Final = 8
_HIGHEST: Final = 1024 * _PER_DOUBLING
"""Holds the largest number there is, and infinity."""
ZERO_BUCKET: Final = -100_000


def bucket_of(value: float) -> int:
    """Give the bucket that holds a value."""
    if not value > 0.0:
        return ZERO_BUCKET
    value = min(value, sys.float_info.max)
    return math.ceil(math.log2(value) * _PER_DOUBLING - 1e-9)


def bucket_upper(bucket: int) -> float:
    """Give the largest value that a bucket holds."""
    if bucket == ZERO_BUCKET:
        return 0.0
    return math.inf if bucket >= _HIGHEST else 2.0 ** (bucket / _PER_DOUBLING)


def bucket_rank(buckets: Mapping[int, int], percent: int) -> float | None:
    """Give a percentile by nearest rank, as the middle of its bucket; None if there is nothing."""
    wanted = max(-(-percent * sum(buckets.values()) // 100), 1)
    for bucket, count in sorted(buckets.items()):
        wanted -= count
        if wanted <= 0:
            is_edge = bucket == ZERO_BUCKET or bucket >= _HIGHEST
            return bucket_upper(bucket) if is_edge else 2.0 ** ((bucket - 0.5) / _PER_DOUBLING)
    return None
