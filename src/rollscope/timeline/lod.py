"""What is too small to be drawn by itself: the rule by which spans become cells.

A span shorter than a pixel belongs to the cell of the pixel that its start is in (the first pixel
if it began before the window). A cell keeps how many spans it stands for, the longest of them, the
OR of their flags, and the name and the role with most time; of equals the lowest number wins. Its
occupancy is the time of all of them by that of a pixel, at most 1, as 0 to 255, and at least 1.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import Times

__all__ = ["Cells", "Small", "join_cells", "join_small", "make_cells"]

I64 = npt.NDArray[np.int64]

_MOST_SPARSE: Final = 8
"""How many times larger than the spans a table may be; beyond, sorting is cheaper."""
_EXACT: Final = 2**53
"""Below it, sums of whole numbers are exact as floats."""


class Small(msgspec.Struct):
    """Spans that are shorter than a pixel, and the cell that each belongs to."""

    cell: I64
    """A number that rises from cell to cell."""
    name: npt.NDArray[np.uint16]
    length: Times
    flags: npt.NDArray[np.uint8]

    def take(self, places: npt.NDArray[Any]) -> "Small":
        """Give some of them."""
        return Small(*(getattr(self, field)[places] for field in self.__struct_fields__))


class Cells(msgspec.Struct):
    """Cells in order of their numbers."""

    cell: I64
    name: I64
    role: I64
    covered: Times
    count: I64
    longest: Times
    flags: npt.NDArray[np.uint8]


def join_small(parts: Sequence[Small]) -> Small:
    """Give all of several, in order of their cells."""
    filled = [part for part in parts if len(part.cell)]
    if len(filled) == 1:
        return _in_order(filled[0])
    columns = [
        np.concatenate([getattr(part, field) for part in parts])
        for field in Small.__struct_fields__
    ]
    return _in_order(Small(*columns))


def join_cells(parts: Sequence[Cells]) -> Cells:
    """Give the cells of several, each of which has higher numbers than the one before."""
    if len(parts) == 1:
        return parts[0]
    return Cells(
        *(
            np.concatenate([getattr(part, field) for part in parts])
            for field in Cells.__struct_fields__
        )
    )


def _in_order(small: Small) -> Small:
    if (small.cell[1:] >= small.cell[:-1]).all():
        return small
    return small.take(np.argsort(small.cell, kind="stable"))


def make_cells(small: Small, roles: Sequence[int]) -> Cells:
    """Apply the rule.

    Args:
        small: What is smaller than a pixel, in order of its cells.
        roles: The role of each name.
    """
    first = _first_of(small.cell)
    role_of = np.array([*roles, 0], np.int64)
    name = small.name[first].astype(np.int64)
    cells = Cells(
        cell=small.cell[first],
        name=name,
        role=role_of[name],
        covered=_by_cell(np.add, small.length, first),
        count=np.diff(first, append=len(small.cell)),
        longest=_by_cell(np.maximum, small.length, first),
        flags=_by_cell(np.bitwise_or, small.flags, first),
    )
    # Most cells hold spans of one name, and have that; only the others have to be looked into.
    changes = np.zeros(len(small.cell), bool)
    np.not_equal(small.name[1:], small.name[:-1], out=changes[1:])
    changes[first] = False
    mixed = _by_cell(np.logical_or, changes, first)
    if mixed.any():
        inside = np.repeat(mixed, cells.count)
        cells.name[mixed], cells.role[mixed] = _lead(
            np.repeat(np.arange(int(mixed.sum())), cells.count[mixed]),
            small.name[inside].astype(np.int64),
            small.length[inside],
            role_of,
        )
    return cells


def _by_cell(add_up: np.ufunc, values: npt.NDArray[Any], first: I64) -> npt.NDArray[Any]:
    return add_up.reduceat(values, first) if len(first) else values[:0]


def _lead(cell: I64, name: I64, length: Times, role_of: I64) -> tuple[I64, I64]:
    """Give the name and the role with most time of each cell; cells are numbered from 0 on."""
    entries = (int(cell[-1]) + 1) * len(role_of)
    if entries <= _MOST_SPARSE * len(cell) + 1024 and int(length.sum()) < _EXACT:
        return _lead_in_table(cell, name, length, role_of)
    cell, name, covered = _sum_by(cell, name, length, len(role_of))
    roles = _sum_by(cell, role_of[name], covered, int(role_of.max()) + 1)
    return _most(cell, name, covered), _most(*roles)


def _lead_in_table(cell: I64, name: I64, length: Times, role_of: I64) -> tuple[I64, I64]:
    """Add the time up in a table of cells and names, which needs no sorting."""
    size, names = int(cell[-1]) + 1, len(role_of)
    by_name = np.bincount(cell * names + name, length, size * names).reshape(size, names)
    by_role = np.zeros((size, int(role_of.max()) + 1))
    for number, role in enumerate(role_of.tolist()):
        by_role[:, role] += by_name[:, number]
    lead, role = by_name.argmax(axis=1), by_role.argmax(axis=1)
    is_timeless = by_role[np.arange(size), role] == 0  # and no name stands out
    if is_timeless.any():
        first = _first_of(cell)
        lead[is_timeless] = np.minimum.reduceat(name, first)[is_timeless]
        role[is_timeless] = np.minimum.reduceat(role_of[name], first)[is_timeless]
    return lead, role


def _first_of(values: I64) -> I64:
    """Give where each stretch of equal values begins."""
    if not len(values):
        return np.zeros(0, np.int64)
    return np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])


def _sum_by(cell: I64, value: I64, covered: Times, values: int) -> tuple[I64, I64, Times]:
    """Add up the time of what is of the same cell and value; give both in order."""
    key = cell * values + value
    order = np.argsort(key, kind="stable")  # quicker: cells are in order already
    key = key[order]
    first = _first_of(key)
    cell, value = np.divmod(key[first], values)
    return cell, value, np.add.reduceat(covered[order], first)


def _most(cell: I64, value: I64, covered: Times) -> I64:
    """Give the value with most time of each cell, the lowest of equals; values are in order."""
    first = _first_of(cell)
    counts = np.diff(first, append=len(cell))
    is_best = np.flatnonzero(covered == np.repeat(np.maximum.reduceat(covered, first), counts))
    most: I64 = value[is_best[_first_of(cell[is_best])]]
    return most
