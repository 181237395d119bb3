from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rollscope.answers.capacity import most_overlapping

moments = st.integers(0, 20)


def most_by_hand(sessions: list[tuple[int, int | None]]) -> int:
    """Count at every start who has started by then and goes on after it."""
    return max(
        sum(begun <= at and (ended is None or ended > at) for begun, ended in sessions)
        for at, _ in sessions
    )


@given(st.lists(st.tuples(moments, st.none() | moments), min_size=1, max_size=30))
def test_the_most_at_once_is_that_at_some_start(sessions: list[tuple[int, int | None]]) -> None:
    sessions = [(start, None if end is None else max(start, end)) for start, end in sessions]
    starts = np.array([start for start, _ in sessions])
    ends = np.array([end for _, end in sessions if end is not None], np.int64)
    assert most_overlapping(starts, ends) == most_by_hand(sessions)
