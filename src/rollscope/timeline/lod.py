"""What is too small to be drawn by itself: the rule by which spans become cells.

A span shorter than a pixel belongs to the cell of the pixel that its start is in (the first pixel
if it began before the window). A cell keeps how many spans it stands for, the longest of them, the
OR of their flags, and the name and the role with most time; of equals the lowest number wins. Its
occupancy is the time of all of them by that of a pixel, at most 1, as 0 to 255, and at least 1.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rollscope.timeline.columns import Times

__all__ = ["Cells", "Small", "join_small", "make_cells"]

I64 = npt.NDArray[np.int64]


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
    count = np.diff(first, append=len(small.cell))
    role_of = np.array([*roles, 0], np.int64)
    name = small.name[first].astype(np.int64)
    cells = Cells(
        cell=small.cell[first],
        name=name,
        role=role_of[name],
        covered=small.length[first],
        count=count,
        longest=small.length[first],
        flags=small.flags[first],
    )
    # Most cells hold one span and are what that is; only the others have to be added up.
    many = count > 1
    if many.any():
        _add_up(cells, many, small.take(np.repeat(many, count)), role_of)
    return cells


def _add_up(cells: Cells, many: npt.NDArray[np.bool_], small: Small, role_of: I64) -> None:
    first = _first_of(small.cell)
    cells.covered[many] = np.add.reduceat(small.length, first)
    cells.longest[many] = np.maximum.reduceat(small.length, first)
    cells.flags[many] = np.bitwise_or.reduceat(small.flags, first)
    lowest, highest = np.minimum.reduceat(small.name, first), np.maximum.reduceat(small.name, first)
    mixed = lowest != highest
    if not mixed.any():
        return
    inside = np.repeat(mixed, cells.count[many])
    name, role = _lead(small.take(np.flatnonzero(inside)), role_of)
    places = np.flatnonzero(many)[mixed]
    cells.name[places], cells.role[places] = name, role


def _lead(small: Small, role_of: I64) -> tuple[I64, I64]:
    """Give the name and the role with most time of each cell."""
    first = _first_of(small.cell)
    cell = np.repeat(np.arange(len(first)), np.diff(first, append=len(small.cell)))
    cell, name, covered = _sum_by(cell, small.name.astype(np.int64), small.length, len(role_of))
    roles = _sum_by(cell, role_of[name], covered, int(role_of.max()) + 1)
    return _most(cell, name, covered), _most(*roles)


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
