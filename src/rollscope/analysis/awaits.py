"""Await stacks: which line of a stack tells where the program itself waits."""

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["waiting_line"]

_STANDARD: Final = re.compile(r"/lib(?:64)?/python3\.\d+/(?!site-packages/|dist-packages/)")


def waiting_line(frames: Sequence[str]) -> str | None:
    """Give the innermost line outside of the standard library, else the innermost of all.

    The line itself is often `asyncio`'s, at which everything waits, whatever it waits for.

    Args:
        frames: As recorded, `file:line function`, the innermost last.
    """
    for frame in reversed(frames):
        if not _STANDARD.search(frame):
            return frame
    return frames[-1] if frames else None
