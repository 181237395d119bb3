"""Whether anything is traced in this process: configuring, closing, and what children get."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default as tracing
from rollscope.instrument.guard import guarded
from rollscope.integrations.xtuner.config import Options, options_from_environment, read_options
from rollscope.integrations.xtuner.traceruntime import TraceRuntime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rollscope.instrument.tracer import Tracer

__all__ = [
    "TraceRuntime",
    "active",
    "close_trace",
    "configure_trace",
    "configure_trace_runtime",
    "current_trace_runtime",
    "flush_trace",
    "get_trace_env_vars",
    "get_tracer",
    "merge_trace_runtime_env",
    "use_trace_recorder",
]

_SHARED: Final = ("ROLLSCOPE_RUN", "ROLLSCOPE_DIR", "ROLLSCOPE_SINK", "ROLLSCOPE_TOKEN")
_PASSED_ON: Final = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
)
"""For other senders of spans in a child on another node; we send none that way."""
_UNDECIDED: Final = object()

_active: Any = _UNDECIDED
_lock = threading.RLock()


def active() -> TraceRuntime | None:
    """Give the runtime if anything is traced; the first call looks into the environment."""
    found: TraceRuntime | None = _decide() if _active is _UNDECIDED else _active
    return found


def _decide() -> TraceRuntime | None:
    global _active
    with _lock:
        if _active is _UNDECIDED:
            _active = None
            with guarded("reading XTuner's variables"):
                options = options_from_environment(os.environ)
                if options is not None:
                    _active = _started(options)
        found: TraceRuntime | None = _active
        return found


def _started(options: Options) -> TraceRuntime:
    runtime = TraceRuntime(options)
    with guarded("starting to trace"):
        runtime.start()
    return runtime


def configure_trace(
    config: object = None, *, output_dir: str | os.PathLike[str] | None = None
) -> TraceRuntime:
    """Trace from now on, or no longer; what was traced before is closed.

    Args:
        config: A `TraceConfig`, a mapping, or the original's own object.
        output_dir: Counts instead of the field of that name.

    Raises:
        ValueError: A field is unknown, has a wrong value, or contradicts its twin.
    """
    global _active
    options = read_options(config, output_dir)
    with _lock:
        close_trace()
        if not options.enabled:
            return TraceRuntime(options)
        _active = _started(options)
        runtime: TraceRuntime = _active
        return runtime


configure_trace_runtime = configure_trace


def close_trace() -> None:
    """Write everything and stop; takes 5 seconds at most."""
    global _active
    with _lock:
        ending, _active = _active, None
        if isinstance(ending, TraceRuntime):
            ending.close()


def flush_trace() -> bool:
    """Wait until everything so far is written; false if it is not within 5 seconds."""
    runtime = active()
    return True if runtime is None else runtime.flush()


def current_trace_runtime() -> TraceRuntime | None:
    """Give the runtime; None if nothing is traced."""
    return active()


def get_tracer() -> Tracer:
    """Give Rollscope's own tracer, which takes spans of any kind."""
    runtime = active()
    return tracing._tracer if runtime is None else runtime.tracer


def get_trace_env_vars() -> dict[str, str]:
    """Give the variables by which a child process traces into the same run."""
    runtime = active()
    if runtime is None or runtime.recorder is None:
        return {}
    shared = runtime.tracer.child_env({})
    found: dict[str, str] = {name: shared[name] for name in _SHARED if name in shared}
    options = runtime.options
    found["XTUNER_TRACE_CLASSIC"] = options.classic
    folder = "" if options.output_dir is None else str(options.output_dir)
    if options.classic == "producer":
        return found | {
            "XTUNER_TRACE_ENABLED": "1",
            "XTUNER_TRACE_OUTPUT_DIR": folder,
            "XTUNER_TRACE_MAX_EVENTS": str(options.max_events),
            "XTUNER_TRACE_MAX_EVENTS_PER_TRACE": str(options.max_events_per_trace),
        }
    return found | {
        "XTUNER_OTEL_ENABLED": "1",
        "XTUNER_OTEL_OUTPUT_DIR": folder or str(runtime.run_dir.parent),
        "XTUNER_OTEL_RUN_ID": runtime.run_id,
        "XTUNER_OTEL_RUN_DIR": str(runtime.run_dir),
        "XTUNER_OTEL_JSONL_PATH": str(runtime.trace_jsonl_path),
        "XTUNER_TRACE_ENABLE_ROLLOUT": "1" if options.traces_rollouts else "0",
        "OTEL_SERVICE_NAME": runtime.service_name,
        **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
    }


def merge_trace_runtime_env(runtime_env: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Give Ray's `runtime_env` with our variables in it; what is set there already stays."""
    merged = dict(runtime_env or {})
    ours = get_trace_env_vars()
    if ours:
        merged["env_vars"] = ours | dict(merged.get("env_vars") or {})
    return merged


@contextmanager
def use_trace_recorder(recorder: Any) -> Iterator[Any]:  # noqa: ANN401  (has `record`)
    """Give events of the producer trace to a recorder too, for a block."""
    global _active
    runtime = active()
    if recorder is runtime:
        yield recorder
        return
    before = runtime
    if runtime is None:
        runtime = TraceRuntime(replace(read_options({"classic": "none"}), enabled=True))
        _active = runtime
    wanted = runtime.wants_events
    runtime._others.append(recorder)
    runtime.wants_events = True
    try:
        yield recorder
    finally:
        runtime._others.remove(recorder)
        runtime.wants_events = wanted
        if before is None:
            _active = None
            runtime.close()
