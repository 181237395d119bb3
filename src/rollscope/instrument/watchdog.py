"""The watchdog: records where a span hangs once it has been open too long.

A stack is taken at the threshold, at twice, four times, eight times that age, and so on, so that a
span that hangs for a day leaves a dozen stacks.
"""

from __future__ import annotations

import heapq
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
_ID_BITS: Final = 64
_ID_MASK: Final = 2**_ID_BITS - 1


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
        self._due: list[int] = []
        """When each span that was open at a look is due for a stack, and below that its id; a heap.

        Tuples would do, but each makes the garbage collector look sooner at all of the host's.
        """
        self._known: dict[int, None] = {}
        """Ids; a set of twenty thousand takes three times as much."""

    def due(self) -> list[SpanStack]:
        """Give the stacks of the spans whose next one is due."""
        now = self._clock.mono_ns()
        if not self._after_ns or now < self._next_look_ns:
            return []
        self._next_look_ns = now + _LOOK_EVERY_NS
        for span in self._buffers.opened_since(self._known.__contains__):
            start_ns = getattr(span, "start_ns", now)
            heapq.heappush(self._due, _entry(start_ns + self._after_ns, span.id))
            self._known[span.id] = None
        hanging = []
        while self._due and self._due[0] >> _ID_BITS <= now:
            span_id = heapq.heappop(self._due) & _ID_MASK
            open_span = self._buffers.open.get(span_id)
            if open_span is None:
                self._known.pop(span_id, None)
            else:
                hanging.append(open_span)
                age_ns = max(now - open_span.start_ns, self._after_ns)
                doubled = (age_ns // self._after_ns).bit_length()
                next_ns = open_span.start_ns + (self._after_ns << doubled)
                heapq.heappush(self._due, _entry(next_ns, span_id))
        if not hanging:
            return []
        with guarded("taking await stacks"):
            return capture_stacks(self._current, hanging)
        return []

    def capture_all(self) -> list[SpanStack]:
        """Give the stacks of all open spans."""
        self._buffers.open_started()
        spans = [span for span in list(self._buffers.open.values()) if hasattr(span, "start_ns")]
        return capture_stacks(self._current, spans)


def _entry(due_ns: int, span_id: int) -> int:
    return due_ns << _ID_BITS | span_id
