"""Making way for the program: between two slices of our work, who waits for its lock gets it."""

import time
from typing import Final

__all__ = ["step_aside"]

_PAUSE_S: Final = 0.0001


def step_aside() -> None:
    """Let go of the interpreter for a moment; a yield alone would be taken back at once."""
    time.sleep(_PAUSE_S)
