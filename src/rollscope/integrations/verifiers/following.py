"""One trace as it grows: an agent's span, its stages and its calls of the model.

verifiers calls back at every change of a trace. A request that is under way stands among the
trace's previews, and one that is over among its calls.
"""

from __future__ import annotations

import time
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rollscope.instrument.guard import guarded

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["Fault", "Follower", "fault_of", "tokens_of"]

_STAGES: Final = {
    "boot": "boot",
    "setup": "setup",
    "agent": "agent",
    "finalize": "finalize",
    "scoring": "reward",
}
_LATE_S: Final = 0.1
"""A stage that ended longer ago is not recorded: its end would be told wrong by as much."""


class Fault(Exception):
    """Stands for an error that verifiers caught and wrote down."""


def fault_of(error: Any) -> Fault | None:  # noqa: ANN401  (verifiers' own record of an error)
    """Give an error as an exception named like it; None if there is none."""
    if error is None:
        return None
    name = str(getattr(error, "type", "") or "error")
    kind = type(name if name.isidentifier() else "error", (Fault,), {})
    fault: Fault = kind(str(getattr(error, "message", "")))
    return fault


class _Open(NamedTuple):
    span: Span
    context: Context
    """In which it is the current one."""

    def close(self, fault: Fault | None = None) -> None:
        kind = None if fault is None else type(fault)
        self.context.run(self.span.__exit__, kind, fault, None)


class Follower:
    """Follows one trace; it is made while the session is current."""

    def __init__(self, recorder: Recorder, trace: Any) -> None:  # noqa: ANN401  (a `Trace`)
        """Open the agent's span."""
        self._recorder = recorder
        self._trace = trace
        agent = trace.agent
        attrs = {"source_trace_id": str(trace.id), "trainable": bool(agent.trainable)}
        self._agent = self._enter(recorder.new_span(str(agent.name), "misc", attrs), copy_context())
        self._stages: dict[str, _Open] = {}
        self._begun: set[str] = set()
        self._requests: dict[int, _Open] = {}
        self._calls = 0
        self._told: set[tuple[str, str]] = set()
        self._is_over = False

    def _enter(self, span: Span, context: Context) -> _Open:
        context.run(span.__enter__)
        return _Open(span, context)

    def changed(self) -> None:
        """Open and close what has begun and ended since the last call."""
        if self._is_over:
            return
        timing = self._trace.timing
        self._follow_requests()
        for source, name in _STAGES.items():
            stage = getattr(timing, source)
            if source in self._stages and stage.end:
                self._stages.pop(source).close()
            if stage.start and source not in self._begun:
                self._begin(source, name, stage)
        if timing.scoring.end:
            self.close()

    def _begin(self, source: str, name: str, stage: Any) -> None:  # noqa: ANN401  (a `TimeSpan`)
        is_over = bool(stage.end)
        if is_over and time.time() - stage.end > _LATE_S:
            return
        self._begun.add(source)
        opened = self._enter(self._recorder.new_phase(name, {}), self._agent.context.copy())
        if not is_over:
            self._stages[source] = opened
            return
        # It is told of only now that it is over, as `finalize` always is.
        opened.span.start_ns -= max(int((stage.end - stage.start) * 1e9), 0)
        opened.close()

    def _follow_requests(self) -> None:
        previews = getattr(self._trace, "_pending", None) or {}
        calls = self._trace.calls[self._calls :]
        self._calls += len(calls)
        ended = [key for key in self._requests if key not in previews]
        for key, call in zip(ended, calls, strict=False):
            self._end_request(self._requests.pop(key), call)
        for key in ended[len(calls) :]:  # it was left out of the trace, which was sealed
            self._requests.pop(key).close()
        within = self._stages.get("agent", self._agent)
        for key in previews:
            if key not in self._requests:
                phase = self._recorder.new_phase("generate", {})
                self._requests[key] = self._enter(phase, within.context.copy())

    def _end_request(self, request: _Open, call: Any) -> None:  # noqa: ANN401  (a `ModelCall`)
        told = {"model": call.model, "finish": call.finish_reason, **tokens_of(call.usage)}
        request.span.set(**{key: value for key, value in told.items() if value is not None})
        if call.error is not None:
            self._told.add(_told(call.error))
        request.close(fault_of(call.error))

    def close(self, *, why: str = "") -> None:
        """Close everything; the agent has done its work, or it was given up."""
        if self._is_over:
            return
        self._is_over = True
        for left in (*self._requests.values(), *self._stages.values()):
            left.close()
        fault = None
        with guarded("the verifiers integration"):
            error = None if self._trace.ok else self._trace.last_error
            fault = fault_of(error)
            is_copied = fault is not None and _told(error) in self._told
            copied = {"error.copied": True} if is_copied else {}
            self._agent.span.set(**self._facts(why), **copied)
        self._agent.close(fault)

    def _facts(self, why: str) -> dict[str, Any]:
        trace = self._trace
        missed = [
            name
            for source, name in _STAGES.items()
            if getattr(trace.timing, source).start and source not in self._begun
        ]
        told = {"stop": trace.stop_condition, "turns": trace.num_turns, "why": why or None}
        told |= {"not_followed": missed or None}
        return {key: value for key, value in told.items() if value is not None}


def _told(error: Any) -> tuple[str, str]:  # noqa: ANN401
    return str(getattr(error, "type", "")), str(getattr(error, "message", ""))


def tokens_of(usage: Any) -> dict[str, int | None]:  # noqa: ANN401  (a `Usage`)
    """Give counts of tokens under our names."""
    if usage is None:
        return {}
    cached = usage.cached_input_tokens
    taken = usage.prompt_tokens + (cached or 0)
    return {"tokens_in": taken, "tokens_out": usage.completion_tokens, "tokens_cached": cached}
