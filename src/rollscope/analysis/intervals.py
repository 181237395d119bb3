"""Intervals of time and what can be said of many: union, sum, and a fair division.

An interval is `(start, end)` in whole nanoseconds, the end not included. One whose end is not after
its start is empty.
"""

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

__all__ = ["Interval", "clip", "divide", "merge", "sum_ns", "union_ns"]

Interval = tuple[int, int]
K = TypeVar("K", bound=Hashable)


def merge(intervals: Iterable[Interval]) -> list[Interval]:
    """Give the same stretch of time as sorted intervals that neither overlap nor touch."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def sum_ns(intervals: Iterable[Interval]) -> int:
    """Add up the lengths; what overlaps counts as often as it is covered."""
    return sum(max(end - start, 0) for start, end in intervals)


def union_ns(intervals: Iterable[Interval]) -> int:
    """Give the length of the time covered; what overlaps counts once."""
    return sum_ns(merge(intervals))


def clip(intervals: Iterable[Interval], whole: Interval) -> list[Interval]:
    """Give what lies within `whole`."""
    low, high = whole
    clipped = ((max(start, low), min(end, high)) for start, end in intervals)
    return [(start, end) for start, end in clipped if start < end]


def divide(
    claims: Mapping[K, Interval], whole: Interval, inside_of: Mapping[K, K]
) -> tuple[dict[K, int], int]:
    """Divide a stretch of time among those who claim it, to the last nanosecond.

    Each instant goes in equal parts to the innermost claims that cover it: a claim gets nothing
    while another one inside of it is open. Nanoseconds that cannot be divided go to the claims
    that come first.

    Args:
        claims: Who claims which time.
        whole: The time to divide.
        inside_of: Who lies inside of whom, if at all.

    Returns:
        The share of each claim, and what nobody claims; together exactly the length of `whole`.
    """
    clipped = {key: clip([interval], whole) for key, interval in claims.items()}
    held = {key: pieces[0] for key, pieces in clipped.items() if pieces}
    shares = dict.fromkeys(claims, 0)
    edges = sorted({*whole, *(edge for interval in held.values() for edge in interval)})
    unclaimed = 0
    for low, high in itertools.pairwise(edges):
        active = [key for key, (start, end) in held.items() if start <= low and high <= end]
        takers = _innermost(active, inside_of)
        if not takers:
            unclaimed += high - low
            continue
        part, rest = divmod(high - low, len(takers))
        for position, key in enumerate(takers):
            shares[key] += part + (position < rest)
    return shares, unclaimed


def _innermost(active: Sequence[K], inside_of: Mapping[K, K]) -> list[K]:
    """Leave out every claim that another active one lies inside of, at any depth."""
    enclosing: set[K] = set()
    for key in active:
        outer = inside_of.get(key)
        while outer is not None and outer not in enclosing:
            enclosing.add(outer)
            outer = inside_of.get(outer)
    return [key for key in active if key not in enclosing]
