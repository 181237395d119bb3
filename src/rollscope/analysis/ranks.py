"""Percentiles by nearest rank: each is a value that really occurred, so it can be opened."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

__all__ = [
    "NEEDED_FOR_P95",
    "NEEDED_FOR_P99",
    "Ranks",
    "median",
    "nearest_rank",
    "rank_of",
    "ranks",
]

NEEDED_FOR_P95 = 20
NEEDED_FOR_P99 = 100

T = TypeVar("T")


class Ranks(msgspec.Struct, frozen=True):
    """Percentiles of some lengths; one that too few values carry is None, the maximum is not."""

    count: int
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    max_ns: int | None


def rank_of(percent: int, count: int) -> int:
    """Give the position, from 1, of a percentile among `count` sorted values: ceil(p * n)."""
    return max(-(-percent * count // 100), 1)


def nearest_rank(ordered: Sequence[T], percent: int) -> T:
    """Give the percentile of sorted values.

    Raises:
        IndexError: There are none.
    """
    return ordered[rank_of(percent, len(ordered)) - 1]


def median(values: Sequence[int]) -> int:
    """Give the median by nearest rank, the lower of the two middle ones."""
    return nearest_rank(sorted(values), 50)


def ranks(values: Sequence[int]) -> Ranks:
    """Give the percentiles that are carried by enough values."""
    ordered = sorted(values)
    count = len(ordered)
    return Ranks(
        count=count,
        p50_ns=nearest_rank(ordered, 50) if count else None,
        p95_ns=nearest_rank(ordered, 95) if count >= NEEDED_FOR_P95 else None,
        p99_ns=nearest_rank(ordered, 99) if count >= NEEDED_FOR_P99 else None,
        max_ns=ordered[-1] if count else None,
    )
