"""Where open spans hang: chains of awaits of asyncio tasks, and call stacks of threads.

Nothing is asked of the caller's path. Each asyncio task runs in a context, and the context tells
its current span; so the tasks are walked when a stack is wanted, from any thread, while they run.
"""

from __future__ import annotations

import gc
import sys
import threading
from contextvars import Context
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextvars import ContextVar
    from types import CodeType, FrameType

    from rollscope.instrument.spans import Span

__all__ = ["SpanStack", "capture_stacks"]

_MAX_FRAMES: Final = 64
_STACKS_PER_SPAN: Final = 4


class SpanStack(NamedTuple):
    """Where one span hangs."""

    span_id: int
    task: str
    """Name of the asyncio task or thread."""
    frames: list[str]
    """`file:line function`, outermost first."""


def capture_stacks(current: ContextVar[Span], spans: Collection[Span]) -> list[SpanStack]:
    """Say where each of the given open spans hangs.

    A span gets the await chains of the tasks that it is the innermost wanted span of, at most
    four; a span that no task holds gets the call stack of the thread it was entered in.
    """
    wanted = {span.id: span for span in spans}
    stacks: list[SpanStack] = []
    held: dict[int, int] = {}
    for task in _asyncio_tasks():
        span = _innermost(_current_of(task, current), wanted)
        coroutine = task.get_coro()
        if span is None or held.get(span.id, 0) >= _STACKS_PER_SPAN:
            continue
        if getattr(coroutine, "cr_running", False):
            continue  # it blocks its loop; the stack of the thread tells more
        stacks.append(SpanStack(span.id, task.get_name(), list(_await_chain(coroutine))))
        while span is not None and span.id:
            held[span.id] = held.get(span.id, 0) + 1
            span = span.parent
    stacks.extend(_thread_stacks([span for span in spans if span.id not in held]))
    return stacks


def _innermost(span: Span | None, wanted: dict[int, Span]) -> Span | None:
    """Give the first wanted span on the way from `span` outwards."""
    while span is not None and span.id:
        if span.id in wanted:
            return span
        span = span.parent
    return None


def _asyncio_tasks() -> list[Any]:
    """List the unfinished tasks of every loop of the process."""
    tasks_module = sys.modules.get("asyncio.tasks")
    if tasks_module is None:
        return []
    registry: Any = getattr(tasks_module, "_all_tasks", None)  # up to 3.13
    if registry is None:
        registry = getattr(tasks_module, "_scheduled_tasks", ())
    for _ in range(100):
        try:
            found = list(registry)
        except RuntimeError:  # another thread started a task meanwhile
            continue
        return [task for task in found if not task.done()]
    return []


def _current_of(task: Any, current: ContextVar[Span]) -> Span | None:  # noqa: ANN401
    """Give the current span in a task's context."""
    if hasattr(task, "get_context"):  # from 3.12 on
        context = task.get_context()
    else:
        context = next((held for held in gc.get_referents(task) if type(held) is Context), None)
    return None if context is None else context.get(current)


def _await_chain(awaited: Any) -> Iterator[str]:  # noqa: ANN401
    """Follow what a coroutine awaits down to the innermost frame."""
    for _ in range(_MAX_FRAMES):
        if hasattr(awaited, "cr_frame"):
            frame, inner = awaited.cr_frame, awaited.cr_await
        elif hasattr(awaited, "gi_frame"):
            frame, inner = awaited.gi_frame, awaited.gi_yieldfrom
        elif hasattr(awaited, "ag_frame"):
            frame, inner = awaited.ag_frame, awaited.ag_await
        else:
            inner = _hidden_generator(awaited)
            if inner is None:
                return
            awaited = inner
            continue
        if frame is None:
            return
        yield _position(frame.f_code, frame.f_lineno)
        if inner is None:
            return
        awaited = inner


def _hidden_generator(awaited: object) -> object | None:
    """Find the async generator behind `__anext__` or `asend`, which does not show it."""
    if type(awaited).__name__ not in ("async_generator_asend", "async_generator_athrow"):
        return None
    return next((held for held in gc.get_referents(awaited) if hasattr(held, "ag_frame")), None)


def _thread_stacks(spans: list[Span]) -> Iterator[SpanStack]:
    if not spans:
        return
    innermost: dict[int, Span] = {}
    for span in spans:
        rival = innermost.get(span.thread)
        if rival is None or span.start_ns >= rival.start_ns:
            innermost[span.thread] = span
    frames = sys._current_frames()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for thread, span in innermost.items():
        if thread in frames:
            calls = list(_call_chain(frames[thread]))
            yield SpanStack(span.id, names.get(thread, str(thread)), calls)


def _call_chain(frame: FrameType | None) -> Iterator[str]:
    found: list[str] = []
    while frame is not None and len(found) < _MAX_FRAMES:
        found.append(_position(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return reversed(found)


def _position(code: CodeType, line: int | None) -> str:
    return f"{code.co_filename}:{line} {code.co_qualname}"
