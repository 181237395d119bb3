"""Putting this package in the place of the original, for programs that cannot be edited."""

import sys
from importlib import import_module
from typing import Final

__all__ = ["install"]

_ORIGINAL: Final = "xtuner.v1.rl.trace"
_PARTS: Final = {"": "", ".api": ".api", ".runtime": ".runtime", ".rollout_api": ".rollout"}


def install() -> None:
    """Make `import xtuner.v1.rl.trace` give this package; call it before anything else does.

    Raises:
        RuntimeError: The original has been imported already.
    """
    ours = __package__ or ""
    for name in _PARTS:
        found = sys.modules.get(_ORIGINAL + name)
        if found is not None and not found.__name__.startswith(ours):
            raise RuntimeError(f"{_ORIGINAL}{name} is imported already; call install() earlier")
    for name, own in _PARTS.items():
        sys.modules[_ORIGINAL + name] = import_module(ours + own)
