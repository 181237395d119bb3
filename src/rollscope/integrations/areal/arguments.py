"""Arguments of calls whose facts may have any name, also that of an argument."""

from __future__ import annotations

from typing import Any

__all__ = ["take_arguments"]


def take_arguments(
    call: str, names: tuple[str, ...], given: tuple[Any, ...], facts: dict[str, Any]
) -> list[Any]:
    """Give the arguments, by their place or taken out of the facts; None for those left out.

    Args:
        call: What was called.
        names: Of its arguments; the first has to be given.
        given: Those that were given by their place. Facts of the same name stay facts.
        facts: Everything that was given by name.

    Raises:
        TypeError: There are too many, or none.
    """
    if len(given) > len(names) or not (given or names[0] in facts):
        raise TypeError(f"{call} takes {', '.join(names)}, and facts by name")
    return [*given, *(facts.pop(name, None) for name in names[len(given) :])]
