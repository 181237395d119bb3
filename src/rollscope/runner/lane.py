"""The lane of a runner in the trace: how many tasks run, and what holds the next one back.

Both change with every task where few run. So a number is recorded a moment later, when it has
settled, and what held work back for a moment only is not recorded at all.
"""

from __future__ import annotations

import time
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.instrument.binding import SpanTypes
    from rollscope.instrument.spans import Span
    from rollscope.instrument.tracer import Tracer
    from rollscope.runner.gates import Gate
    from rollscope.runner.timers import Timers

__all__ = ["Lane"]

_SETTLED_S: Final = 0.1
_LEAST_NS: Final = 5_000_000
"""What held work back for less is not worth a record."""
_IDLE: Final = {"paused": "paused", "queue_empty": "queue_empty"}


class Lane:
    """Records on one lane."""

    def __init__(self, name: str, gates: Sequence[Gate]) -> None:
        self._name = name
        self._gates = gates
        self._types: SpanTypes | None = None
        self._tracer: Tracer | None = None
        self.timers: Timers | None = None
        self.running = 0
        self._recorded_running = -1
        self.is_quiet = False
        """Whether something is recorded, and nobody looks at what changed yet."""
        self._holder: str | None = None
        self._detail = ""
        self._since_ns = 0
        self._state: Span | None = None
        """What holds work back, if it is recorded as open."""

    def record_with(self, types: SpanTypes | None, tracer: Tracer) -> None:
        """Record with these from now on, or not at all."""
        self._types, self._tracer = types, tracer
        self._state = None
        self._recorded_running = -1
        self.is_quiet = types is not None
        self._declare_slots()

    def held_by(self, holder: str | None, detail: str) -> None:
        """Note what holds the next task back."""
        if self._types is None:
            self._holder, self._detail = holder, detail
            return
        now_ns = time.perf_counter_ns()
        if self._state is not None:
            self._state.__exit__(None, None, None)
            self._state = None
        elif self._holder is not None and now_ns - self._since_ns >= _LEAST_NS:
            self._enter().__exit__(None, None, None)
        self._holder, self._detail = holder, detail
        self._since_ns = time.perf_counter_ns()  # after the end of the state before it
        if self.is_quiet:
            self.look_soon()

    def look_soon(self) -> None:
        """Look in a moment at what has become of a change."""
        if self.timers is not None:
            self.is_quiet = False
            self.timers.after(_SETTLED_S, self._look)

    def _look(self) -> None:
        self.is_quiet = self._types is not None
        if self._tracer is not None and self.running != self._recorded_running:
            self._recorded_running = self.running
            self._tracer.gauge("runner.running", self.running, runner=self._name)
        if self._holder is None or self._state is not None or self._types is None:
            return
        if time.perf_counter_ns() - self._since_ns >= _SETTLED_S * 1e9:
            self._state = self._enter()
        else:
            self.look_soon()

    def _enter(self) -> Span:
        """Open the state that holds work back, from when it began on."""
        assert self._types is not None  # noqa: S101  (asked for only while something is recorded)
        holder = self._holder or ""
        attrs: dict[str, Any] = {"owner": self._detail} if self._detail else {}
        state = self._types.new_state(_IDLE.get(holder, f"gate:{holder}"), self._name, attrs)
        Context().run(state.__enter__)  # part of nothing, and current for nobody
        state.start_ns = self._since_ns
        return state

    def _declare_slots(self) -> None:
        """Record how many tasks may run at once, for the slots that stand idle."""
        limits = [limit for gate in self._gates if (limit := getattr(gate, "limit", None))]
        if self._types is not None and self._tracer is not None and limits:
            self._tracer.gauge("slots", min(limits), pool=self._name)

    def close(self) -> None:
        """End what is open."""
        self.held_by(None, "")
        self.is_quiet = False
