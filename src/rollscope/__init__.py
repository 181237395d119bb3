"""Rollscope shows where every rollout's time goes.

    import rollscope as rs

    rs.init(run="gsm8k-grpo")
    async with rs.task("gsm8k/8421"):
        async with rs.session(sample=3, version=12) as session:
            with rs.phase("generate"):
                ...
            session.finish("accepted", reward=1.0)

Importing it starts nothing and loads no reader; without `init` every call is a near-free no-op.
"""

from rollscope._version import __version__
from rollscope.instrument.default import (
    annotate,
    attach,
    carry,
    child_env,
    count,
    current,
    enabled,
    event,
    flush,
    gauge,
    init,
    inject,
    observe,
    payload,
    phase,
    session,
    shutdown,
    span,
    stacks,
    state,
    step,
    task,
    trace,
)
from rollscope.instrument.spans import Session, Span
from rollscope.instrument.tracer import Tracer
from rollscope.model.refs import SpanRef
from rollscope.opening import open, report

__all__ = [
    "Session",
    "Span",
    "SpanRef",
    "Tracer",
    "__version__",
    "annotate",
    "attach",
    "carry",
    "child_env",
    "count",
    "current",
    "enabled",
    "event",
    "flush",
    "gauge",
    "init",
    "inject",
    "observe",
    "open",
    "payload",
    "phase",
    "report",
    "session",
    "shutdown",
    "span",
    "stacks",
    "state",
    "step",
    "task",
    "trace",
]
