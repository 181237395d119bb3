"""Numbers that stand for something, as codes into a short list: counted in a table, not sorted."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["number_densely"]

Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[Any]

_MOST_SPARSE: Final = 8
"""How many times larger than the column a table may be; beyond, sorting is cheaper."""


def number_densely(numbers: Numbers, limit: int) -> tuple[Numbers, Codes]:
    """Give the numbers that occur, in order, and for each place which of them stands there.

    Args:
        numbers: Whole numbers from 0 on.
        limit: What all of them are below.
    """
    if limit > _MOST_SPARSE * len(numbers) + 1024:
        unique, inverse = np.unique(numbers, return_inverse=True)
        return unique, inverse.astype(np.int32)
    is_used = np.zeros(limit, bool)
    is_used[numbers] = True
    used = is_used.nonzero()[0]
    if len(used) == limit:
        return used, numbers.astype(np.int32)
    places = np.empty(limit, np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return used, places[numbers]
