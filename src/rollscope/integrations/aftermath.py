"""What frameworks tell of afterwards: regions that are over, and metrics of a step that is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollscope.instrument.calls import GAUGE, STEP_BEGUN, STEP_ENDED
from rollscope.instrument.pastends import record_past
from rollscope.instrument.sanitise import plain_number

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder

__all__ = ["finite", "gauge_in_step", "is_in_step", "record_past_span"]


def finite(value: object) -> float | None:
    """Give a plain number that is one; None for the rest. Tensors are not asked."""
    number = plain_number(value)
    try:
        return float(number) if number is not None and math.isfinite(number) else None
    except OverflowError:  # a whole number beyond what a metric can hold
        return None


def gauge_in_step(recorder: Recorder, numbers: Mapping[str, float], step: int | None) -> None:
    """Set gauges as those of a step, whether it is open or not; with None, of the one that is."""
    at = recorder.clock.mono_ns()
    mark = object()  # stands for the span of a step that is not open
    is_marked = step is not None and not is_in_step(recorder, step)
    if is_marked:
        recorder.add_call((STEP_BEGUN, step, at, mark))
    for name, value in numbers.items():
        recorder.add_call((GAUGE, name, value, {}))
    if is_marked:
        recorder.add_call((STEP_ENDED, step, at, mark))


def is_in_step(recorder: Recorder, step: int) -> bool:
    """Say whether a step of that number is open around the caller."""
    around = recorder.current.get()
    return bool(around) and around.scope.step == step


def record_past_span(
    recorder: Recorder, name: str, category: str, start_ns: int, end_ns: int, **attrs: Any
) -> None:
    """Record a span that is over, below the current one.

    Args:
        recorder: What records.
        name: What was done.
        category: As for `rollscope.span`.
        start_ns: By the monotonic clock of the recorder.
        end_ns: By the same.
        **attrs: Anything else worth knowing.
    """
    record_past(recorder, recorder.new_span(name, category, attrs), start_ns, end_ns)
