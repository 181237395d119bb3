"""The filter that decides which trajectories are trained on, and where it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from rollscope.rollout.imports import import_object
from rollscope.rollout.threads import call_in_thread

if TYPE_CHECKING:
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["Filter", "blocking", "resolve_accept"]

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__rollscope_blocking__"


def blocking(function: F) -> F:
    """Mark a filter that takes its time, so that it runs in a thread and holds up no episode."""
    setattr(function, _MARK, True)
    return function


class Filter:
    """Decides about trajectories; awaitable wherever the function itself runs."""

    def __init__(self, function: Callable[[Trajectory], Any] | None) -> None:
        self.function = function
        call = getattr(function, "__call__", None)  # noqa: B004  (where a class carries the mark)
        self.is_blocking = hasattr(function, _MARK) or hasattr(call, _MARK)

    async def __call__(self, trajectory: Trajectory | None) -> bool:
        """Say whether to keep a trajectory; None is never kept, and the function not asked."""
        if trajectory is None:
            return False
        if self.function is None:
            return True
        if self.is_blocking:
            verdict = await call_in_thread(self.function, trajectory)
        else:
            verdict = self.function(trajectory)
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)


def resolve_accept(should_accept_fn: Callable[[Trajectory], Any] | str | None) -> Filter:
    """Make a filter of a function, of an import path to one, or of nothing: that keeps all.

    Raises:
        ValueError: The path cannot be imported.
        TypeError: It is neither a path nor a function, or the path leads to something else.
    """
    function: object = should_accept_fn
    if isinstance(function, str):
        try:
            function = import_object(function)
        except ImportError as error:
            raise ValueError(
                f"Failed to import should_accept_fn from string {should_accept_fn!r}: {error}"
            ) from error
    elif function is None:
        return Filter(None)
    if not callable(function):
        raise TypeError(
            f"should_accept_fn must be a function or an import path to one, not {function!r:.200}"
        )
    return Filter(function)
