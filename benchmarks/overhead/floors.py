"""What no recorder written in Python can go below."""

from __future__ import annotations

from contextvars import ContextVar
from time import perf_counter_ns, thread_time_ns

from overhead.measure import Result, Scale, measure

__all__ = ["floor", "floor_with_parent"]


def floor(scale: Scale) -> Result:
    """Measure two clock reads and an append."""
    rows: list[tuple[int, int]] = []

    def burst(count: int) -> int:
        append, now = rows.append, perf_counter_ns
        began = thread_time_ns()
        for _ in range(count):
            start = now()
            append((start, now()))
        return thread_time_ns() - began

    return measure(scale, burst, rows.clear)


def floor_with_parent(scale: Scale) -> Result:
    """Measure the same with a parent kept in a context variable."""
    rows: list[tuple[int, int, int]] = []
    current: ContextVar[int] = ContextVar("current", default=0)

    def burst(count: int) -> int:
        append, now, get, set_ = rows.append, perf_counter_ns, current.get, current.set
        began = thread_time_ns()
        for i in range(count):
            parent = get()
            set_(i)
            start = now()
            append((parent, start, now()))
            set_(parent)
        return thread_time_ns() - began

    return measure(scale, burst, rows.clear)
