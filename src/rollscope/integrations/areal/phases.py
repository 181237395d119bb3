"""Functions and blocks that belong to sessions: marks, phases, and the session of a call."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from rollscope.instrument.decorator import traced
from rollscope.instrument.guard import pass_over, tell_once
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import NOOP
from rollscope.integrations.areal import state
from rollscope.integrations.areal.lines import copy_args

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rollscope.instrument.spans import Span
    from rollscope.integrations.areal.records import Interval, SessionRecord
    from rollscope.integrations.areal.sessions import SessionTracer

__all__ = ["Call", "Opener", "Phase", "SessionTraceEvent", "send_event", "wrap"]

F = TypeVar("F", bound="Callable[..., Any]")

_MARK: Final = "mark_"


class SessionTraceEvent(str, Enum):  # noqa: UP042  (its `str()` is the original's)
    """What can be recorded of a session."""

    FINALIZED = "finalized"
    GENERATE_START = "generate_start"
    GENERATE_END = "generate_end"
    REWARD_START = "reward_start"
    REWARD_END = "reward_end"
    TOOLCALL_START = "toolcall_start"
    TOOLCALL_END = "toolcall_end"


def send_event(
    tracer: SessionTracer,
    method: str,
    session_id: int | None,
    task_id: int | None,
    payload: dict[str, Any],
) -> None:
    """Do what a method's name asks for, for one session or for all of a task."""
    payload = copy_args(payload)
    if method == "mark_finalized":
        if session_id is not None:
            tracer.finalise(session_id, payload)
        elif task_id is not None:
            tracer.finalise_task(task_id, payload)
        return
    if session_id is not None:
        chosen = [session_id]
    else:
        chosen = [] if task_id is None else tracer.get_session_ids(task_id)
    method = str(method)
    is_known = True
    for each in chosen:
        if method == "increment_counter":
            if payload.get("name"):
                tracer.increment_counter(each, payload["name"], payload.get("value", 1))
        else:
            name = method.removeprefix(_MARK)
            is_known = name != method and tracer.mark(each, name, payload.copy())
    if not is_known:
        shown = clean_text(method, 100)
        tell_once(f"areal-method:{shown}", "Rollscope does not know the method %r", shown)


class Phase:
    """One time in a phase, with `with` or `async with`."""

    __slots__ = ("_before", "_end_payload", "_name", "_part", "_start_payload", "_tracer", "_whose")

    def __init__(
        self,
        tracer: SessionTracer,
        session_id: int,
        name: str,
        start_payload: dict[str, Any] | None,
        end_payload: dict[str, Any] | None,
    ) -> None:
        self._tracer, self._whose, self._name = tracer, session_id, name
        self._start_payload = copy_args(start_payload)
        self._end_payload = copy_args(end_payload)
        self._part: Interval | None = None
        self._before: Span | None = None

    def __enter__(self) -> Self:
        """Begin the phase; spans inside belong to it."""
        try:
            self._begin()
        except Exception as error:
            pass_over("beginning a phase", error)
        return self

    def _begin(self) -> None:
        part = self._tracer.begin_phase(self._whose, self._name, self._start_payload)
        self._part = part
        recorder = state.recorder()
        if part is not None and part.span is not None and recorder is not None:
            self._before = recorder.current.get()
            recorder.current.set(part.span)

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """End the phase; an exception passes on."""
        if self._part is not None:
            try:
                self._tracer.end_phase(self._whose, self._part, self._end_payload, error)
            except Exception as fault:
                pass_over("ending a phase", fault)
        recorder = state.recorder()
        if self._before is not None and recorder is not None:
            recorder.current.set(self._before)

    async def __aenter__(self) -> Self:
        """Do as `__enter__`."""
        return self.__enter__()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Do as `__exit__`."""
        self.__exit__(error_type, error, traceback)


class Call:
    """A call that is a session of its own, of the task that code in this context works on."""

    __slots__ = ("_around", "_before", "_record", "_tracer")

    def __init__(self, tracer: SessionTracer) -> None:
        self._tracer = tracer
        self._record: SessionRecord | None = None
        self._around: Span = NOOP

    def __enter__(self) -> Self:
        """Begin the session and name it in this context."""
        self._before = state.session_id.get()
        try:
            self._begin()
        except Exception as error:
            pass_over("beginning a session", error)
        return self

    def _begin(self) -> None:
        task_id = state.task_id.get()
        session_id = None if task_id is None else self._tracer.register_session(task_id)
        state.session_id.set(session_id)
        if session_id is not None:
            self._record = self._tracer.begin_call(session_id)
        recorder = state.recorder()
        if recorder is not None and self._record is not None and self._record.span is not None:
            self._around = recorder.current.get()
            recorder.current.set(self._record.span)

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """End the session, and name again what was named before."""
        if self._record is not None:
            try:
                self._tracer.end_call(self._record, error)
            except Exception as fault:
                pass_over("ending a session", fault)
            recorder = state.recorder()
            if recorder is not None:
                recorder.current.set(self._around)
        state.session_id.set(self._before)


class _Pair:
    """What changes hands between a generator and its consumer: the current span and session."""

    def get(self) -> tuple[Any, int | None]:
        recorder = state.recorder()
        span = None if recorder is None else recorder.current.get()
        return span, state.session_id.get()

    def set(self, pair: tuple[Any, int | None]) -> None:
        recorder = state.recorder()
        if recorder is not None and pair[0] is not None:
            recorder.current.set(pair[0])
        state.session_id.set(pair[1])


class Opener:
    """Makes the block around each call of a wrapped function."""

    current: Final = _Pair()

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def new_span(self, name: str, category: str, attrs: dict[str, Any]) -> Any:  # noqa: ANN401
        """Make a block."""
        return self._make()


def wrap(function: F, opener: Callable[[], Opener | None], name: str) -> F:
    """Put a block around each call, whether a function, coroutine or generator; none if off."""
    return traced(function, opener, name, "misc", None)  # type: ignore[arg-type]  # it does for one
