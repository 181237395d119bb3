"""Reward functions as phases `reward`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sized
from typing import TYPE_CHECKING, Any, TypeVar

from rollscope.instrument import default
from rollscope.instrument.guard import guarded
from rollscope.instrument.spans import lineage
from rollscope.integrations.aftermath import finite
from rollscope.model.kinds import KIND_CODES, Kind

if TYPE_CHECKING:
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span

__all__ = ["traced_reward"]

R = TypeVar("R")

_PHASE = KIND_CODES[Kind.PHASE]


def traced_reward(reward: R) -> R:
    """Make each call of a reward function a phase `reward`, with how many it judged and how.

    Args:
        reward: A function, a coroutine function, or a list of what `reward_funcs` takes. Models and
            their names are given back as they are.
    """
    if isinstance(reward, list):
        return [traced_reward(one) for one in reward]  # type: ignore[return-value]
    if not _is_function(reward):
        return reward
    return _wrap(reward)  # type: ignore[return-value,arg-type]


def _is_function(reward: object) -> bool:
    """Tell functions and objects that are called like them from models, which are trained too."""
    is_plain = callable(reward) and not isinstance(reward, type)
    return is_plain and not hasattr(reward, "forward")


def _wrap(function: Callable[..., Any]) -> Callable[..., Any]:
    name = getattr(function, "__name__", type(function).__name__)
    call = getattr(type(function), "__call__", None)  # noqa: B004  (of an object)

    async def later(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        recorder = default._tracer._recorder
        if recorder is None:
            return await function(*args, **kwargs)
        with _new_span(recorder, name, args, kwargs) as span:
            rewards = await function(*args, **kwargs)
            _take(span, rewards)
            return rewards

    def now(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        recorder = default._tracer._recorder
        if recorder is None:
            return function(*args, **kwargs)
        with _new_span(recorder, name, args, kwargs) as span:
            rewards = function(*args, **kwargs)
            _take(span, rewards)
            return rewards

    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
    wrapper = functools.wraps(function)(later if is_async else now)
    wrapper.__name__ = name  # TRL names metrics by it, and objects have none
    return wrapper


def _new_span(recorder: Recorder, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Span:
    """Give a phase, or a span where the trainer itself has opened the phase."""
    attrs: dict[str, Any] = {"function": name}
    judged = kwargs.get("completions", args[1] if len(args) > 1 else None)
    if isinstance(judged, Sized):
        attrs["samples"] = len(judged)
    around = recorder.current.get()
    if any(getattr(o, "what", None) == _PHASE and o.name == "reward" for o in lineage(around)):
        return recorder.new_span(name, "compute", attrs)
    return recorder.new_phase("reward", attrs)


def _take(span: Span, rewards: object) -> None:
    with guarded("reading rewards"):
        if not isinstance(rewards, (list, tuple)):
            return
        numbers = [number for number in map(finite, rewards) if number is not None]
        if numbers:
            span.set(reward_mean=sum(numbers) / len(numbers))
        if len(numbers) < len(rewards):
            span.set(unscored=len(rewards) - len(numbers))
