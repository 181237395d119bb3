"""The `trace` decorator: one span per call, for functions, coroutines and both kinds of generators.

A generator's span lives from its first to its last step and is current only while the generator's
own code runs; what its consumer does between two items stays the consumer's.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from rollscope.instrument.guard import guarded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextvars import ContextVar

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

    GetRecorder = Callable[[], Recorder | None]
    AttrsOf = Callable[..., dict[str, Any]]
    NewSpan = Callable[[Recorder, tuple[Any, ...], dict[str, Any]], Span]

__all__ = ["traced"]

F = TypeVar("F", bound="Callable[..., Any]")

# The flags of `inspect`, whose import would cost more than the rest of this package.
_GENERATOR: Final = 0x20
_COROUTINE: Final = 0x80 | 0x100
_ASYNC_GENERATOR: Final = 0x200


def traced(
    function: F, recorder: GetRecorder, name: str, category: str, attrs: AttrsOf | None
) -> F:
    """Wrap a function so that each call is a span."""

    def new_span(active: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Span:
        given: dict[str, Any] = {}
        if attrs is not None:
            with guarded(f"the attrs of {name}"):
                given = dict(attrs(*args, **kwargs))
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


def _code_flags(function: Any) -> int:  # noqa: ANN401  (any callable)
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    if code is None:  # an object with a __call__ of its own
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
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
        switch = _Switch(active.current)
        with new_span(active, args, kwargs):
            step, value = generator.send, None
            while True:
                try:
                    item = step(value)
                except StopIteration as stop:
                    return stop.value
                switch.to_consumer()
                try:
                    step, value = generator.send, (yield item)
                except GeneratorExit:
                    switch.to_generator()
                    generator.close()
                    raise
                except BaseException as error:
                    step, value = generator.throw, error
                switch.to_generator()

    return wrapper


def _wrap_async_generator(
    function: Callable[..., Any], recorder: GetRecorder, new_span: NewSpan
) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        active = recorder()
        generator = function(*args, **kwargs)
        if active is None:
            async for item in generator:
                yield item
            return
        switch = _Switch(active.current)
        with new_span(active, args, kwargs):
            step, value = generator.asend, None
            while True:
                try:
                    item = await step(value)
                except StopAsyncIteration:
                    return
                switch.to_consumer()
                try:
                    step, value = generator.asend, (yield item)
                except GeneratorExit:
                    switch.to_generator()
                    await generator.aclose()
                    raise
                except BaseException as error:
                    step, value = generator.athrow, error
                switch.to_generator()

    return wrapper


class _Switch:
    """Swaps the current span between a generator and whoever consumes it."""

    __slots__ = ("_current", "_inner", "_outer")

    def __init__(self, current: ContextVar[Span]) -> None:
        self._current = current
        self._outer = self._inner = current.get()

    def to_consumer(self) -> None:
        self._inner = self._current.get()
        self._current.set(self._outer)

    def to_generator(self) -> None:
        self._outer = self._current.get()
        self._current.set(self._inner)
