"""The names that both designs share, where programs that use the original's `api` look for them."""

from rollscope.integrations.xtuner.calls import (
    TraceContext,
    extract_trace_context,
    inject_trace_context,
    set_trace_attributes,
    trace_event,
    trace_span,
)
from rollscope.integrations.xtuner.functions import trace_function

__all__ = [
    "TraceContext",
    "extract_trace_context",
    "inject_trace_context",
    "set_trace_attributes",
    "trace_event",
    "trace_function",
    "trace_span",
]
