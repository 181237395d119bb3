"""Folding records into what a run looks like now: one record per span, facts applied.

Everything is held in memory, which suits tests and small runs.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from rollscope.model.kinds import Kind, Outcome, Status
from rollscope.model.records import (
    DropRecord,
    EventRecord,
    FactRecord,
    MetricRecord,
    PayloadRecord,
    ProcessRecord,
    Record,
    SpanRecord,
    StackRecord,
)
from rollscope.store.run import RunFollower

__all__ = ["Folded", "fold", "read_run"]


class Folded:
    """A run as it is known."""

    def __init__(self) -> None:
        self.processes: dict[str, ProcessRecord] = {}
        self.spans: dict[str, SpanRecord] = {}
        self.events: list[EventRecord] = []
        self.metrics: list[MetricRecord] = []
        self.payloads: list[PayloadRecord] = []
        self.stacks: list[StackRecord] = []
        self.drops: dict[str, dict[str, int]] = {}
        """Process id to what it dropped in all."""
        self.problems: list[str] = []
        self._recorded: dict[str, SpanRecord] = {}
        """Spans without the facts that came later."""
        self._facts: dict[str, list[FactRecord]] = {}
        self._changed: set[str] = set()

    def of_kind(self, kind: Kind) -> list[SpanRecord]:
        """Give the spans of a kind, in order of their start."""
        return sorted(
            (span for span in self.spans.values() if span.kind is kind),
            key=lambda span: span.start_ns,
        )

    def add(self, record: Record) -> None:
        """Take in a record."""
        match record:
            case SpanRecord():
                known = self._recorded.get(record.span_id)
                if known is None or _gives_way(known, record):
                    self.spans[record.span_id] = self._recorded[record.span_id] = record
                    self._changed.add(record.span_id)
            case ProcessRecord():
                self.processes[record.process] = record
            case EventRecord():
                self.events.append(record)
            case MetricRecord():
                self.metrics.append(record)
            case PayloadRecord():
                self.payloads.append(record)
            case StackRecord():
                self.stacks.append(record)
            case DropRecord():
                self.drops[record.process] = record.counts
            case FactRecord():
                self._facts.setdefault(record.span_id, []).append(record)
                self._changed.add(record.span_id)

    def apply_facts(self) -> None:
        """Apply late facts to their spans, the latest winning; facts of unknown spans wait."""
        for span_id in self._changed:
            recorded = self._recorded.get(span_id)
            if recorded is not None:
                self.spans[span_id] = _with_facts(recorded, self._facts.get(span_id, []))
        self._changed.clear()


def _gives_way(known: SpanRecord, record: SpanRecord) -> bool:
    """Say whether a record tells more: an end is final, a guess that it was lost nearly so."""
    if known.status is Status.LOST:
        return record.status is not Status.OPEN
    return known.status is Status.OPEN


def _with_facts(span: SpanRecord, facts: list[FactRecord]) -> SpanRecord:
    if not facts:
        return span
    changed = msgspec.structs.replace(span, attrs=dict(span.attrs))
    for fact in sorted(facts, key=lambda fact: fact.time_ns):
        late = dict(fact.facts)
        outcome = _known_outcome(late.get("outcome"))
        if outcome is not None and span.kind is Kind.SESSION:
            del late["outcome"]
            changed.outcome = outcome
            # Only a fact of the right type is the field; a program may call any fact so.
            if isinstance(late.get("reason"), str):
                changed.reason = late.pop("reason")
            if isinstance(late.get("version_end"), int):
                changed.version_end = late.pop("version_end")
        changed.attrs.update(late)
    return changed


def _known_outcome(value: object) -> Outcome | None:
    """Read the verdict that a fact gives; the program may have called any fact `outcome`."""
    try:
        return Outcome(str(value))
    except ValueError:
        return None


def fold(records: Iterable[Record]) -> Folded:
    """Fold records into a run."""
    folded = Folded()
    for record in records:
        folded.add(record)
    folded.apply_facts()
    return folded


def read_run(path: Path) -> Folded:
    """Read a whole run as it is now; spans of processes that died read as lost."""
    follower = RunFollower(path, payloads=True)
    folded = fold(follower.poll(final=True))
    folded.problems = follower.problems
    return folded
