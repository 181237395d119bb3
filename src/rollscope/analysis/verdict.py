"""Why a step took as long as it did, in a few sentences."""

from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.analysis.path import OTHER, SpansOf
from rollscope.analysis.ranks import median
from rollscope.analysis.rows import StepFacts
from rollscope.analysis.rules import NOTICES, RULES, Case, Finding, LoopStall, StuckSession
from rollscope.analysis.steps import StepParts, StepSummary, analyse_step
from rollscope.analysis.wording import say_ns, say_share

__all__ = ["HISTORY_STEPS", "Verdict", "judge_step"]

HISTORY_STEPS: Final = 10
"""How many steps before are looked at."""
_MOST_FINDINGS: Final = 3
_LEAST_SHARE: Final = 0.05
_LEAST_NS: Final = 1_000_000_000


class Verdict(msgspec.Struct, kw_only=True):
    """What there is to say about a step."""

    step: int | None
    opening: str
    """The first sentence: how long it took, and how long steps take."""
    findings: list[Finding]
    """First what limits trust, then at most three causes, the most at stake first."""
    closing: str | None = None
    """Said if no single cause was found."""

    @property
    def text(self) -> str:
        """All sentences."""
        found = [finding.sentence for finding in self.findings]
        return " ".join([self.opening, *found, *([self.closing] if self.closing else [])])


def judge_step(
    facts: StepFacts,
    spans_of: SpansOf,
    *,
    history: Sequence[StepSummary] = (),
    parts: StepParts | None = None,
    stuck: Sequence[StuckSession] = (),
    stalls: Sequence[LoopStall] = (),
) -> Verdict:
    """Say why a step was slow; of one that still runs, as far as is known.

    Args:
        facts: The step.
        spans_of: Gives the spans of a session.
        history: The steps before it, the latest last.
        parts: What `analyse_step` gave for the step, if at hand.
        stuck: Its open sessions that were judged to be stuck, overdue or silent.
        stalls: Event loops that were blocked during the step.
    """
    case = Case(
        facts=facts,
        parts=analyse_step(facts, spans_of) if parts is None else parts,
        spans_of=spans_of,
        history=history[-HISTORY_STEPS:],
        stuck=stuck,
        stalls=stalls,
    )
    notices = [finding for rule in NOTICES if (finding := rule(case)) is not None]
    causes = [finding for rule in RULES if (finding := rule(case)) is not None]
    least_ns = max(_LEAST_NS, _LEAST_SHARE * facts.wall_ns)
    worth_telling = [finding for finding in causes if finding.stake_ns >= least_ns]
    worth_telling.sort(key=lambda finding: -finding.stake_ns)
    return Verdict(
        step=facts.span.step,
        opening=_opening(case),
        findings=notices + worth_telling[:_MOST_FINDINGS],
        closing=None if worth_telling else _closing(case, causes),
    )


def _opening(case: Case) -> str:
    facts = case.facts
    name = "The step" if facts.span.step is None else f"Step {facts.span.step}"
    took = say_ns(facts.wall_ns)
    said = f"{name} took {took}" if facts.span.end_ns is not None else f"{name} has run for {took}"
    if not case.history:
        return f"{said}."
    usual = say_ns(median([step.wall_ns for step in case.history]))
    return f"{said} ({case.before()}: median {usual})."


def _closing(case: Case, causes: Sequence[Finding]) -> str:
    totals = case.parts.path.totals
    name = max(totals, key=lambda name: totals[name], default=OTHER)
    share = say_share(totals.get(name, 0), case.wall_ns)
    is_short = any(finding.stake_ns >= _LEAST_SHARE * case.wall_ns for finding in causes)
    limit = "costs a second" if is_short else "holds more than 5 %"
    return f"No single cause {limit}; the largest part is {name}, {share}."
