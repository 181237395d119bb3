"""What rules judge by, and what they find."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from rollscope.analysis.path import SpansOf
from rollscope.analysis.rows import StepFacts
from rollscope.analysis.steps import StepParts, StepSummary
from rollscope.analysis.wording import say_names, say_sample

__all__ = ["MOST_NAMED", "Case", "Evidence", "Finding", "LoopStall", "Rule", "StuckSession"]

MOST_NAMED: Final = 20
"""How many sessions a finding names at most."""


class StuckSession(Protocol):
    """An open session, already judged."""

    @property
    def session_id(self) -> int | None:
        """Which; None for a span of no session."""

    @property
    def name(self) -> str:
        """What it is in."""

    @property
    def detail(self) -> str | None:
        """Of which tool, environment, reward function or model."""

    @property
    def age_ns(self) -> int:
        """For how long."""

    @property
    def band(self) -> str:
        """How it is judged; `stuck`, `overdue` and `silent` are alarms."""


class LoopStall(msgspec.Struct, kw_only=True):
    """How much an event loop was blocked during the step."""

    process: int
    pid: int
    total_ns: int
    longest_ns: int
    where: str | None = None
    """What blocked it longest, as "`tokenize` (rewards.py:88)"."""


class Evidence(msgspec.Struct, kw_only=True):
    """What a finding is about, so that it can be opened."""

    sessions: list[int] = []
    pool: str | None = None
    process: int | None = None
    host: str | None = None
    phase: str | None = None
    detail: str | None = None


class Finding(msgspec.Struct, kw_only=True):
    """One cause."""

    rule: str
    stake_ns: int
    """Wall time that would be won at most."""
    sentence: str
    evidence: Evidence
    try_next: str
    """One thing to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that rules judge by."""

    facts: StepFacts
    parts: StepParts
    spans_of: SpansOf
    history: Sequence[StepSummary] = ()
    """The steps before, at most ten."""
    stuck: Sequence[StuckSession] = ()
    stalls: Sequence[LoopStall] = ()

    @property
    def wall_ns(self) -> int:
        """How long the step took, so far."""
        return self.facts.wall_ns

    def stake(self, part: float, whole: float) -> int:
        """Turn a share of anything into the same share of the wall."""
        return round(self.wall_ns * part / whole) if whole else 0

    def names(self, ids: Iterable[int]) -> str:
        """Name sessions of the step by task and sample; "" where no task of them is known."""
        wanted = dict.fromkeys(ids)
        by_id = {one.span_id: one for one in self.facts.sessions if one.span_id in wanted}
        rows = [by_id[one] for one in wanted if one in by_id]
        if all(row.task_key is None for row in rows):
            return ""
        return say_names(say_sample(row.task_key, row.sample, row.span_id) for row in rows)

    def before(self) -> str:
        """Say which steps the history holds."""
        return "previous ten" if len(self.history) == 10 else f"previous {len(self.history)}"


Rule = Callable[[Case], Finding | None]
