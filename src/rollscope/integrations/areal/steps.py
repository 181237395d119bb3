"""Steps of the trainer, told from the scopes that it names `train.*`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from rollscope.integrations.areal.state import enter_under

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["StepCutter"]


class StepCutter:
    """Opens a step with the first scope of its number; the next number, or its save, ends it."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._span: Span | None = None
        self._lock = threading.RLock()

    def begin(self, recorder: Recorder, number: Any) -> Span | None:  # noqa: ANN401
        """Give the span of a step; None for one that has ended, or that is no number."""
        if type(number) is not int:
            return None
        with self._lock:
            if number != self._number:
                self.close()
                self._number = number
                self._span = recorder.types.new_step(number, None, {})
                enter_under(recorder, self._span, None)
            return self._span

    def end(self, number: int) -> None:
        """End a step, if it is this one that is open."""
        with self._lock:
            if number == self._number:
                self.close()

    def close(self) -> None:
        """End the step that is open."""
        with self._lock:
            span, self._span = self._span, None
            if span is not None:
                span.__exit__(None, None, None)
