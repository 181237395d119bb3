"""Redaction: the user's own function decides what of a payload is kept.

It runs in the writer's thread, before anything is encoded, so that neither the caller waits for it
nor anything it would have taken out is ever written. It fails closed: a payload that it fails on is
dropped, and so is every payload if the function cannot be found.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rollscope.instrument.guard import tell_once

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Redaction", "RedactionFailed", "function_path"]


class RedactionFailed(Exception):
    """The function failed; what it was given must not be kept."""


class Redaction:
    """Puts payloads through the function that a user gave, if one did."""

    def __init__(self, given: Callable[[str, Any], Any] | str | None) -> None:
        """Take a function or its import path; nothing is imported yet."""
        self._given = given

    def apply(self, name: str, value: Any) -> Any:  # noqa: ANN401  (any payload goes)
        """Give what is to be kept; None for nothing.

        Raises:
            RedactionFailed: The function failed, or cannot be found.
        """
        if self._given is None:
            return value
        try:
            if isinstance(self._given, str):
                self._given = _find(self._given)
            return self._given(name, value)
        except (Exception, SystemExit) as error:
            # Its message may hold what was to be taken out, so only its type is told.
            tell_once(
                "redact",
                "Rollscope drops payloads because the redact function fails with %s; "
                "the run counts them",
                type(error).__name__,
            )
            raise RedactionFailed from None


def _find(path: str) -> Callable[[str, Any], Any]:
    from importlib import import_module

    module, _, names = path.partition(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{path} is no function")
    function: Callable[[str, Any], Any] = found
    return function


def function_path(given: Callable[[str, Any], Any] | str) -> str | None:
    """Give the import path by which another process finds the function; None if it cannot."""
    if isinstance(given, str):
        return given
    module = getattr(given, "__module__", None)
    name = getattr(given, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str) and module != "__main__":
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is given:
            return f"{module}:{name}"
    tell_once(
        "redact-portable",
        "Rollscope keeps no payloads in processes that this one starts, because they cannot import "
        "the redact function; make it a function of a module, or give its path as module:function",
    )
    return None
