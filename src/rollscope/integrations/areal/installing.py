"""Putting this module in the place of AReaL's, for programs whose imports cannot be changed."""

import sys
from typing import Final

__all__ = ["install"]

_NAME: Final = "areal.utils.perf_tracer"


def install() -> None:
    """Let `areal.utils.perf_tracer` mean this module, for imports to come.

    Raises:
        RuntimeError: The original is imported and configured already.
    """
    own = sys.modules["rollscope.integrations.areal"]
    original = sys.modules.get(_NAME)
    if original is not None and getattr(original, "GLOBAL_TRACER", None) is not None:
        raise RuntimeError("AReaL's perf_tracer is configured already; install() must come before")
    sys.modules[_NAME] = own
    parent = sys.modules.get("areal.utils")
    if parent is not None:
        parent.perf_tracer = own  # type: ignore[attr-defined]  # as an import would set it
