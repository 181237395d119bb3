"""Where open spans hang: chains of awaits of asyncio tasks, and call stacks of threads.

Nothing is asked of the caller's path. Each asyncio task runs in a context, and the context tells
its current span; so the tasks are walked when a stack is wanted, from any thread, while they run.
"""

from __future__ import annotations

import gc
import sys
import threading
from contextvars import Context
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rollscope.instrument.spans import lineage
from rollscope.instrument.stepaside import step_aside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextvars import ContextVar
    from types import FrameType

    from rollscope.instrument.spans import Span

__all__ = ["SpanStack", "await_chain", "call_chain", "capture_stacks"]

Positions = dict[tuple[int, int], str]
"""Each position in the code is written once: thousands of spans tend to hang at the same few.

By the identity of the code, since hashing it looks at all of its constants, and by instruction,
since finding the line of one means decoding a table.
"""

_MAX_FRAMES: Final = 64
_MAX_DEPTH: Final = 10_000
_STACKS_PER_SPAN: Final = 4
_SLICE: Final = 64
"""After so many tasks whoever waits for the interpreter gets it: they take half a millisecond, and
a thread that keeps at it is only made to let go after five."""
_SHOWING: Final = (CoroutineType, GeneratorType, AsyncGeneratorType)
_HIDING: Final = frozenset(
    {
        "anext_awaitable",
        "async_generator_asend",
        "async_generator_athrow",
        "coroutine_wrapper",
    }
)


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
    wanted = {span.id for span in spans}
    positions: Positions = {}
    stacks: list[SpanStack] = []
    held: dict[int, int] = {}
    for number, task in enumerate(_asyncio_tasks(), 1):
        if not number % _SLICE:
            step_aside()
        span = _current_of(task, current)
        if span is None or span.id not in wanted:
            span = _innermost(span, wanted)
        if span is None or held.get(span.id, 0) >= _STACKS_PER_SPAN:
            continue
        coroutine = task.get_coro()
        if getattr(coroutine, "cr_running", False):
            continue  # it blocks its loop; the stack of the thread tells more
        stacks.append(SpanStack(span.id, task.get_name(), await_chain(coroutine, positions)))
        held[span.id] = held.get(span.id, 0) + 1
        outer = span.parent
        while outer.id and outer.id not in held:
            held[outer.id] = 0
            outer = outer.parent
    unheld = [span for span in spans if span.id not in held]
    stacks.extend(_thread_stacks(unheld, positions))
    return stacks


def _innermost(span: Span | None, wanted: set[int]) -> Span | None:
    """Give the first wanted span on the way from `span` outwards."""
    return next((outer for outer in lineage(span) if outer.id in wanted), None)


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
        context: Context = task.get_context()
        return context.get(current)
    for held in gc.get_referents(task):
        if type(held) is Context:
            return held.get(current)
    return None


def await_chain(awaited: Any, positions: Positions | None = None) -> list[str]:  # noqa: ANN401
    """Follow what a coroutine awaits down to the innermost frame."""
    positions = {} if positions is None else positions
    chain: list[str] = []
    while awaited is not None and len(chain) < _MAX_DEPTH:
        kind = type(awaited)
        if kind is CoroutineType:
            frame, inner = awaited.cr_frame, awaited.cr_await
        elif kind is GeneratorType:
            frame, inner = awaited.gi_frame, awaited.gi_yieldfrom
        elif kind is AsyncGeneratorType:
            frame, inner = awaited.ag_frame, awaited.ag_await
        else:
            awaited = _hidden_inner(awaited)
            continue
        if frame is None:
            break
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        chain.append(positions.get(key) or _add_position(frame, key, positions))
        awaited = inner
    return chain[-_MAX_FRAMES:]  # where it waits is at the inner end


def _hidden_inner(awaited: object) -> object | None:
    """Find what a built-in wrapper, such as that of `anext`, awaits and does not show."""
    if type(awaited).__name__ not in _HIDING:
        return None
    held: object
    for held in gc.get_referents(awaited):
        if type(held) in _SHOWING or type(held).__name__ in _HIDING:
            return held
    return None


def _thread_stacks(spans: list[Span], positions: Positions) -> Iterator[SpanStack]:
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
            calls = call_chain(frames[thread], positions)
            yield SpanStack(span.id, names.get(thread, str(thread)), calls)


def call_chain(frame: FrameType | None, positions: Positions | None = None) -> list[str]:
    """Give the calls that led to a frame, outermost first."""
    positions = {} if positions is None else positions
    chain: list[str] = []
    while frame is not None and len(chain) < _MAX_FRAMES:
        key = (id(frame.f_code), frame.f_lasti)
        chain.append(positions.get(key) or _add_position(frame, key, positions))
        frame = frame.f_back
    return chain[::-1]


def _add_position(frame: FrameType, key: tuple[int, int], positions: Positions) -> str:
    code = frame.f_code
    positions[key] = text = f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}"
    return text
