"""Interval algebra against counting every nanosecond."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rollscope.analysis.intervals import Interval, clip, divide, merge, sum_ns, union_ns

TIMES = st.integers(0, 40)
INTERVALS = st.lists(st.tuples(TIMES, TIMES), max_size=8)


def _instants(intervals: list[Interval]) -> set[int]:
    return {instant for start, end in intervals for instant in range(start, end)}


@given(INTERVALS)
def test_the_union_is_the_number_of_covered_instants(intervals: list[Interval]) -> None:
    assert union_ns(intervals) == len(_instants(intervals))


@given(INTERVALS)
def test_the_sum_counts_every_cover(intervals: list[Interval]) -> None:
    assert sum_ns(intervals) == sum(len(range(start, end)) for start, end in intervals)


@given(INTERVALS)
def test_merged_intervals_cover_the_same_and_stay_apart(intervals: list[Interval]) -> None:
    merged = merge(intervals)

    assert _instants(merged) == _instants(intervals)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(merged))


@given(INTERVALS, st.tuples(TIMES, TIMES))
def test_clipping_keeps_what_lies_within(intervals: list[Interval], whole: Interval) -> None:
    assert _instants(clip(intervals, whole)) == _instants(intervals) & _instants([whole])


@given(
    st.dictionaries(st.integers(0, 7), st.tuples(TIMES, TIMES), max_size=8),
    st.dictionaries(st.integers(0, 7), st.integers(0, 7), max_size=8),
    TIMES,
    TIMES,
)
def test_a_division_is_complete_and_gives_each_instant_to_the_innermost(
    claims: dict[int, Interval], nesting: dict[int, int], low: int, length: int
) -> None:
    whole = (low, low + length)
    inside_of = {inner: outer for inner, outer in nesting.items() if inner > outer}

    shares, unclaimed = divide(claims, whole, inside_of)

    assert sum(shares.values()) + unclaimed == length
    assert unclaimed == length - len(_instants(list(claims.values())) & _instants([whole]))
    exact = dict.fromkeys(claims, 0.0)
    for instant in range(*whole):
        active = {key for key, (start, end) in claims.items() if start <= instant < end}
        innermost = {k for k in active if not any(_lies_in(o, k, inside_of) for o in active)}
        for key in innermost:
            exact[key] += 1 / len(innermost)
    edges = 2 * len(claims) + 2
    assert all(abs(shares[key] - exact[key]) <= edges for key in claims)


def _lies_in(inner: int, outer: int, inside_of: dict[int, int]) -> bool:
    at = inside_of.get(inner)
    while at is not None:
        if at == outer:
            return True
        at = inside_of.get(at)
    return False
