"""Waiting that bears being interrupted by a signal handler which waits for the same thing.

`Thread.join` does not: inside another `join` of the same thread it may wait for itself.
"""

import time
from collections.abc import Callable

__all__ = ["wait_until"]

_FIRST_PAUSE_S = 0.0005
_LAST_PAUSE_S = 0.01


def wait_until(is_so: Callable[[], bool], timeout_s: float) -> bool:
    """Look again and again until something is so; false if it is not in time."""
    deadline = time.monotonic() + timeout_s
    pause_s = _FIRST_PAUSE_S
    while not is_so():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LAST_PAUSE_S)
    return True
