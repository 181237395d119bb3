"""Carrying a call into another thread or process with its context and its recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

__all__ = ["Carried"]

P = ParamSpec("P")
R = TypeVar("R")


class Carried(Generic[P, R]):
    """A function that runs under the span that was current when it was made.

    In the same process it runs in a copy of the maker's context. Pickled into another process it
    takes a carrier and the maker's settings along, starts recording there if nothing does yet, and
    runs under the same span.
    """

    def __init__(
        self,
        function: Callable[P, R],
        carrier: dict[str, str],
        settings: dict[str, Any] | None,
        context: Context | None = None,
    ) -> None:
        self._function = function
        self._carrier = carrier
        self._settings = settings
        self._context = context

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function."""
        if self._context is not None:
            # A context can be entered once at a time, and many threads may run this at once.
            return self._context.copy().run(self._function, *args, **kwargs)
        from rollscope.instrument import default

        if self._settings is not None and not default.enabled():
            default.init(**self._settings)
        with default.attach(self._carrier):
            return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the context behind: it cannot be pickled, the carrier stands for it."""
        return (Carried, (self._function, self._carrier, self._settings))
