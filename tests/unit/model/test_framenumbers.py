from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollscope.model.framenumbers import FrameNumbers


@given(st.lists(st.integers(-8, 12)))
def test_each_number_is_new_once_in_whatever_order_they_come(numbers: list[int]) -> None:
    taken = FrameNumbers()
    seen: set[int] = set()
    for number in numbers:
        assert (number in taken) == (number in seen)
        assert taken.take(number) == (number not in seen)
        seen.add(number)
    assert taken.last == max(seen, default=-1)
    assert taken.missing == len(set(range(taken.last + 1)) - seen)
    held = [n for low, high in taken.ranges for n in range(low, high + 1)]
    assert held == sorted(seen)
