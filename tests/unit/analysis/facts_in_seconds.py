"""A step's facts, told in whole seconds."""

from typing import Any

from rollscope.analysis.rows import SessionRow, SpanRow, StepFacts
from rollscope.model.kinds import Kind

S = 1_000_000_000


def session(span_id: int, start: int, end: int | None, **given: Any) -> SessionRow:
    given.setdefault("pool", "r0")
    end_ns = None if end is None else end * S
    return SessionRow(span_id=span_id, start_ns=start * S, end_ns=end_ns, **given)


def span(span_id: int, name: str, start: int, end: int | None, **given: Any) -> SpanRow:
    end_ns = None if end is None else end * S
    return SpanRow(span_id=span_id, name=name, start_ns=start * S, end_ns=end_ns, **given)


def state(span_id: int, name: str, start: int, end: int, lane: str | None = "r0") -> SpanRow:
    return span(span_id, name, start, end, lane=lane, kind=Kind.STATE)


def step(wall: int = 100, **given: Any) -> StepFacts:
    given.setdefault("around", given.get("sessions", []))
    given.setdefault("now_ns", wall * S)
    return StepFacts(span=span(1000, "step", 0, wall, kind=Kind.STEP), **given)
