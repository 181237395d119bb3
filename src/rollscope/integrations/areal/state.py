"""What a block of code is in: its task, session and step, and Rollscope's own current span."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rollscope.instrument import default

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = [
    "enter_under",
    "get_session_id",
    "get_task_id",
    "recorder",
    "session_id",
    "set_session_id",
    "set_task_id",
    "step",
    "task_id",
]

task_id: ContextVar[int | None] = ContextVar("rollscope-areal-task", default=None)
session_id: ContextVar[int | None] = ContextVar("rollscope-areal-session", default=None)
step: ContextVar[Any] = ContextVar("rollscope-areal-step", default=None)


def set_task_id(value: int | None) -> None:
    """Name the task that code in this context works on."""
    task_id.set(value)


def get_task_id() -> int | None:
    """Give the task that code in this context works on."""
    return task_id.get()


def set_session_id(value: int | None) -> None:
    """Name the session that code in this context works on."""
    session_id.set(value)


def get_session_id() -> int | None:
    """Give the session that code in this context works on."""
    return session_id.get()


def recorder() -> Recorder | None:
    """Give Rollscope's recorder, if it records."""
    return default._tracer._recorder


def enter_under(active: Recorder, span: Span, parent: Span | None) -> None:
    """Open a span as a child of another, and leave the current one current."""
    current = active.current
    before = current.get()
    if parent is not None:
        current.set(parent)
    span.__enter__()
    current.set(before)
