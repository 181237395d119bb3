"""Which step, since when: the list of steps, and everything about one of them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.analysis.changes import Changes, changes
from rollscope.analysis.eta import Eta
from rollscope.analysis.ranks import median
from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.analysis.staleness import Staleness, staleness
from rollscope.analysis.steps import StepParts, StepSummary, analyse_step, outline, summarise
from rollscope.analysis.stuck import StuckRow
from rollscope.analysis.verdict import HISTORY_STEPS, Verdict, judge_step
from rollscope.analysis.whatif import WhatIf, replay_step
from rollscope.answers.facts import gather_steps, step_spans
from rollscope.answers.loops import loop_stalls
from rollscope.answers.phases import phase_unions
from rollscope.answers.scope import StepScope, known_steps
from rollscope.answers.source import Source
from rollscope.answers.steplines import LineShelf, StepLine
from rollscope.answers.stuck import Stuck, stuck
from rollscope.answers.waits import ETA_STEPS, past_digests, step_eta
from rollscope.errors import CommandError

__all__ = ["StepAnswer", "StepLine", "Steps", "one_step", "slowest_step", "steps"]

_LAST_STEPS: Final = 10
"""How many steps are listed where none are asked for."""
_OUTLINED_STEPS: Final = 20
"""How many steps before those are looked at for what is usual and what changed."""


_UNASSIGNED: Final = """
    SELECT count(*) AS n FROM spans
    WHERE kind = 'session' AND step IS NULL
        AND span_id NOT IN (SELECT span_id FROM facts WHERE consumed_step IS NOT NULL)"""


_SESSIONS: Final = "SELECT count(*) AS n FROM spans WHERE kind = 'session'"


class Steps(msgspec.Struct, kw_only=True):
    """The steps of a run, the latest last."""

    steps: list[StepLine]
    of: int
    """How many steps the run has."""
    unassigned: int
    """Sessions that neither a dispatching nor a consuming step is known of; all of a run that
    records no steps."""
    changes: Changes


class StepAnswer(msgspec.Struct, kw_only=True):
    """Everything about one step."""

    previous: int | None
    """The recorded step before it."""
    following: int | None
    summary: StepSummary
    verdict: Verdict
    parts: StepParts
    staleness: Staleness
    what_if: WhatIf
    eta: Eta | None
    """Of a step that is still running."""
    holders: list[SessionRow]
    """The sessions that held the tail, the last one first."""
    slowest: list[SessionRow]


def steps(source: Source, scope: StepScope | None = None, *, most: int = _LAST_STEPS) -> Steps:
    """List steps, each with its verdict.

    Args:
        source: The run.
        scope: Which steps; the last ones if not given.
        most: How many, where the scope does not say.
    """
    numbers = known_steps(source)
    chosen = _chosen(numbers, scope, most)
    lines: list[StepLine] = []
    history: list[StepSummary] = []
    if chosen:
        earlier = [number for number in numbers if number < chosen[0]][-_OUTLINED_STEPS:]
        shelf = LineShelf(source, [*earlier, *chosen])
        for kept in shelf.kept(chosen[0]):
            history.append(kept.summary)
            if kept.line is not None and len(history) > len(earlier):
                lines.append(kept.line)
        rest = shelf.numbers[len(history) :]
        if rest:
            _judge(source, rest, chosen[0], history, lines, shelf)
    unassigned = source.query(_UNASSIGNED if numbers else _SESSIONS)
    return Steps(
        steps=lines,
        of=len(numbers),
        unassigned=unassigned["n"][0].as_py(),
        changes=changes(_series([*history])),
    )


def slowest_step(source: Source, *, most: int = _LAST_STEPS) -> SpanRow | None:
    """Give the step that took longest, of so many last ones that are over."""
    numbers = known_steps(source)[-most:]
    if not numbers:
        return None
    spans = step_spans(source, numbers[0], numbers[-1])
    over = [(span.end_ns - span.start_ns, span) for span in spans if span.end_ns is not None]
    return max(over, key=lambda one: one[0], default=(0, None))[1]


def _judge(
    source: Source,
    numbers: Sequence[int],
    first: int,
    history: list[StepSummary],
    lines: list[StepLine],
    shelf: LineShelf,
) -> None:
    """Go on with steps of which nothing is kept; those before the first are only outlined."""
    gathered, spans_of = gather_steps(source, numbers[0], numbers[-1], outlined_before=first)
    judged = stuck(source) if any(one.span.end_ns is None for one in gathered) else None
    for facts in gathered:
        if facts.span.step is None or facts.span.step < first:
            history.append(outline(facts))
            shelf.put(facts, history[-1], None)
            continue
        parts = analyse_step(facts, spans_of)
        summary = summarise(facts, spans_of, parts)
        verdict = judge_step(
            facts,
            spans_of,
            history=history,
            parts=parts,
            stuck=_stuck_of(facts, judged),
            stalls=loop_stalls(source, facts.start_ns, facts.end_ns),
        )
        change = _change(summary, history)
        lines.append(StepLine(summary=summary, change=change, verdict=verdict))
        history.append(summary)
        shelf.put(facts, summary, lines[-1])


def _chosen(numbers: Sequence[int], scope: StepScope | None, most: int) -> list[int]:
    if scope is None:
        return list(numbers[-most:])
    if scope.first is None or scope.last is None:
        return list(numbers)
    return [number for number in numbers if scope.first <= number <= scope.last]


def _change(summary: StepSummary, history: Sequence[StepSummary]) -> float | None:
    before = [step.wall_ns for step in history[-HISTORY_STEPS:] if not step.is_open]
    usual = median(before) if before else 0
    return summary.wall_ns / usual - 1 if usual else None


def _stuck_of(facts: StepFacts, judged: Stuck | None) -> list[StuckRow]:
    if judged is None or facts.span.end_ns is not None:
        return []
    own = {session.span_id for session in facts.sessions}
    return [row for row in judged.rows if row.is_alarm and row.session_id in own]


def _series(summaries: Sequence[StepSummary]) -> dict[str, list[tuple[int, float | None]]]:
    """Give what is followed from step to step, as far as steps that are only outlined tell it."""
    series: dict[str, list[tuple[int, float | None]]] = defaultdict(list)
    for one in summaries:
        if one.step is None or one.is_open:
            continue
        values: dict[str, float | None] = {
            "wall": one.wall_ns / 1e9,
            **{f"share of {name}": share for name, share in one.phase_shares.items()},
        }
        for name, value in values.items():
            series[name].append((one.step, value))
    return series


def one_step(source: Source, number: int) -> StepAnswer:
    """Tell everything about a step.

    Raises:
        CommandError: The run has no such step.
    """
    numbers = known_steps(source)
    if number not in numbers:
        known = f"it has {numbers[0]} to {numbers[-1]}" if numbers else "it records none"
        raise CommandError(f"the run has no step {number}; {known}")
    earlier = [one for one in numbers if one < number][-HISTORY_STEPS:]
    gathered, spans_of = gather_steps(
        source, (earlier or [number])[0], number, outlined_before=number
    )
    history = [outline(facts) for facts in gathered[:-1]]
    facts = gathered[-1]
    parts = analyse_step(facts, spans_of)
    judged = stuck(source) if facts.span.end_ns is None else None
    by_id = {session.span_id: session for session in facts.sessions}
    slowest = sorted(facts.sessions, key=lambda one: _length(one, facts.now_ns), reverse=True)
    later = [one for one in numbers if one > number]
    return StepAnswer(
        previous=earlier[-1] if earlier else None,
        following=later[0] if later else None,
        summary=summarise(facts, spans_of, parts),
        verdict=judge_step(
            facts,
            spans_of,
            history=history,
            parts=parts,
            stuck=_stuck_of(facts, judged),
            stalls=loop_stalls(source, facts.start_ns, facts.end_ns),
        ),
        parts=parts,
        staleness=staleness(facts.sessions, facts.events, phase_unions(source, facts.sessions)),
        what_if=replay_step(facts),
        eta=_eta(source, facts, earlier),
        holders=[by_id[one] for one in parts.tail.holders if one in by_id],
        slowest=slowest[:10],
    )


def _eta(source: Source, facts: StepFacts, earlier: Sequence[int]) -> Eta | None:
    if facts.span.end_ns is not None:
        return None
    return step_eta(facts, past_digests(source, earlier[-ETA_STEPS:]))[0]


def _length(session: SessionRow, now_ns: int) -> int:
    return (now_ns if session.end_ns is None else session.end_ns) - session.start_ns
