"""How sessions were judged, each by its first verdict: its own, else the first told later."""

from collections import Counter
from typing import Final

import numpy as np
import pyarrow as pa

from rollscope.exposing.columns import Codes, Vocabulary
from rollscope.exposing.labels import OTHER
from rollscope.exposing.pairing import Pairing, Rows

__all__ = ["Verdicts"]

_REASON_CHARACTERS: Final = 80
_MOST_VERDICTS: Final = 1_000
"""Outcomes with a reason; programs may give any."""


class Verdicts:
    """The verdicts of a run."""

    def __init__(self, families: Vocabulary) -> None:
        self._families = families
        self.words = Vocabulary()
        """Outcomes, each with its reason."""
        self.finished: Counter[tuple[int, int]] = Counter()
        """Sessions by family and verdict."""
        self._waiting = Pairing()

    def copy(self) -> "Verdicts":
        """Give them once more, to be added to apart."""
        copied = Verdicts(self._families)
        copied.words = self.words
        copied.finished, copied._waiting = self.finished.copy(), self._waiting.copy()
        return copied

    def unjudged(self) -> Counter[int]:
        """Count the sessions by family that have ended and wait for a verdict."""
        counts = Counter[int]()
        for lot in self._waiting.sessions:
            counts.update(_counted(lot.columns[0]))
        return counts

    def add(self, ended: pa.Table, told: pa.Table) -> None:
        """Add sessions and verdicts.

        Args:
            ended: Sessions that have ended.
            told: Facts with an outcome, the earliest first.
        """
        families = self._families.codes(ended["family"])
        has_own = ended["outcome"].is_valid().to_numpy()
        self._count(families[has_own], self._codes(ended.filter(pa.array(has_own))))
        sessions = Rows.first_of(ended["span_id"].to_numpy()[~has_own], families[~has_own])
        facts = Rows.first_of(told["span_id"].to_numpy(), self._codes(told))
        pairs, sessions, facts = self._waiting.match(sessions, facts)
        self._count(*pairs)
        self._waiting.keep(sessions, facts)

    def _codes(self, rows: pa.Table) -> Codes:
        """Number verdicts; of a reason that is an error its type, since its text may be any."""
        outcomes, reasons = Vocabulary(), Vocabulary()
        outcome_codes, reason_codes = outcomes.codes(rows["outcome"]), reasons.codes(rows["reason"])
        width = len(reasons.words)
        used, places = np.unique(outcome_codes * width + reason_codes, return_inverse=True)
        known = [
            self._code(outcomes.words[code // width], reasons.words[code % width])
            for code in used.tolist()
        ]
        found: Codes = np.array(known, np.int64)[places]
        return found

    def _code(self, outcome: str, reason: str) -> int:
        reason = reason.partition(":")[0][:_REASON_CHARACTERS]
        if len(self.words.words) >= _MOST_VERDICTS and not self.words.knows((outcome, reason)):
            reason = OTHER
        return self.words.code((outcome, reason))

    def _count(self, families: Codes, verdicts: Codes) -> None:
        width = len(self.words.words) or 1
        for pair, count in _counted(families * width + verdicts).items():
            self.finished[pair // width, pair % width] += count


def _counted(codes: Codes) -> Counter[int]:
    used, counts = np.unique(codes, return_counts=True)
    return Counter(dict(zip(used.tolist(), counts.tolist(), strict=True)))
