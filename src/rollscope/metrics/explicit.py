"""Histograms with bounds of their own in terms of ours, with eight buckets for each doubling."""

import math
from collections.abc import Sequence

from rollscope.metrics.buckets import bucket_of

__all__ = ["explicit_buckets"]


def explicit_buckets(
    bounds: Sequence[float], counts: Sequence[int], least: float | None, most: float | None
) -> dict[int, int]:
    """Give the counts between explicit bounds, each at the middle of its bucket.

    Args:
        bounds: Upper bounds in rising order; the last bucket has none.
        counts: One more than bounds, or none.
        least: The least value, if known.
        most: The greatest value, if known.
    """
    buckets: dict[int, int] = {}
    for place, count in enumerate(counts):
        if not count:
            continue
        low = bounds[place - 1] if 0 < place <= len(bounds) else None
        high = bounds[place] if place < len(bounds) else None
        bucket = bucket_of(_middle(low, high, least, most))
        buckets[bucket] = buckets.get(bucket, 0) + count
    return buckets


def _middle(
    low: float | None, high: float | None, least: float | None, most: float | None
) -> float:
    """Give a value that stands for a bucket, narrowed to what values there are."""
    if least is not None and (low is None or least > low):
        low = least
    if most is not None and (high is None or most < high):
        high = most
    if high is None or math.isinf(high):
        return low if low is not None else 0.0
    if low is None:
        return high / 2
    return math.sqrt(low) * math.sqrt(high) if low > 0 and high > 0 else (low + high) / 2
