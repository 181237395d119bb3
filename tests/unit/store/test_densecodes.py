from __future__ import annotations

import numpy as np
import pytest

from rollscope.store.densecodes import number_densely


@pytest.mark.parametrize(
    ("numbers", "limit"),
    [
        ([3, 1, 3, 7, 1], 8),
        ([2, 0, 1, 0], 3),
        ([5_000_000, 2, 5_000_000], 5_000_001),
        ([], 4),
        ([], 0),
    ],
    ids=["some are used", "all are used", "too sparse for a table", "no rows", "nothing at all"],
)
def test_numbers_come_once_each_in_order_and_places_name_them(
    numbers: list[int], limit: int
) -> None:
    used, which = number_densely(np.array(numbers, np.int64), limit)
    assert used.tolist() == sorted(set(numbers))
    assert used[which].tolist() == numbers
    assert which.dtype == np.int32
