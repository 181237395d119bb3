"""The `trace` decorator: one span per call, for functions, coroutines and both kinds of generators.

A generator's span lives from its first to its last step and is current only while the generator's
own code runs; what its consumer does between two items stays the consumer's.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from rollscope.instrument.guard import guarded
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import NOOP, Span

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from types import TracebackType

    from rollscope.instrument.recorder import Recorder

    GetRecorder = Callable[[], Recorder | None]
    AttrsOf = Callable[..., dict[str, Any]]
    NewSpan = Callable[[Recorder, tuple[Any, ...], dict[str, Any]], Span]

__all__ = ["traced"]

F = TypeVar("F", bound="Callable[..., Any]")

# The flags of `inspect`, whose import would cost more than the rest of this package.
_GENERATOR: Final = 0x20
_COROUTINE: Final = 0x80 | 0x100
_ASYNC_GENERATOR: Final = 0x200
_KEY_BYTES: Final = 512
_UNRECORDED: Final[ContextVar[Span]] = ContextVar("rollscope-unrecorded", default=NOOP)
"""Stands for a tracer's current span where there is no tracer."""


def traced(
    function: F, recorder: GetRecorder, name: str, category: str, attrs: AttrsOf | None
) -> F:
    """Wrap a function so that each call is a span."""
    if isinstance(function, (classmethod, staticmethod)):
        inner = traced(function.__func__, recorder, name, category, attrs)
        return cast("F", type(function)(inner))  # so the decorators may stand in either order

    def new_span(active: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Span:
        given: dict[str, Any] = {}
        if attrs is not None:
            with guarded(f"the attrs of {name}"):
                given = {_as_key(key): value for key, value in attrs(*args, **kwargs).items()}
        return active.new_span(name, category, given)

    flags = _code_flags(function)
    wrapper: Any
    if flags & _ASYNC_GENERATOR:
        wrapper = _wrap_async_generator(function, recorder, new_span)
    elif flags & _GENERATOR and not flags & _COROUTINE:
        wrapper = _wrap_generator(function, recorder, new_span)
    elif flags & _COROUTINE:
        wrapper = _wrap_coroutine(function, recorder, new_span)
    else:
        wrapper = _wrap_function(function, recorder, new_span)
    return cast("F", functools.wraps(function)(wrapper))  # it takes and gives what F does


def _as_key(key: object) -> str:
    return key if type(key) is str else clean_text(key, _KEY_BYTES)


def _code_flags(function: Any) -> int:  # noqa: ANN401  (any callable)
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None:  # an object of a class with a __call__
        call = getattr(type(function), "__call__", None)  # noqa: B004  (its code is wanted)
        code = getattr(call, "__code__", None)
    return 0 if code is None else int(code.co_flags)


def _wrap_function(
    function: Callable[..., Any], recorder: GetRecorder, new_span: NewSpan
) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        active = recorder()
        if active is None:
            return function(*args, **kwargs)
        with new_span(active, args, kwargs):
            return function(*args, **kwargs)

    return wrapper


def _wrap_coroutine(
    function: Callable[..., Any], recorder: GetRecorder, new_span: NewSpan
) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        active = recorder()
        if active is None:
            return await function(*args, **kwargs)
        with new_span(active, args, kwargs):
            return await function(*args, **kwargs)

    return wrapper


def _wrap_generator(
    function: Callable[..., Any], recorder: GetRecorder, new_span: NewSpan
) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        active = recorder()
        if active is None:
            return (yield from function(*args, **kwargs))
        generator = function(*args, **kwargs)
        with _Turns(active.current, new_span(active, args, kwargs)) as turns:
            step, value = generator.send, None
            while True:
                try:
                    item = step(value)
                except StopIteration as stop:
                    return stop.value
                turns.to_consumer()
                try:
                    step, value = generator.send, (yield item)
                except GeneratorExit:
                    turns.to_generator()
                    generator.close()
                    raise
                except BaseException as error:
                    step, value = generator.throw, error
                turns.to_generator()

    return wrapper


def _wrap_async_generator(
    function: Callable[..., Any], recorder: GetRecorder, new_span: NewSpan
) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        active = recorder()
        generator = function(*args, **kwargs)
        # There is no `yield from` here, so what is sent and thrown is handed on by hand, also when
        # nothing is recorded.
        current = _UNRECORDED if active is None else active.current
        span = NOOP if active is None else new_span(active, args, kwargs)
        with _Turns(current, span) as turns:
            step, value = generator.asend, None
            while True:
                try:
                    item = await step(value)
                except StopAsyncIteration:
                    return
                turns.to_consumer()
                try:
                    step, value = generator.asend, (yield item)
                except GeneratorExit:
                    turns.to_generator()
                    await generator.aclose()
                    raise
                except BaseException as error:
                    step, value = generator.athrow, error
                turns.to_generator()

    return wrapper


class _Turns:
    """The span of a generator: current while the generator runs, not while its consumer does.

    The consumer may be under another span each time, and at the end; that one stays current.
    """

    __slots__ = ("_current", "_inner", "_outer", "_span")

    def __init__(self, current: ContextVar[Span], span: Span) -> None:
        self._current = current
        self._span = span
        self._outer = self._inner = current.get()

    def __enter__(self) -> Self:
        self._span.__enter__()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._span.__exit__(error_type, error, traceback)
        self._current.set(self._outer)

    def to_consumer(self) -> None:
        self._inner = self._current.get()
        self._current.set(self._outer)

    def to_generator(self) -> None:
        self._outer = self._current.get()
        self._current.set(self._inner)
