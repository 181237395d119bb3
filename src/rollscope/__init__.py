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

import os
from typing import TYPE_CHECKING

from rollscope._version import __version__
from rollscope.errors import MissingExtra
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

if TYPE_CHECKING:
    from rollscope.answers.run import Run

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
    "session",
    "shutdown",
    "span",
    "stacks",
    "state",
    "step",
    "task",
    "trace",
]


def open(run: str | os.PathLike[str], *, dir: str = "runs", threads: int | None = None) -> "Run":
    """Open a recorded run to ask it questions; it may still be written to.

    Args:
        run: Its directory, one of its logs, or its name in `dir`.
        dir: Where runs are looked for by name.
        threads: How many threads a query may use; all cores if not given.

    Raises:
        NotARunError: There is none; the message says what is there instead.
        MissingExtra: What reads runs is not installed.
    """
    try:
        from rollscope.answers.run import open_run  # a training program never loads it
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"reading runs needs {error.name}, which is not installed: "
            "pip install 'rollscope[server]'"
        ) from error
    return open_run(run, dir=dir, threads=threads)
