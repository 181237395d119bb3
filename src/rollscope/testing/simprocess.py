"""A simulated process, and what it records in true time."""

from itertools import count
from typing import Any, NamedTuple

from rollscope.model.batch import Metric
from rollscope.model.kinds import STATUS_CODES, Status
from rollscope.model.scope import Scope

__all__ = ["Process", "SimFact", "SimSpan", "SimStack"]

_OK = STATUS_CODES[Status.OK]


class SimSpan(NamedTuple):
    """A span, or an event, in true time; one that never ends has no end."""

    what: int
    name: str
    scope: Scope
    span_id: int
    parent_id: int
    start: int
    end: int | None
    status: int
    attrs: dict[str, Any]
    fields: dict[str, Any]


class SimFact(NamedTuple):
    """A late fact, in true time."""

    trace_id: bytes
    span_id: int
    time: int
    facts: dict[str, Any]


class SimStack(NamedTuple):
    """Where a span hung, in true time."""

    span_id: int
    time: int
    frames: list[str]


class Process:
    """One simulated process and what it recorded."""

    def __init__(self, index: int, role: str, rank: int, host: str) -> None:
        self.index = index
        self.role = role
        self.rank = rank
        self.host = host
        self.spans: list[SimSpan] = []
        self.facts: list[SimFact] = []
        self.stacks: list[SimStack] = []
        self.metrics: list[tuple[int, Metric]] = []
        self.dies_at: int | None = None
        self._ids = count((index << 40) + 1)

    def clear(self) -> None:
        """Forget what was recorded, once it has been taken."""
        self.spans.clear()
        self.facts.clear()
        self.stacks.clear()
        self.metrics.clear()

    def next_id(self) -> int:
        """Give a fresh span id."""
        return next(self._ids)

    def add(
        self,
        what: int,
        name: str,
        scope: Scope,
        parent_id: int,
        start: int,
        end: int | None,
        *,
        status: int = _OK,
        span_id: int | None = None,
        attrs: dict[str, Any] | None = None,
        fields: dict[str, Any] | None = None,
    ) -> int:
        """Record a span and give its id."""
        own_id = self.next_id() if span_id is None else span_id
        self.spans.append(
            SimSpan(
                what, name, scope, own_id, parent_id, start, end, status, attrs or {}, fields or {}
            )
        )
        return own_id
