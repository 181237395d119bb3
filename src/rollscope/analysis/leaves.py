"""Which phase each session was in, at every instant: stretches that neither overlap nor leave it.

As at the ticks of `flight`, an instant belongs to the phase that started last among those that are
open. Stretches are exact, so what is added up over them is too.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rollscope.analysis.flight import PhaseColumns, SessionColumns

__all__ = ["LeafStretches", "add_up", "leaf_stretches"]

Numbers = npt.NDArray[np.int64]


class LeafStretches(NamedTuple):
    """Stretches by column."""

    starts: Numbers
    ends: Numbers
    names: Numbers

    def add_up(self, whole: tuple[int, int], many: int) -> list[int]:
        """Add up how much of each of `many` names lies within some time."""
        inside = np.minimum(self.ends, whole[1]) - np.maximum(self.starts, whole[0])
        seen = inside > 0
        totals = np.zeros(many, np.int64)
        np.add.at(totals, self.names[seen], inside[seen])
        amounts: list[int] = totals.tolist()
        return amounts


def add_up(starts: Numbers, ends: Numbers, whole: tuple[int, int]) -> int:
    """Add up how much of some stretches lies within some time."""
    inside = np.minimum(ends, whole[1]) - np.maximum(starts, whole[0])
    return int(inside[inside > 0].sum())


def leaf_stretches(sessions: SessionColumns, phases: PhaseColumns) -> LeafStretches:
    """Cut phases so that each instant of a session belongs to one of them at most.

    Args:
        sessions: The sessions.
        phases: Phases of theirs; what lies outside of its session, or belongs to none of them,
            is left out.
    """
    order = np.argsort(sessions.ids, kind="stable")
    ids = sessions.ids[order]
    if not len(ids) or not len(phases.session_ids):
        nothing = np.zeros(0, np.int64)
        return LeafStretches(nothing, nothing, nothing)
    place = np.minimum(np.searchsorted(ids, phases.session_ids), len(ids) - 1)
    own = order[place]
    starts = np.maximum(phases.starts, sessions.starts[own])
    ends = np.minimum(phases.ends, sessions.ends[own])
    rows = np.flatnonzero((ids[place] == phases.session_ids) & (starts < ends))
    rows = rows[np.lexsort((phases.ids[rows], phases.starts[rows], place[rows]))]
    return _cut(place[rows], starts[rows], ends[rows], phases.names[rows])


def _cut(owner: Numbers, starts: Numbers, ends: Numbers, names: Numbers) -> LeafStretches:
    """Cut phases, given in order of session and start."""
    follows = np.append(owner[1:] == owner[:-1], False)
    overlaps = follows & np.append(ends[:-1] > starts[1:], False)
    odd = np.isin(owner, owner[overlaps])
    cut: list[tuple[int, int, int]] = []
    rows = np.flatnonzero(odd)
    for group in np.split(rows, np.flatnonzero(np.diff(owner[rows])) + 1) if len(rows) else []:
        columns = starts[group].tolist(), ends[group].tolist(), names[group].tolist()
        cut += _cut_one(list(zip(*columns, strict=True)))
    table = np.array(cut, np.int64).reshape(-1, 3)
    return LeafStretches(
        np.concatenate([starts[~odd], table[:, 0]]),
        np.concatenate([ends[~odd], table[:, 1]]),
        np.concatenate([names[~odd], table[:, 2]]),
    )


def _cut_one(phases: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Cut the phases of one session, given in order of their start."""
    found: list[tuple[int, int, int]] = []
    open_ones: list[tuple[int, int]] = []
    at = 0

    def go_to(time: int) -> None:
        nonlocal at
        while open_ones and at < time:
            end, name = open_ones[-1]
            if end <= at:
                open_ones.pop()
                continue
            until = min(end, time)
            found.append((at, until, name))
            at = until

    for start, end, name in phases:
        go_to(start)
        at = start
        open_ones.append((end, name))
    go_to(max(end for _, end, _ in phases))
    return found
