"""The watchdog: records where a span hangs once it has been open too long.

A stack is taken at the threshold, at twice, four times, eight times that age, and so on, so that a
span that hangs for a day leaves a dozen stacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollscope.instrument.guard import guarded
from rollscope.instrument.stacks import SpanStack, capture_stacks

if TYPE_CHECKING:
    from contextvars import ContextVar

    from rollscope.instrument.buffers import Buffers
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.spans import Span

__all__ = ["Watchdog"]

_LOOK_EVERY_NS: Final = 500_000_000


class Watchdog:
    """Looks for spans that are open too long."""

    def __init__(
        self, buffers: Buffers, current: ContextVar[Span], clock: Clock, after_s: float
    ) -> None:
        self._buffers = buffers
        self._current = current
        self._clock = clock
        self._after_ns = int(after_s * 1e9)
        self._next_look_ns = 0
        self._next_age_ns: dict[int, int] = {}

    def due(self) -> list[SpanStack]:
        """Give the stacks of the spans whose next one is due."""
        now = self._clock.mono_ns()
        if not self._after_ns or now < self._next_look_ns:
            return []
        self._next_look_ns = now + _LOOK_EVERY_NS
        old = [
            span
            for span in list(self._buffers.open.values())
            if now - getattr(span, "start_ns", now) >= self._after_ns
        ]
        next_age = {span.id: self._next_age_ns.get(span.id, self._after_ns) for span in old}
        hanging = [span for span in old if now - span.start_ns >= next_age[span.id]]
        for span in hanging:
            while next_age[span.id] <= now - span.start_ns:
                next_age[span.id] *= 2
        self._next_age_ns = next_age
        if not hanging:
            return []
        with guarded("taking await stacks"):
            return capture_stacks(self._current, hanging)
        return []

    def capture_all(self) -> list[SpanStack]:
        """Give the stacks of all open spans."""
        spans = [span for span in list(self._buffers.open.values()) if hasattr(span, "start_ns")]
        return capture_stacks(self._current, spans)
