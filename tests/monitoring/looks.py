"""Families as a server shows them, made by hand."""

from __future__ import annotations

import time

from rollscope.metrics.families import Distribution, Exemplar, Exposed, Family, FamilyKind, Point

__all__ = ["DURATIONS", "FINISHED", "INFO", "QUEUED", "TRACE_ID", "look_at"]

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
FINISHED = Family(
    name="rollscope_sessions_finished_total",
    kind=FamilyKind.COUNTER,
    help="Sessions that have ended.",
    labels=("run", "outcome"),
)
QUEUED = Family(
    name="rollscope_sessions_queued",
    kind=FamilyKind.GAUGE,
    help="Open sessions that wait.",
    labels=("run",),
)
DURATIONS = Family(
    name="rollscope_session_duration_seconds",
    kind=FamilyKind.HISTOGRAM,
    help="How long sessions took.",
    labels=("run",),
    bounds=(0.5, 1.0, 30.0),
)
INFO = Family(
    name="rollscope_run_info", kind=FamilyKind.INFO, help="A run.", labels=("run", "state")
)


def look_at(run: str, finished: float = 7.0, *, at_s: float | None = None) -> list[Exposed]:
    """Show one run: a counter, a gauge, a histogram with an exemplar, and an info."""
    slow = Exemplar((("trace_id", TRACE_ID), ("session", "math/1#0")), 12.5, at_s or time.time())
    durations = Distribution((1, 2, 3, 4), 99.5, {2: slow})
    return [
        Exposed(FINISHED, [Point((run, "accepted"), finished), Point((run, ""), 1.0)]),
        Exposed(QUEUED, [Point((run,), 3.0)]),
        Exposed(DURATIONS, [Point((run,), durations)]),
        Exposed(INFO, [Point((run, "live"), 1.0)]),
    ]
