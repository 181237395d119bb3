"""The calls that both designs share by name; which one is meant is told by the arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from rollscope.instrument.guard import guarded, tell_once
from rollscope.instrument.spans import NOOP
from rollscope.integrations.xtuner.regions import (
    EVENT_FIELDS,
    Region,
    current_region,
    path_in,
)
from rollscope.integrations.xtuner.runtime import TraceRuntime, active
from rollscope.integrations.xtuner.states import is_state, members_of
from rollscope.integrations.xtuner.values import clean_attributes, clean_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator
    from types import TracebackType

    from rollscope.instrument.propagation import Attachment
    from rollscope.instrument.spans import Span

__all__ = [
    "TraceContext",
    "extract_trace_context",
    "inject_trace_context",
    "set_trace_attributes",
    "trace_event",
    "trace_function",
    "trace_span",
]

F = TypeVar("F", bound="Callable[..., Any]")
_STATE_ARGUMENT: Final = "rollout_state"


class _Done:
    """Something to await that is over already."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE: Final = _Done()


def trace_span(
    first: Any,  # noqa: ANN401  (a name, or what the span is about)
    second: Any = None,  # noqa: ANN401
    /,
    *,
    parent_carrier: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Region | Span:
    """Time a block, with `with` or `async with`.

    `trace_span("name", {…}, parent_carrier=…)` is a span; `trace_span(state, "name", …)` one of a
    rollout, or of each in a list.
    """
    runtime = active()
    if runtime is None:
        return NOOP
    strict = runtime.options.strict
    if isinstance(first, str) or second is None or isinstance(second, Mapping):
        name, given = clean_name(first, strict=strict), second if attributes is None else attributes
        cleaned = clean_attributes(given, strict=strict)
        return Region(runtime, name, cleaned, carrier=parent_carrier, event_fields=fields)
    return _about(runtime, first, second, fields, attributes)


def _about(
    runtime: TraceRuntime,
    target: object,
    name: object,
    fields: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
) -> Region:
    strict = runtime.options.strict
    other = {key: item for key, item in fields.items() if key not in EVENT_FIELDS}
    return Region(
        runtime,
        clean_name(name, strict=strict),
        clean_attributes({**(attributes or {}), **other}, strict=strict),
        target=target,
        event_fields={key: item for key, item in fields.items() if key in EVENT_FIELDS},
        carries=True,
    )


def trace_event(first: Any, second: Any = None, /, **fields: Any) -> _Done:  # noqa: ANN401
    """Record an instant, at once; what it gives back may be awaited.

    `trace_event("name", {…})` belongs to the span around, `trace_event(state, "name", …)` to a
    rollout, or to each in a list.
    """
    runtime = active()
    if runtime is not None:
        strict = runtime.options.strict
        if isinstance(first, str):
            name = clean_name(first, strict=strict)
            given = clean_attributes(fields.pop("attributes", second), strict=strict)
        else:
            name = clean_name(second, strict=strict)
            given = clean_attributes(fields, strict=strict)
        with guarded("recording an event of XTuner"):
            _record_event(runtime, name, given, None if isinstance(first, str) else first, fields)
    return _DONE


def _record_event(
    runtime: TraceRuntime, name: str, given: dict[str, Any], target: object, fields: dict[str, Any]
) -> None:
    region, recorder = current_region(), runtime.recorder
    if target is not None and runtime.wants_events:
        runtime.mark(target, name, **fields)
    if region is not None:
        region.add_event(name, given)
    if recorder is None:
        return
    members = members_of(target)
    if not members:
        recorder.types.add_event(name, given)
    for member in members:
        runtime.sessions.add_event(recorder, member, name, dict(given))


def set_trace_attributes(attributes: Mapping[str, Any] | None) -> None:
    """Add attributes to the span around."""
    runtime = active()
    region = None if runtime is None else current_region()
    if runtime is not None and region is not None:
        cleaned = clean_attributes(attributes, strict=runtime.options.strict)
        with guarded("setting attributes"):
            region.set(cleaned)


def inject_trace_context(carrier: dict[str, str] | None = None) -> dict[str, str]:
    """Write the context into a carrier, or a new one, and give it; unchanged when off."""
    target = {} if carrier is None else carrier
    runtime = active()
    if runtime is not None:
        region = current_region()
        with guarded("injecting the context"):
            runtime.inject(target, () if region is None else region.path)
    return target


class TraceContext:
    """A context from elsewhere; `with` goes on under it."""

    def __init__(self, carrier: Mapping[str, Any]) -> None:
        self.carrier = dict(carrier)
        self.span_name_path = path_in(carrier)
        self._attached: Attachment | None = None

    def __enter__(self) -> TraceContext:
        """Go on under the span that the carrier names."""
        runtime = active()
        if runtime is not None:
            self._attached = runtime.tracer.attach(self.carrier)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make current again what was current before."""
        if self._attached is not None:
            self._attached.__exit__(error_type, error, traceback)


def extract_trace_context(carrier: Mapping[str, Any]) -> TraceContext:
    """Read a context that `inject_trace_context` wrote."""
    return TraceContext(carrier)


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
        find = _target_finder(function, target, target_getter)

        def region(runtime: TraceRuntime, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Region:
            fields = dict(trace_kwargs)
            if trace_kwargs_getter is not None:
                fields |= _asked(trace_kwargs_getter, label, args, kwargs) or {}
            return _about(runtime, find(args, kwargs), label, fields, attributes)

        return _wrap(function, region)

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
    function: Callable[..., Any], target: object, getter: Callable[..., Any] | None
) -> Callable[[tuple[Any, ...], dict[str, Any]], object]:
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        names = []
    label = _name_of(function)

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


def _wrap(function: F, region: Callable[..., Region]) -> F:
    wrapper: Any
    if inspect.isasyncgenfunction(function):

        async def wrapper(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            runtime = active()
            if runtime is None:
                async for item in function(*args, **kwargs):
                    yield item
                return
            with region(runtime, args, kwargs):
                async for item in function(*args, **kwargs):
                    yield item

    elif inspect.iscoroutinefunction(function):

        async def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            runtime = active()
            if runtime is None:
                return await function(*args, **kwargs)
            with region(runtime, args, kwargs) as entered:
                result = await function(*args, **kwargs)
                entered.returned(result)
                return result

    elif inspect.isgeneratorfunction(function):

        def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            runtime = active()
            if runtime is None:
                return (yield from function(*args, **kwargs))
            with region(runtime, args, kwargs):
                return (yield from function(*args, **kwargs))

    else:

        def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            runtime = active()
            if runtime is None:
                return function(*args, **kwargs)
            with region(runtime, args, kwargs) as entered:
                result = function(*args, **kwargs)
                entered.returned(result)
                return result

    return cast("F", functools.wraps(function)(wrapper))
