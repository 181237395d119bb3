"""Await stacks: which line of a stack tells where the program itself waits."""

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["waiting_line"]

_STANDARD: Final = re.compile(r"/lib(?:64)?/python3\.\d+/(?!site-packages/|dist-packages/)")
_INSTALLED: Final = re.compile(r"/(?:site|dist)-packages/")


def waiting_line(frames: Sequence[str]) -> str | None:
    """Give the innermost line of the program itself, else of a library, else of all.

    The innermost line is often `asyncio`'s, or a client's, at which everything waits, whatever it
    waits for.

    Args:
        frames: As recorded, `file:line function`, the innermost last.
    """
    known = [frame for frame in frames if not _STANDARD.search(frame)]
    own = [frame for frame in known if not _INSTALLED.search(frame)]
    chosen = own or known or frames
    return chosen[-1] if chosen else None
