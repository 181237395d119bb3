"""What answers have in common, gathered once by those who ask for many of them at one moment."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from rollscope.answers.source import Source

__all__ = ["shared", "sharing"]

T = TypeVar("T")

_MOST_KEPT: Final = 16
"""Things kept; questions about one step need fewer, and go before those about the next."""

_KEPT: ContextVar[dict[Hashable, Any] | None] = ContextVar("kept", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Let the answers that are asked for inside share what they gather.

    Runs must not be refreshed meanwhile.
    """
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def shared(source: Source, key: Hashable, gather: Callable[[], T]) -> T:
    """Gather something of a run, or give what was gathered under that key; nobody may change it."""
    kept = _KEPT.get()
    if kept is None:
        return gather()
    whole = id(source), key
    if whole not in kept:
        found = gather()
        while len(kept) >= _MOST_KEPT:
            del kept[next(iter(kept))]
        kept[whole] = found
    known: T = kept[whole]
    return known
