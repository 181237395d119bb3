"""TRL's own profiling contexts as spans: what a trainer times, we see while it goes on.

TRL puts a `ProfilingContext` around generating, rewarding, syncing weights and the loss, and asks
nothing of it but to be entered and left. Both are wrapped while a training is traced.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default
from rollscope.instrument.guard import guarded

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["trace_profiling", "untrace_profiling"]

_MODULE: Final = "trl.extras.profiling"
_ORIGINAL: Final = "_rollscope_original"
_SPAN: Final = "_rollscope_span"
_GENERATES: Final = ("generate", "generate_batch", "chat")
_CATEGORIES: Final = {
    "sync_weights": "sync",
    "_move_model_to_vllm": "sync",
    "compute_loss": "compute",
    "_get_per_token_logps_and_entropies": "compute",
    "_get_per_token_logps": "compute",
}


def trace_profiling() -> None:
    """Have every `ProfilingContext` be a span, if TRL is loaded and has them."""
    context: Any = getattr(sys.modules.get(_MODULE), "ProfilingContext", None)
    if context is None or hasattr(context.__enter__, _ORIGINAL):
        return
    enter, leave = context.__enter__, context.__exit__

    @functools.wraps(enter)
    def traced_enter(self: Any) -> Any:  # noqa: ANN401  (TRL's)
        recorder = default._tracer._recorder
        if recorder is not None:
            with guarded("entering a profiling context of TRL"):
                span = _new_span(recorder, str(getattr(self, "name", "")))
                setattr(self, _SPAN, span)
                span.__enter__()
        return enter(self)

    @functools.wraps(leave)
    def traced_leave(self: Any, kind: Any, error: Any, trace: Any) -> Any:  # noqa: ANN401
        with guarded("leaving a profiling context of TRL"):
            span: Span | None = self.__dict__.pop(_SPAN, None)
            if span is not None:
                span.__exit__(kind, error, trace)
        return leave(self, kind, error, trace)

    setattr(traced_enter, _ORIGINAL, enter)
    setattr(traced_leave, _ORIGINAL, leave)
    context.__enter__, context.__exit__ = traced_enter, traced_leave


def untrace_profiling() -> None:
    """Leave `ProfilingContext` as it was."""
    context: Any = getattr(sys.modules.get(_MODULE), "ProfilingContext", None)
    for name in ("__enter__", "__exit__"):
        original = getattr(getattr(context, name, None), _ORIGINAL, None)
        if original is not None:
            setattr(context, name, original)


def _new_span(recorder: Recorder, name: str) -> Span:
    """Make the span of a context called `Trainer.what`: a phase if it generates or rewards."""
    what = name.partition(".")[2] or name
    engine, _, last = what.rpartition(".")
    if last in _GENERATES:
        return recorder.new_phase("generate", {"engine": engine} if engine else {})
    if last == "_calculate_rewards":
        return recorder.new_phase("reward", {})
    return recorder.new_span(last.lstrip("_") or what, _CATEGORIES.get(last, "misc"), {})
