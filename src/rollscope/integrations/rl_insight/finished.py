"""Spans that are over when they are told of: written with times of their own, by the wall clock."""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.pastends import end_at
from rollscope.instrument.sanitise import plain_number
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["record_finished"]

_TOLD: Final = range(2**62)
"""Times by the monotonic clock that a record can hold: none before the machine was started."""


def record_finished(
    recorder: Recorder,
    span: Span,
    start_ns: Any,  # noqa: ANN401  (whatever was handed over)
    end_ns: Any,  # noqa: ANN401
    parent: Span | None = None,
    place: tuple[int | None, str | None, str | None, int | None] | None = None,
) -> None:
    """Write a span with its times; one that ends before it starts is kept, with a flag.

    Args:
        recorder: What records.
        span: Made, and not entered.
        start_ns: Since the epoch.
        end_ns: Since the epoch.
        parent: What it belongs to, if not to the current span.
        place: Step, task, group and sample, of one that belongs to nothing that is known here.
    """
    start, end = plain_number(start_ns), plain_number(end_ns)
    if start is None or end is None:
        raise ValueError(f"times are nanoseconds since the epoch, not {start_ns!r}, {end_ns!r}")
    start, end = int(start), int(end)
    clock = recorder.clock
    ahead_ns = clock.wall_ns() - clock.mono_ns()
    is_told = start - ahead_ns in _TOLD and end - ahead_ns in _TOLD
    if end < start or not is_told:
        span.attrs |= {"clock_suspect": True, "source_start_ns": start, "source_end_ns": end}
        start = end = start if is_told else clock.wall_ns()

    def write() -> None:
        if parent is not None:
            recorder.current.set(parent)
        span.__enter__()
        span.start_ns = start - ahead_ns
        if place is not None:
            step, key, group, sample = place
            span.scope = Scope(span.scope.trace_id, step, key, group, None, sample)
        end_at(recorder, span, end - ahead_ns)

    copy_context().run(write)  # so that it is current for nobody
