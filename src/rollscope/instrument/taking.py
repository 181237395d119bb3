"""Taking what waits: the latest of it, where more came than can be worked off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from rollscope.instrument.buffers import take_all
from rollscope.instrument.guard import tell_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SLICE_ROWS", "pieces", "take_latest", "tell_overload"]

T = TypeVar("T")

SLICE_ROWS: Final = 1000
"""What is encoded at a time where much waits."""
_MOST_AT_ONCE: Final = {"payload": 2_000, "fact": 50_000}
"""More than that between two looks comes faster than it can be worked off."""


def take_latest(
    what: str,
    items: list[Any],
    count_drop: Callable[[dict[str, int], str], None],
    entries: int = 1,
) -> list[Any]:
    """Take everything that waits, or the latest if that is too much.

    Args:
        what: The name that what is dropped is counted by.
        items: What waits.
        count_drop: Is told of what is dropped.
        entries: How many of them make one.
    """
    taken = take_all(items)
    excess = len(taken) // entries - _MOST_AT_ONCE[what]
    if excess > 0:
        tell_overload()
        count_drop({what: excess}, "overload")
        del taken[: excess * entries]
    return taken


def pieces(items: list[T], size: int = SLICE_ROWS) -> Iterator[list[T]]:
    """Cut a list into pieces that fit into a frame each."""
    for at in range(0, len(items), size):
        yield items[at : at + size]


def tell_overload() -> None:
    """Tell the user, once, that records are dropped."""
    tell_once(
        "overload",
        "Rollscope drops records because they come faster than they can be encoded; "
        "the run counts them",
    )
