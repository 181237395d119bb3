"""The garbage collector, and when it would look for cycles in vain.

Rows on their way from frames to tables are many small objects, which are all freed in time and
none of which refers back to another. To look through them again and again took a quarter of the
time that taking in a log took.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_cycles"]

_lock = threading.Lock()
_depth = 0
_was_on = False


@contextmanager
def no_cycles() -> Iterator[None]:
    """Let nobody look for cycles while the block runs; for short blocks, in any thread."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _depth, _was_on
    with _lock:
        if _depth == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _depth += 1


def _leave() -> None:
    global _depth
    with _lock:
        _depth -= 1
        if _depth == 0 and _was_on:
            gc.enable()
