"""Stands for XTuner's `xtuner.v1.rl.trace`, both the producer trace and the OpenTelemetry one.

The same names take the same arguments; what they record goes into a run of Rollscope, and beside
it into the file that XTuner's own tools read. Nothing of XTuner, Ray, torch or OpenTelemetry is
imported.
"""

from rollscope.integrations.xtuner.api import (
    TraceContext,
    extract_trace_context,
    inject_trace_context,
    set_trace_attributes,
    trace_event,
    trace_function,
    trace_span,
)
from rollscope.integrations.xtuner.config import TraceConfig
from rollscope.integrations.xtuner.installing import install
from rollscope.integrations.xtuner.producerfile import TraceEvent
from rollscope.integrations.xtuner.rollout import (
    extract_rollout_trace_parent_carrier,
    is_rollout_trace_enabled,
    rollout_state_final_attributes,
    rollout_state_initial_attributes,
    trace_rollout_endpoint,
    trace_rollout_remote,
)
from rollscope.integrations.xtuner.runtime import (
    TraceRuntime,
    close_trace,
    configure_trace,
    configure_trace_runtime,
    current_trace_runtime,
    flush_trace,
    get_trace_env_vars,
    get_tracer,
    merge_trace_runtime_env,
    use_trace_recorder,
)
from rollscope.integrations.xtuner.states import build_produce_batch_id, build_trace_id

__all__ = [
    "TraceConfig",
    "TraceContext",
    "TraceEvent",
    "TraceRuntime",
    "build_produce_batch_id",
    "build_trace_id",
    "close_trace",
    "configure_trace",
    "configure_trace_runtime",
    "current_trace_runtime",
    "extract_rollout_trace_parent_carrier",
    "extract_trace_context",
    "flush_trace",
    "get_trace_env_vars",
    "get_tracer",
    "inject_trace_context",
    "install",
    "is_rollout_trace_enabled",
    "merge_trace_runtime_env",
    "rollout_state_final_attributes",
    "rollout_state_initial_attributes",
    "set_trace_attributes",
    "trace_event",
    "trace_function",
    "trace_rollout_endpoint",
    "trace_rollout_remote",
    "trace_span",
    "use_trace_recorder",
]
