"""The calls around rollout endpoints: one span per state, and the context inside of the state."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rollscope.integrations.xtuner.calls import inject_trace_context
from rollscope.integrations.xtuner.rolloutregions import RolloutRegion
from rollscope.integrations.xtuner.runtime import TraceRuntime, active
from rollscope.integrations.xtuner.states import (
    CARRIER_FIELD,
    CHAIN_FIELD,
    extra_fields_of,
    final_attributes,
    initial_attributes,
    is_state,
)
from rollscope.integrations.xtuner.values import clean_attributes, clean_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "extract_rollout_trace_parent_carrier",
    "is_rollout_trace_enabled",
    "rollout_state_final_attributes",
    "rollout_state_initial_attributes",
    "trace_rollout_endpoint",
    "trace_rollout_remote",
]

F = TypeVar("F", bound="Callable[..., Any]")

rollout_state_initial_attributes = initial_attributes
rollout_state_final_attributes = final_attributes


def is_rollout_trace_enabled() -> bool:
    """Say whether rollout endpoints are traced."""
    return _tracing_rollouts() is not None


def _tracing_rollouts() -> TraceRuntime | None:
    runtime = active()
    return runtime if runtime is not None and runtime.options.traces_rollouts else None


def extract_rollout_trace_parent_carrier(rollout_state: object) -> dict[str, str] | None:
    """Take the context of the caller out of a state; None if it brought none."""
    carrier = (extra_fields_of(rollout_state) or {}).pop(CARRIER_FIELD, None)
    if not isinstance(carrier, Mapping):
        return None
    return {str(key): str(item) for key, item in carrier.items()}


def trace_rollout_endpoint(
    span_name: str,
    *,
    target_arg: str = "rollout_state",
    initial_attributes: Callable[[Any, Any], Mapping[str, Any]] | None = None,
) -> Callable[[F], F]:
    """Make each call of an async function a span of the state that it is given.

    Args:
        span_name: What the span is called.
        target_arg: The argument that is the state, or a list of them.
        initial_attributes: Gives the attributes from the function's owner and the state.

    Raises:
        TypeError: The function is not async.
    """

    def decorator(function: F) -> F:
        if not inspect.iscoroutinefunction(function):
            raise TypeError("trace_rollout_endpoint traces async functions only")
        signature = inspect.signature(function)

        async def wrapper(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            runtime = _tracing_rollouts()
            if runtime is None:
                return await function(*args, **kwargs)
            try:
                target = signature.bind(*args, **kwargs).arguments.get(target_arg)
            except TypeError:  # the call itself says better what is wrong with it
                return await function(*args, **kwargs)
            owner = args[0] if args else None
            region = _region_of(runtime, span_name, target, owner, initial_attributes)
            with region, _chain(target, region) as is_first:
                result = await function(*args, **kwargs)
                region.returned(result)
                _finish(region, target, result, is_first=is_first)
                return result

        return cast("F", functools.wraps(function)(wrapper))

    return decorator


def _region_of(
    runtime: TraceRuntime,
    span_name: str,
    target: object,
    owner: object,
    ask: Callable[[Any, Any], Mapping[str, Any]] | None,
) -> RolloutRegion:
    strict = runtime.options.strict
    attributes: Mapping[str, Any] = {}
    if ask is not None:
        attributes = ask(owner, target)
    elif is_state(target):
        attributes = initial_attributes(target)
    cleaned = clean_attributes(attributes, strict=strict)
    cleaned.setdefault("xtuner.stage", span_name)
    carrier = extract_rollout_trace_parent_carrier(target) if is_state(target) else None
    name = clean_name(span_name, strict=strict)
    return RolloutRegion(runtime, name, cleaned, target, carrier=carrier)


@contextmanager
def _chain(target: object, region: RolloutRegion) -> Iterator[bool]:
    """Keep the names of the spans around in the state while they are open."""
    extra = extra_fields_of(target)
    if extra is None:
        yield False
        return
    is_first = CHAIN_FIELD not in extra
    before = extra.get(CHAIN_FIELD)
    extra[CHAIN_FIELD] = list(region.path)
    try:
        yield is_first
    finally:
        if is_first:
            extra.pop(CHAIN_FIELD, None)
        else:
            extra[CHAIN_FIELD] = before


def _finish(region: RolloutRegion, target: object, result: object, *, is_first: bool) -> None:
    ended = result if is_state(result) else target
    if is_state(ended):
        region.set(clean_attributes(final_attributes(ended), strict=False))
    if not is_first:
        return
    for state in result if isinstance(result, (list, tuple)) else [result]:
        (extra_fields_of(state) or {}).pop(CHAIN_FIELD, None)


def trace_rollout_remote(
    remote_method: Any,  # noqa: ANN401  (has `remote`)
    *args: Any,
    target: Any = None,  # noqa: ANN401
    **kwargs: Any,
) -> Any:  # noqa: ANN401  (what the remote call gives)
    """Call a method of a Ray actor with the context inside of the state that it is given."""
    if not is_rollout_trace_enabled():
        return remote_method.remote(*args, **kwargs)
    found = target
    if found is None:
        found = next((item for item in (*args, *kwargs.values()) if is_state(item)), None)
    lists = [item for item in (*args, *kwargs.values()) if isinstance(item, (list, tuple))]
    states = [found] if found is not None else [each for item in lists for each in item]
    extras = [extra for state in states if (extra := extra_fields_of(state)) is not None]
    before = [extra.get(CARRIER_FIELD) for extra in extras]
    for extra in extras:
        extra[CARRIER_FIELD] = inject_trace_context({})
    try:
        return remote_method.remote(*args, **kwargs)
    finally:
        for extra, carrier in zip(extras, before, strict=True):
            if carrier is None:
                extra.pop(CARRIER_FIELD, None)
            else:
                extra[CARRIER_FIELD] = carrier
