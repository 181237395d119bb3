"""Foreign histogram buckets in terms of ours, which have eight for each doubling."""

import math
from collections.abc import Sequence
from typing import Final

from rollscope.metrics.buckets import ZERO_BUCKET
from rollscope.metrics.explicit import explicit_buckets

__all__ = ["explicit_buckets", "exponential_buckets"]

_PER_DOUBLING: Final = 8
_MOST_DOUBLINGS: Final = 1024.0


def exponential_buckets(
    scale: int, zeros: int, offset: int, counts: Sequence[int], negatives: int
) -> dict[int, int]:
    """Give the counts of an exponential histogram.

    Args:
        scale: Buckets for each doubling, as a power of two.
        zeros: How many values are zero.
        offset: The number of the first bucket.
        counts: Of the positive buckets.
        negatives: How many values are below zero; ours are counted with zero.
    """
    buckets: dict[int, int] = {}
    _add(buckets, ZERO_BUCKET, zeros + negatives)
    for place, count in enumerate(counts):
        if not count:
            continue
        try:
            doublings = math.ldexp(offset + place + 0.5, -scale)
        except OverflowError:
            doublings = math.copysign(_MOST_DOUBLINGS, offset + place + 0.5)
        doublings = min(max(doublings, -_MOST_DOUBLINGS), _MOST_DOUBLINGS)
        _add(buckets, math.ceil(doublings * _PER_DOUBLING - 1e-9), count)
    return buckets


def _add(buckets: dict[int, int], bucket: int, count: int) -> None:
    if count:
        buckets[bucket] = buckets.get(bucket, 0) + count
