"""The watchdog: records where a span hangs once it has been open too long.

A stack is taken at the threshold, at twice, four times, eight times that age, and so on, so that a
span that hangs for a day leaves a dozen stacks.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING, Final

from rollscope.instrument.guard import guarded
from rollscope.instrument.stacks import SpanStack, capture_stacks

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextvars import ContextVar

    from rollscope.instrument.buffers import Buffers
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.spans import Span

__all__ = ["Watchdog"]

_LOOK_EVERY_NS: Final = 500_000_000
_FEW_YOUNG: Final = 1_000
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
        self._young: deque[int] = deque()
        """Ids of spans that were announced and have not been open for too long, oldest first."""
        self._due: list[int] = []
        """When each span that hangs is due for its next stack, and below that its id; a heap.

        Tuples would do, but each makes the garbage collector look sooner at all of the host's.
        """

    def watch(self, span_ids: Iterable[int]) -> None:
        """Watch spans that were found open, in order of their beginning."""
        if self._after_ns:
            self._young.extend(span_ids)

    def due(self) -> list[SpanStack]:
        """Give the stacks of the spans whose next one is due."""
        now = self._clock.mono_ns()
        if now < self._next_look_ns:
            return []
        self._next_look_ns = now + _LOOK_EVERY_NS
        hanging = self._grown_old(now) + self._still_hanging(now)
        for span in hanging:
            age_ns = max(now - span.start_ns, self._after_ns)
            doubled = (age_ns // self._after_ns).bit_length()
            next_ns = span.start_ns + (self._after_ns << doubled)
            heapq.heappush(self._due, _entry(next_ns, span.id))
        if not hanging:
            return []
        with guarded("taking await stacks"):
            return capture_stacks(self._current, hanging)
        return []

    def _grown_old(self, now: int) -> list[Span]:
        """Give the spans that have become too old since the last look."""
        open_spans, young = self._buffers.open, self._young
        if len(young) > 2 * len(open_spans) + _FEW_YOUNG:
            young = self._young = deque(one for one in young if one in open_spans)
        old: list[Span] = []
        while young:
            span = open_spans.get(young[0])
            if span is not None:
                if span.start_ns + self._after_ns > now:
                    break
                old.append(span)
            young.popleft()
        return old

    def _still_hanging(self, now: int) -> list[Span]:
        """Give the spans that have hung for twice as long as when their last stack was taken."""
        hanging: list[Span] = []
        while self._due and self._due[0] >> _ID_BITS <= now:
            span = self._buffers.open.get(heapq.heappop(self._due) & _ID_MASK)
            if span is not None:
                hanging.append(span)
        return hanging

    def capture_all(self) -> list[SpanStack]:
        """Give the stacks of all open spans."""
        self._buffers.open_started()
        spans = [span for span in list(self._buffers.open.values()) if hasattr(span, "start_ns")]
        return capture_stacks(self._current, spans)


def _entry(due_ns: int, span_id: int) -> int:
    return due_ns << _ID_BITS | span_id
