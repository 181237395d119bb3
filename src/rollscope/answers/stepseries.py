"""What changed from step to step that the list of steps does not say: errors, sync, busy slots."""

from collections.abc import Sequence
from typing import Final

import msgspec

from rollscope.analysis.leaves import add_up, leaf_stretches
from rollscope.analysis.roles import is_sync
from rollscope.analysis.rows import SpanRow, StepFacts
from rollscope.analysis.sync import sync_split
from rollscope.answers.errors import ERROR_KIND
from rollscope.answers.facts import step_spans, trainer_spans
from rollscope.answers.hosts import OTHER
from rollscope.answers.phases import BLAMED
from rollscope.answers.recent import fetch_between
from rollscope.answers.rows import most_moved, span_rows
from rollscope.answers.scope import StepScope, known_steps
from rollscope.answers.source import Source, fetch

__all__ = ["ErrorStrip", "StepSeries", "SyncStep", "step_series"]

_MOST_STRIPS: Final = 50


class SyncStep(msgspec.Struct, kw_only=True):
    """The weight sync of one step; the four parts add up to the total."""

    total_ns: int
    pause_ns: int
    transfer_ns: int
    resume_ns: int
    rest_ns: int


class ErrorStrip(msgspec.Struct, kw_only=True):
    """One kind of error, step by step."""

    kind: str
    """What precedes the colon of the reason."""
    name: str
    """The phase, span or session that it ended."""
    counts: list[int]
    """One for each step."""
    total: int
    first_step: int
    """Where it came up first, in the whole run."""


class StepSeries(msgspec.Struct, kw_only=True):
    """Steps, and a value for each of them everywhere below."""

    steps: list[int]
    wall_ns: list[int]
    is_open: list[bool]
    sync: list[SyncStep]
    busy_ns: dict[str, list[int]]
    """Slot time by the phase that sessions were in, whichever step they were for, `other` between
    phases; with the idle time of the list of steps it makes the slot time."""
    errors: list[ErrorStrip]
    """The most frequent first."""


def step_series(source: Source, scope: StepScope | None = None, *, most: int = 50) -> StepSeries:
    """Give what changed from step to step.

    Args:
        source: The run.
        scope: Which steps; the last ones if not given.
        most: How many at most, the last ones of the scope.
    """
    numbers = [step for step in known_steps(source) if _is_in(step, scope)][-most:]
    if not numbers:
        return StepSeries(steps=[], wall_ns=[], is_open=[], sync=[], busy_ns={}, errors=[])
    spans = step_spans(source, numbers[0], numbers[-1])
    facts = _facts(source, spans)
    return StepSeries(
        steps=[span.step or 0 for span in spans],
        wall_ns=[one.wall_ns for one in facts],
        is_open=[span.end_ns is None for span in spans],
        sync=[_sync(one) for one in facts],
        busy_ns=_busy(source, facts),
        errors=_errors(source, [span.step or 0 for span in spans]),
    )


def _is_in(step: int, scope: StepScope | None) -> bool:
    if scope is None or scope.first is None or scope.last is None:
        return True
    return scope.first <= step <= scope.last


def _facts(source: Source, spans: Sequence[SpanRow]) -> list[StepFacts]:
    """Gather as much of each step as its weight sync needs."""
    first, last = spans[0].step or 0, spans[-1].step or 0
    trainer = trainer_spans(source, spans, first, last)
    low = min(span.start_ns for span in spans)
    sql = "kind = 'state' AND (end_ns IS NULL OR end_ns > $low)"
    states = [row for row in span_rows(source, sql, low=low) if is_sync(row.name)]
    return [
        StepFacts(
            span=span, now_ns=source.now_ns, trainer=trainer.get(span.span_id, []), states=states
        )
        for span in spans
    ]


def _sync(facts: StepFacts) -> SyncStep:
    split = sync_split(facts, [])
    fields = SyncStep.__struct_fields__
    return SyncStep(**{field: getattr(split, field) for field in fields})


def _busy(source: Source, facts: Sequence[StepFacts]) -> dict[str, list[int]]:
    """Share out the slot time of each step by the phase that sessions were in."""
    low = min(one.start_ns for one in facts)
    high = max(one.end_ns for one in facts)
    moved_ns = most_moved(source)
    recent = fetch_between(source, low, high, moved_ns, tick_ns=1)
    leaves = leaf_stretches(recent.sessions, recent.phases)
    busy: dict[str, list[int]] = {}
    for place, one in enumerate(facts):
        whole = one.start_ns, one.end_ns
        by_name = leaves.add_up(whole, len(recent.names))
        in_all = add_up(recent.sessions.starts, recent.sessions.ends, whole)
        amounts = dict(zip(recent.names, by_name, strict=True))
        amounts[OTHER] = amounts.get(OTHER, 0) + in_all - sum(by_name)
        for name, amount in amounts.items():
            if amount:
                busy.setdefault(name, [0] * len(facts))[place] = amount
    return dict(sorted(busy.items(), key=lambda item: (item[0] == OTHER, -sum(item[1]), item[0])))


class _ErrorCount(msgspec.Struct):
    kind: str
    name: str
    step: int
    count: int


def _errors(source: Source, numbers: Sequence[int]) -> list[ErrorStrip]:
    """Count errors by the step that their session or span was dispatched in."""
    sql = f"""
        SELECT {ERROR_KIND} AS kind, name, step, count(*) AS count FROM spans
        WHERE status = 'error' AND {BLAMED} AND step IS NOT NULL
        GROUP BY {ERROR_KIND}, name, step ORDER BY step"""
    strips: dict[tuple[str, str], ErrorStrip] = {}
    place_of = {number: place for place, number in enumerate(numbers)}
    for row in fetch(source, _ErrorCount, sql):
        strip = strips.get((row.kind, row.name))
        if strip is None:
            strip = ErrorStrip(
                kind=row.kind,
                name=row.name,
                counts=[0] * len(numbers),
                total=0,
                first_step=row.step,
            )
            strips[row.kind, row.name] = strip
        if row.step in place_of:
            strip.counts[place_of[row.step]] = row.count
            strip.total += row.count
    seen = [strip for strip in strips.values() if strip.total]
    return sorted(seen, key=lambda one: (-one.total, one.kind, one.name))[:_MOST_STRIPS]
