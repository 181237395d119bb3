"""The module-level functions: the one tracer that `configure` makes and `reset` forgets."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

import rollscope as rs
from rollscope.instrument.guard import guarded, pass_over
from rollscope.instrument.spans import NOOP
from rollscope.integrations.areal import state
from rollscope.integrations.areal.arguments import take_arguments
from rollscope.integrations.areal.perf import PerfTracer
from rollscope.integrations.areal.phases import Call, Opener, Phase, send_event, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.instrument.spans import Span
    from rollscope.integrations.areal.categories import CategoryLike
    from rollscope.integrations.areal.scopes import Scope
    from rollscope.integrations.areal.sessions import SessionTracer

__all__ = [
    "atrace_scope",
    "atrace_session_phase",
    "configure",
    "current_tracer",
    "get_session_tracer",
    "get_tracer",
    "instant",
    "is_configured",
    "register_session",
    "register_task",
    "reset",
    "save",
    "session_context",
    "trace_perf",
    "trace_scope",
    "trace_session",
    "trace_session_event",
    "trace_session_phase",
]

F = TypeVar("F", bound="Callable[..., Any]")

logger = logging.getLogger("rollscope.areal")
_EVENT: Final = ("method", "session_id", "task_id")
_tracer: PerfTracer | None = None
_owns_run = False
_lock = threading.Lock()


def configure(config: object, *, rank: int, role: str | None = None) -> PerfTracer:
    """Make the tracer of this process, and start to record unless the program already does.

    Args:
        config: A `PerfTracerConfig`, or anything with its names as attributes or keys.
        rank: Of this process.
        role: What this process does.

    Raises:
        RuntimeError: There is one already; `reset` it first.
        ValueError: The rank is negative, or the config lacks a name.
    """
    global _tracer, _owns_run
    with _lock:
        if _tracer is not None:
            raise RuntimeError("the tracer is configured already; call reset() first")
        tracer = PerfTracer(config, rank=rank, role=role)
        sessions = tracer.session_tracer is not None
        if (tracer.enabled or sessions) and not rs.enabled():
            with guarded("starting to record"):
                _start_run(tracer, rank, role)
                _owns_run = True
        _tracer = tracer
    logger.info(
        "tracing: perf %s, sessions %s, rank %d, role %s", tracer.enabled, sessions, rank, role
    )
    return tracer


def _start_run(tracer: PerfTracer, rank: int, role: str | None) -> None:
    settings = tracer.settings
    wanted: dict[str, Any] = {
        "dir": os.path.join(settings.folder, "rollscope"),
        "run": settings.run,
        "viewer": True if settings.live else None,
        "buffer_mb": max(settings.max_buffer_mb, 1.0),
    }
    # What an operator has set beats what follows from the config.
    given = {k: v for k, v in wanted.items() if f"ROLLSCOPE_{k.upper()}" not in os.environ}
    rs.init(rank=rank, role=role, **given)


def reset() -> None:
    """Write everything and forget the tracer, so that another can be configured."""
    global _tracer, _owns_run
    with _lock:
        tracer, _tracer = _tracer, None
        owned, _owns_run = _owns_run, False
    if tracer is not None:
        with guarded("resetting the tracer"):
            tracer.close()
    if owned:
        rs.shutdown()


def current_tracer() -> PerfTracer | None:
    """Give the tracer, if there is one."""
    return _tracer


def is_configured() -> bool:
    """Say whether there is a tracer."""
    return _tracer is not None


def get_tracer() -> PerfTracer:
    """Give the tracer.

    Raises:
        RuntimeError: There is none.
    """
    if _tracer is None:
        raise RuntimeError("the tracer is not configured; call configure(...) first")
    return _tracer


def get_session_tracer() -> SessionTracer | None:
    """Give the tracer of sessions, if there is one."""
    return None if _tracer is None else _tracer.session_tracer


def save(*, step: int | None = None, force: bool = False) -> None:
    """Have what was recorded written; see `PerfTracer.save`."""
    if _tracer is not None:
        _tracer.save(step=step, force=force)


def trace_scope(
    name: str,
    *,
    category: CategoryLike = None,
    enable_profiler: bool = False,
    profiler_args: dict[str, Any] | None = None,
    args: dict[str, Any] | None = None,
) -> Scope | Span:
    """Time a block; serves `with` and `async with`.

    Args:
        name: What is done.
        category: A `PerfTraceCategory`, or text.
        enable_profiler: Run torch's profiler, in the steps that the config names.
        profiler_args: For torch's profiler.
        args: What else is known; `global_step` is passed on to what happens inside.
    """
    tracer = _tracer
    if tracer is None or not tracer._enabled:
        return NOOP
    return tracer.trace_scope(
        name,
        category=category,
        enable_profiler=enable_profiler,
        profiler_args=profiler_args,
        args=args,
    )


atrace_scope = trace_scope


def trace_perf(name: str, *, category: CategoryLike = None) -> Callable[[F], F]:
    """Make each call of a function a scope; generators count until they are exhausted."""
    open_scope = Opener(lambda: trace_scope(name, category=category))

    def opener() -> Opener | None:
        return open_scope if _tracer is not None and _tracer._enabled else None

    return lambda function: wrap(function, opener, name)


def instant(
    name: str, *, category: CategoryLike = None, args: dict[str, Any] | None = None
) -> None:
    """Record a moment."""
    tracer = _tracer
    if tracer is not None and tracer._enabled:
        tracer.instant(name, category=category, args=args)


def register_task(task_id: int) -> None:
    """Begin a task."""
    tracer = get_session_tracer()
    if tracer is not None:
        with guarded("beginning a task"):
            tracer.register_task(task_id)


def register_session(task_id: int) -> int | None:
    """Begin a session of a task and give its number; None if sessions are not traced."""
    tracer = get_session_tracer()
    if tracer is not None:
        with guarded("beginning a session"):
            return tracer.register_session(task_id)
    return None


def session_context() -> Callable[[F], F]:
    """Make each call of a function a session of the current task, named in its context."""

    def open_call() -> Call | Span:
        tracer = get_session_tracer()
        return NOOP if tracer is None else Call(tracer)

    open_session = Opener(open_call)

    def opener() -> Opener | None:
        return None if get_session_tracer() is None else open_session

    return lambda function: wrap(function, opener, "session")


def trace_session_phase(
    phase: str,
    *,
    start_payload: dict[str, Any] | None = None,
    end_payload: dict[str, Any] | None = None,
) -> Phase | Span:
    """Time a phase of the current session; serves `with` and `async with`."""
    tracer = get_session_tracer()
    session_id = state.session_id.get()
    if tracer is None or session_id is None:
        return NOOP
    try:
        return Phase(tracer, session_id, phase, start_payload, end_payload)
    except Exception as error:  # payloads are the host's
        pass_over("making a phase", error)
        return NOOP


atrace_session_phase = trace_session_phase


def trace_session(phase: str) -> Callable[[F], F]:
    """Make each call of a function a phase of the current session."""
    open_phase = Opener(lambda: trace_session_phase(phase))

    def opener() -> Opener | None:
        return None if get_session_tracer() is None else open_phase

    return lambda function: wrap(function, opener, phase)


def trace_session_event(*given: Any, **payload: Any) -> None:
    """Record something of a session, or of all sessions of a task.

    `trace_session_event(method, session_id=None, task_id=None, **payload)`; facts may have any
    name, also that of an argument that was given by its place.

    Args:
        *given: `method` is `mark_finalized`, `mark_{phase}_start`, `mark_{phase}_end` or
            `increment_counter`; `session_id` wins over `task_id`.
        **payload: `status` and `reason` of a verdict, `name` and `value` of a counter, or facts.

    Raises:
        TypeError: No method is given, or too many arguments.
    """
    tracer = get_session_tracer()
    if tracer is None:
        return
    method, session_id, task_id = take_arguments("trace_session_event", _EVENT, given, payload)
    with guarded("recording a session's event"):
        send_event(tracer, method, session_id, task_id, payload)
