"""`trace_function`: each call of a function a region, about the state among its arguments."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from rollscope.instrument.decorator import traced
from rollscope.instrument.guard import pass_over, tell_once
from rollscope.instrument.spans import NOOP
from rollscope.integrations.xtuner.calls import region_about
from rollscope.integrations.xtuner.regions import Region, current_region, enter_region
from rollscope.integrations.xtuner.runtime import TraceRuntime, active
from rollscope.integrations.xtuner.states import is_state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rollscope.instrument.spans import Span

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]
    FindTarget = Callable[[tuple[Any, ...], dict[str, Any]], object]
    Open = Callable[[TraceRuntime, tuple[Any, ...], dict[str, Any]], Region | None]

__all__ = ["trace_function"]

F = TypeVar("F", bound="Callable[..., Any]")
_STATE_ARGUMENT: Final = "rollout_state"


@overload
def trace_function(name: F, /) -> F: ...
@overload
def trace_function(
    name: str | None = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    target: object = None,
    target_getter: Callable[..., Any] | None = None,
    trace_kwargs_getter: Callable[..., Mapping[str, Any]] | None = None,
    **trace_kwargs: Any,
) -> Callable[[F], F]: ...
def trace_function(
    name: Any = None,
    attributes: Mapping[str, Any] | None = None,
    *,
    target: Any = None,
    target_getter: Callable[..., Any] | None = None,
    trace_kwargs_getter: Callable[..., Mapping[str, Any]] | None = None,
    **trace_kwargs: Any,
) -> Any:
    """Make each call of a function a span; serves coroutines and generators too.

    Args:
        name: The span's name; the function's module and qualified name if not given.
        attributes: Attributes of every span.
        target: The state that a call is about: the name of an argument, an object, or a function
            of the call's arguments. Else the argument `rollout_state`, else the first argument
            that is a state or a list of states.
        target_getter: Gives it from the call's arguments.
        trace_kwargs_getter: Gives fields of the producer trace from the call's arguments.
        **trace_kwargs: Such fields, and attributes.
    """

    def decorator(function: F) -> F:
        label = name if isinstance(name, str) else _name_of(function)
        find = _target_finder(function, label, target, target_getter)

        def open_region(
            runtime: TraceRuntime, args: tuple[Any, ...], kwargs: dict[str, Any]
        ) -> Region | None:
            try:
                fields = dict(trace_kwargs)
                if trace_kwargs_getter is not None:
                    fields.update(_asked(trace_kwargs_getter, label, args, kwargs) or {})
                return region_about(runtime, find(args, kwargs), label, fields, attributes)
            except Exception as error:
                if runtime.options.strict:
                    raise
                pass_over("making a span of XTuner", error)
                return None

        return _wrap(function, open_region)

    return decorator(name) if callable(name) else decorator


def _name_of(function: Callable[..., Any]) -> str:
    qualname = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}.{qualname}"


def _asked(
    ask: Callable[..., Any], label: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:  # noqa: ANN401  (what the program's function gives)
    try:
        return ask(*args, **kwargs)
    except Exception as error:  # the program's own code; the call goes on without its answer
        tell_once(f"xtuner:getter:{label}", "Rollscope could not ask about %s: %s", label, error)
        return None


def _target_finder(
    function: Callable[..., Any], label: str, target: object, getter: Callable[..., Any] | None
) -> FindTarget:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []

    def argument(wanted: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        if wanted in kwargs:
            return kwargs[wanted]
        at = names.index(wanted) if wanted in names else len(args)
        return args[at] if at < len(args) else None

    def find(args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        ask = getter or (target if callable(target) else None)
        if ask is not None:
            return _asked(ask, label, args, kwargs)
        if target is not None:
            return argument(target, args, kwargs) if isinstance(target, str) else target
        found = argument(_STATE_ARGUMENT, args, kwargs)
        if found is not None:
            return found
        return next((item for item in (*args, *kwargs.values()) if _is_target(item)), None)

    return find


def _is_target(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(is_state(item) for item in value)
    return is_state(value)


def _wrap(function: F, open_region: Open) -> F:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return _wrap_generator(function, open_region)
    wrapper: Any
    if inspect.iscoroutinefunction(function):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            runtime = active()
            region = None if runtime is None else open_region(runtime, args, kwargs)
            if region is None:
                return await function(*args, **kwargs)
            with region:
                result = await function(*args, **kwargs)
                region.returned(result)
                return result

    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            runtime = active()
            region = None if runtime is None else open_region(runtime, args, kwargs)
            if region is None:
                return function(*args, **kwargs)
            with region:
                result = function(*args, **kwargs)
                region.returned(result)
                return result

    return cast("F", functools.wraps(function)(wrapper))


class _Surroundings:
    """What changes hands between a generator and its consumer: the current span and region."""

    def get(self) -> tuple[Span | None, Region | None]:
        runtime = active()
        recorder = None if runtime is None else runtime.recorder
        return None if recorder is None else recorder.current.get(), current_region()

    def set(self, around: tuple[Span | None, Region | None]) -> None:
        runtime = active()
        recorder = None if runtime is None else runtime.recorder
        if recorder is not None and around[0] is not None:
            recorder.current.set(around[0])
        enter_region(around[1])


class _Opener:
    """Makes the region around the whole life of a generator."""

    current: Final = _Surroundings()

    def __init__(self, open_region: Open) -> None:
        self._open = open_region

    def new_span(self, name: str, category: str, call: dict[str, Any]) -> Region | Span:
        """Make a region for a call, whose arguments come where attributes come otherwise."""
        runtime = active()
        region = None if runtime is None else self._open(runtime, *call["arguments"])
        return NOOP if region is None else region


def _wrap_generator(function: F, open_region: Open) -> F:
    opener = _Opener(open_region)

    def arguments(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return {"arguments": (args, kwargs)}

    return traced(
        function,
        lambda: None if active() is None else opener,  # type: ignore[arg-type,return-value]  # does for one
        "",
        "misc",
        arguments,
    )
