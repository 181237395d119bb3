"""Folding records into what a run looks like now: one record per span, facts applied.

Everything is held in memory, which suits tests and small runs.
"""

from collections.abc import Iterable
from pathlib import Path

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
        self._facts: list[FactRecord] = []

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
                known = self.spans.get(record.span_id)
                # An end is final; a start, or the guess that a span was lost, gives way to it.
                if known is None or known.status in (Status.OPEN, Status.LOST):
                    self.spans[record.span_id] = record
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
                self._facts.append(record)

    def apply_facts(self) -> None:
        """Apply late facts to their spans, the latest winning; facts of unknown spans stay."""
        waiting = []
        for fact in sorted(self._facts, key=lambda fact: fact.time_ns):
            span = self.spans.get(fact.span_id)
            if span is None:
                waiting.append(fact)
                continue
            facts = dict(fact.facts)
            if "outcome" in facts and span.kind is Kind.SESSION:
                span.outcome = Outcome(facts.pop("outcome"))
                span.reason = facts.pop("reason", span.reason)
                span.version_end = facts.pop("version_end", span.version_end)
            span.attrs = {**span.attrs, **facts}
        self._facts = waiting


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
