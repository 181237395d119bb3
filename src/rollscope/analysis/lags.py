"""Percentiles of recorded histograms, read off their buckets: within 5 % of the truth."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from rollscope.analysis.ranks import rank_of
from rollscope.metrics.buckets import bucket_upper

__all__ = ["merge_buckets", "rank_ns"]

_SECOND: Final = 1_000_000_000
_TO_MIDDLE: Final = 2 ** (-1 / 16)
"""From the upper end of a bucket to its middle, which all values in it are within 4.5 % of."""
_LONGEST_S: Final = 1e9


def merge_buckets(histograms: Iterable[Mapping[int, int]]) -> Counter[int]:
    """Add histograms up."""
    merged: Counter[int] = Counter()
    for buckets in histograms:
        merged.update(buckets)
    return merged


def rank_ns(buckets: Mapping[int, int], percent: int) -> int | None:
    """Give a percentile of values in seconds by nearest rank; None if there are no values."""
    total = sum(buckets.values())
    if not total:
        return None
    left = rank_of(percent, total)
    for bucket in sorted(buckets):
        left -= buckets[bucket]
        if left <= 0:
            return round(min(bucket_upper(bucket) * _TO_MIDDLE, _LONGEST_S) * _SECOND)
    return None
