"""How many sessions were in flight at many moments, and in which phase each of them was.

A moment is a tick of an even grid. A session counts once at each tick: for the phase of it that
started last among those that are open then, which is its leaf, or for none. So the phases and what
is between them add up to what is in flight.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["FOREVER", "Grid", "PhaseColumns", "SessionColumns", "count_phases", "count_sessions"]

Numbers = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]

FOREVER: Final = 2**62
"""Stands for the end of what is still open."""
_AT_ONCE: Final = 4096
"""Sessions with phases side by side that are looked at together, to bound the memory."""
_MICROSECOND_BITS: Final = 10
_START_BITS: Final = 40
"""Room for a fortnight of microseconds, which leaves some for eight million sessions."""


class Grid(NamedTuple):
    """Ticks that are equally far apart, the last one at `end_ns`."""

    end_ns: int
    step_ns: int
    ticks: int

    @property
    def start_ns(self) -> int:
        """The first tick."""
        return self.end_ns - (self.ticks - 1) * self.step_ns

    def first_at(self, times: Numbers) -> Numbers:
        """Give the number of the first tick that is not before each time; `ticks` if none is."""
        numbers = -((self.start_ns - times) // self.step_ns)
        clipped: Numbers = np.clip(numbers, 0, self.ticks)
        return clipped


class SessionColumns(NamedTuple):
    """Sessions by column; each entry of one belongs to the same entry of the others."""

    ids: Ids
    starts: Numbers
    ends: Numbers
    """`FOREVER` while open."""


class PhaseColumns(NamedTuple):
    """Phases by column."""

    session_ids: Ids
    starts: Numbers
    ends: Numbers
    names: Numbers
    """Numbers from 0, one for each name."""
    ids: Ids
    """Of two that start together the one with the higher id is the later one."""


def count_sessions(sessions: SessionColumns, grid: Grid) -> Numbers:
    """Count the sessions that are open at each tick."""
    first, last = grid.first_at(sessions.starts), grid.first_at(sessions.ends)
    return _covered(first, last, grid.ticks)


def count_phases(
    sessions: SessionColumns, phases: PhaseColumns, names: int, grid: Grid
) -> list[Numbers]:
    """Count for each phase name the sessions that are in it at each tick.

    Args:
        sessions: The sessions that may be open at some tick.
        phases: Phases of theirs; what lies outside of its session, or belongs to none of them,
            does not count.
        names: How many names there are.
        grid: The ticks.
    """
    order = np.argsort(sessions.ids, kind="stable")
    ids = sessions.ids[order]
    if not len(ids) or not len(phases.session_ids):
        return [np.zeros(grid.ticks, np.int64) for _ in range(names)]
    place = np.minimum(np.searchsorted(ids, phases.session_ids), len(ids) - 1)
    own = order[place]
    first = grid.first_at(np.maximum(phases.starts, sessions.starts[own]))
    last = grid.first_at(np.minimum(phases.ends, sessions.ends[own]))
    seen = (ids[place] == phases.session_ids) & (first < last)
    rows = np.flatnonzero(seen)
    rows = rows[_roughly_in_order(place[rows], phases.starts[rows])]
    mixed = _with_overlaps(place[rows], first[rows], last[rows], grid.ticks)
    alone, rows = rows[~mixed], rows[mixed]
    counts = _count_alone(first[alone], last[alone], phases.names[alone], names, grid)
    rows = rows[np.lexsort((phases.ids[rows], phases.starts[rows], place[rows]))]
    columns = place[rows], first[rows], last[rows], phases.names[rows]
    for leaves in _leaf_tables(*columns, grid.ticks):
        for name in range(names):
            counts[name] += (leaves == name).sum(axis=0)
    return list(counts)


def _roughly_in_order(owner: Numbers, starts: Numbers) -> npt.NDArray[np.intp]:
    """Order phases by session and start, to the microsecond: a fifth of the work of doing it right.

    Whether phases overlap does not depend on the order; out of it they may only seem to.
    """
    if not len(owner):
        return np.zeros(0, np.intp)
    since = np.minimum((starts - starts.min()) >> _MICROSECOND_BITS, (1 << _START_BITS) - 1)
    return np.argsort((owner << _START_BITS) | since)


def _count_alone(
    first: Numbers, last: Numbers, names: Numbers, many: int, grid: Grid
) -> npt.NDArray[np.int64]:
    """Count phases that hide none: a row for each name."""
    width = grid.ticks + 1
    begun = np.bincount(names * width + first, minlength=many * width)
    over = np.bincount(names * width + last, minlength=many * width)
    counts: npt.NDArray[np.int64] = np.cumsum((begun - over).reshape(many, width), axis=1)
    return counts[:, : grid.ticks]


def _with_overlaps(owner: Numbers, first: Numbers, last: Numbers, count: int) -> npt.NDArray[Any]:
    """Say of each phase whether its session has two at some tick."""
    if not len(owner):
        return np.zeros(0, bool)
    group = np.cumsum(np.diff(owner, prepend=owner[0]) != 0)
    # Ends grow from group to group, so the maximum so far never comes from the one before.
    reached = np.maximum.accumulate(group * (count + 1) + last)
    late = np.zeros(len(owner), bool)
    late[1:] = reached[:-1] > group[1:] * (count + 1) + first[1:]
    odd = np.zeros(group[-1] + 1, bool)
    odd[group[late]] = True
    mixed: npt.NDArray[Any] = odd[group]
    return mixed


def _leaf_tables(
    owner: Numbers, first: Numbers, last: Numbers, names: Numbers, count: int
) -> Iterator[npt.NDArray[np.int32]]:
    """Give leaf tables of some sessions at a time, from phases in order of session and start."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    for at in range(0, len(starts), _AT_ONCE):
        until = starts[at + _AT_ONCE] if at + _AT_ONCE < len(starts) else len(owner)
        some = slice(starts[at], until)
        yield _leaf_table(owner[some], first[some], last[some], names[some], count)


def _leaf_table(
    owner: Numbers, first: Numbers, last: Numbers, names: Numbers, count: int
) -> npt.NDArray[np.int32]:
    """Give a row for each session: at each tick the name of the phase that started last, or -1."""
    group = np.cumsum(np.diff(owner, prepend=owner[0]) != 0)
    lengths = last - first
    ticks = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)
    table = np.full((group[-1] + 1, count), -1, np.int32)
    # Of several values for one cell numpy keeps the last, and later starts come later.
    table[np.repeat(group, lengths), ticks] = np.repeat(names, lengths)
    return table


def _covered(first: Numbers, last: Numbers, count: int) -> Numbers:
    """Count how many stretches from `first` up to `last` cover each tick."""
    begun = np.bincount(first, minlength=count + 1)[: count + 1]
    over = np.bincount(last, minlength=count + 1)[: count + 1]
    covered: Numbers = np.cumsum(begun - over)[:count]
    return covered
