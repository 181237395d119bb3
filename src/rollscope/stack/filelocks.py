"""Locks on files of ours, which end with the process that holds them."""

import fcntl
import time
from typing import Final

__all__ = ["wait_for_lock"]

_LOOK_S: Final = 0.02


def wait_for_lock(file: int, patience_s: float) -> bool:
    """Lock an open file for this process alone; false if another one does not let go of it.

    Raises:
        OSError: It cannot be locked at all.
    """
    give_up_s = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up_s:
                return False
            time.sleep(_LOOK_S)
        else:
            return True
