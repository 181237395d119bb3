"""Sessions and what is learned of them later, brought together by id, each pair once.

Either may be read first: a verdict may be told before the session ends, and long after. What has
found no partner waits. So a run is read in pieces, and each piece once.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rollscope.exposing.columns import Ids, Numbers

__all__ = ["Pairing", "Rows"]

_MOST_WAITING: Final = 4_000_000
"""In one lot; the highest ids stay, which are the newest of their processes."""
_RATIO: Final = 4


Places = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class Rows(NamedTuple):
    """Ids, each at most once and in order, and what belongs to each."""

    ids: Ids
    columns: tuple[Numbers, ...]

    @classmethod
    def first_of(cls, ids: Ids, *columns: Numbers) -> "Rows":
        """Take the first row of every id, and put them in order."""
        found, places = np.unique(ids, return_index=True)
        return cls(found, tuple(column[places] for column in columns))

    def chosen(self, which: Places | Flags) -> "Rows":
        """Give some of them, in their order."""
        return Rows(self.ids[which], tuple(column[which] for column in self.columns))

    def joined(self, others: "Rows") -> "Rows":
        """Give both, in order."""
        if not len(others.ids):
            return self
        if not len(self.ids):
            return others
        columns = zip(self.columns, others.columns, strict=True)
        ids = np.concatenate((self.ids, others.ids))
        return Rows.first_of(ids, *(np.concatenate(pair) for pair in columns))


def _meet(left: Rows, right: Rows) -> tuple[Places, Places]:
    """Give the places of ids that both have; quick where one of them is short."""
    short, long = (left, right) if len(left.ids) <= len(right.ids) else (right, left)
    places = np.searchsorted(long.ids, short.ids)
    inside = np.minimum(places, max(len(long.ids) - 1, 0))
    found = np.zeros(len(short.ids), bool)
    if len(long.ids):
        found = long.ids[inside] == short.ids
    here, there = np.flatnonzero(found), inside[found]
    return (here, there) if short is left else (there, here)


def _without(rows: Rows, places: Places) -> Rows:
    if not len(places):
        return rows
    stays = np.ones(len(rows.ids), bool)
    stays[places] = False
    return rows.chosen(stays)


class _Waiting:
    """Rows without a partner, in lots of which each is much larger than the next.

    Few rows are added at a time, and putting all into one order each time would cost the more the
    longer a run is.
    """

    def __init__(self, lots: Sequence[Rows] = ()) -> None:
        self.lots = list(lots)

    def put(self, rows: Rows) -> None:
        """Let rows wait."""
        while self.lots and len(self.lots[-1].ids) < _RATIO * len(rows.ids):
            rows = self.lots.pop().joined(rows)
        if len(rows.ids):
            excess = len(rows.ids) - _MOST_WAITING
            kept = rows if excess <= 0 else rows.chosen(np.arange(excess, len(rows.ids)))
            self.lots.append(kept)

    def take(self, partners: Rows) -> tuple[list[tuple[Rows, Rows]], Rows]:
        """Take out whoever has a partner; give the pairs, and the partners that are left."""
        pairs = []
        for place, lot in enumerate(self.lots):
            here, there = _meet(lot, partners)
            if len(here):
                pairs.append((lot.chosen(here), partners.chosen(there)))
                self.lots[place] = _without(lot, here)
                partners = _without(partners, there)
        return pairs, partners


class Pairing:
    """What waits for its partner."""

    def __init__(self) -> None:
        self._sessions = _Waiting()
        self._facts = _Waiting()

    def copy(self) -> "Pairing":
        """Give one that can be added to apart; rows are never changed, so both may hold them."""
        copied = Pairing()
        copied._sessions = _Waiting(self._sessions.lots)
        copied._facts = _Waiting(self._facts.lots)
        return copied

    @property
    def sessions(self) -> Sequence[Rows]:
        """The sessions that wait, in lots."""
        return self._sessions.lots

    def keep(self, sessions: Rows, facts: Rows) -> None:
        """Let rows wait that `match` found no partner for."""
        self._sessions.put(sessions)
        self._facts.put(facts)

    def match(self, sessions: Rows, facts: Rows) -> tuple[tuple[Numbers, ...], Rows, Rows]:
        """Find the partners of new rows, and let those go that waited for them.

        Returns:
            The columns of the pairs, those of sessions first, and the rows on either side that
            found no partner.
        """
        found, facts = self._sessions.take(facts)
        turned, sessions = self._facts.take(sessions)
        found += [(session, fact) for fact, session in turned]
        here, there = _meet(sessions, facts)
        found.append((sessions.chosen(here), facts.chosen(there)))
        columns = zip(*((*one.columns, *other.columns) for one, other in found), strict=True)
        pairs = tuple(np.concatenate(column) for column in columns)
        return pairs, _without(sessions, here), _without(facts, there)
