"""What the rows of a run add up to: its spans, and the facts and events about them.

Rows come in pieces, each once. What a piece adds does not depend on the others, but for facts,
which are brought together with their sessions whenever both have come.
"""

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from rollscope.exposing.columns import Vocabulary, numbers, times
from rollscope.exposing.consumption import Consumption
from rollscope.exposing.pairing import Rows
from rollscope.exposing.spansums import SpanSums
from rollscope.exposing.verdicts import Verdicts
from rollscope.store.corrections import Corrections

__all__ = ["EVENT_COLUMNS", "FACT_COLUMNS", "OTHER_KINDS", "PHASE", "Moment", "Piece", "Sums"]

PHASE: Final = "phase"
OTHER_KINDS: Final = ("session", "state", "step")
"""Spans that are looked at beside phases, which are most of them and need the least columns."""
FACT_COLUMNS: Final = (
    *("process", "span_id", "time_ns", "number", "outcome", "reason", "consumed_step", "facts"),
)
_MOST_FAMILIES: Final = 1_000
EVENT_COLUMNS: Final = ("process", "name", "time_ns", "version")


class Piece(NamedTuple):
    """Some rows of a run, in columns; others than are named may be among them."""

    phases: pa.Table
    spans: pa.Table
    """Of the other kinds."""
    facts: pa.Table
    events: pa.Table


class Moment(NamedTuple):
    """What is known of the processes when rows are added."""

    corrections: Corrections
    """How their times are moved."""
    ranks: dict[int, int]
    """Of those that have one."""


class Sums:
    """Everything that is added up over a run, but for its metrics."""

    def __init__(self) -> None:
        self.families = Vocabulary(_MOST_FAMILIES)
        self.spans = SpanSums(self.families)
        self.verdicts = Verdicts(self.families)
        self.consumption = Consumption()

    def copy(self) -> "Sums":
        """Give them once more, to be added to apart; words keep their numbers in both."""
        copied = Sums()
        copied.families = self.families
        copied.spans, copied.verdicts = self.spans.copy(), self.verdicts.copy()
        copied.consumption = self.consumption.copy()
        return copied

    def add(self, piece: Piece, moment: Moment) -> None:
        """Add rows."""
        corrections = moment.corrections
        self.spans.add_phases(_of_kind(piece.phases, PHASE), corrections)
        sessions, states, steps = (_of_kind(piece.spans, kind) for kind in OTHER_KINDS)
        self.spans.add_states(states)
        self.spans.add_steps(steps, corrections, moment.ranks)
        ended = self.spans.add_sessions(sessions, corrections)
        self.consumption.add_events(piece.events, corrections)
        self._add_facts(ended, piece.facts, corrections)

    def _add_facts(self, ended: pa.Table, facts: pa.Table, corrections: Corrections) -> None:
        """Add facts in the order in which they were learned."""
        self.spans.add_told(facts["facts"], ("post",))
        at = times(facts, "time_ns", corrections)
        order = np.lexsort((numbers(facts, "number"), facts["process"].to_numpy(), at))
        is_told = facts["outcome"].is_valid().to_numpy()[order]
        self.verdicts.add(ended, facts.take(pa.array(order[is_told])))
        is_used = facts["consumed_step"].is_valid().to_numpy()[order]
        used = order[is_used]
        consumed = Rows.first_of(facts["span_id"].to_numpy()[used], at[used])
        self.consumption.add(ended, consumed, corrections)


def _of_kind(rows: pa.Table, kind: str) -> pa.Table:
    words = Vocabulary()
    codes = words.codes(rows["kind"])
    is_of_kind = codes == words.code(kind)
    return rows if is_of_kind.all() else rows.filter(pa.array(is_of_kind))
