"""Stands in for `areal.utils.perf_tracer`: its names, its files, and a run of Rollscope beside.

    from rollscope.integrations import areal as perf_tracer

Nothing of AReaL, torch or Ray is imported. What each name does is in `docs/integrations/areal.md`.
"""

from typing import Any

from rollscope.integrations.areal.categories import Category, PerfTraceCategory
from rollscope.integrations.areal.default import (
    atrace_scope,
    atrace_session_phase,
    configure,
    current_tracer,
    get_session_tracer,
    get_tracer,
    instant,
    is_configured,
    register_session,
    register_task,
    reset,
    save,
    session_context,
    trace_perf,
    trace_scope,
    trace_session,
    trace_session_event,
    trace_session_phase,
)
from rollscope.integrations.areal.installing import install
from rollscope.integrations.areal.perf import PerfTracer
from rollscope.integrations.areal.phases import SessionTraceEvent
from rollscope.integrations.areal.sessions import SessionTracer
from rollscope.integrations.areal.state import (
    get_session_id,
    get_task_id,
    set_session_id,
    set_task_id,
)

__all__ = [
    "GLOBAL_TRACER",
    "Category",
    "PerfTraceCategory",
    "PerfTracer",
    "SessionTraceEvent",
    "SessionTracer",
    "atrace_scope",
    "atrace_session_phase",
    "configure",
    "get_session_id",
    "get_session_tracer",
    "get_task_id",
    "get_tracer",
    "install",
    "instant",
    "is_configured",
    "register_session",
    "register_task",
    "reset",
    "save",
    "session_context",
    "set_session_id",
    "set_task_id",
    "trace_perf",
    "trace_scope",
    "trace_session",
    "trace_session_event",
    "trace_session_phase",
]

GLOBAL_TRACER: PerfTracer | None
"""The current tracer, read live."""


def __getattr__(name: str) -> Any:  # noqa: ANN401  (of a module)
    if name == "GLOBAL_TRACER":
        return current_tracer()
    raise AttributeError(name)
