"""Requests from readers: a file whose touch asks a process where its open spans hang.

A reader shares nothing with a recording process but the run directory, so it asks there. Looking
for a file that is not there takes the writer thread two microseconds, ten to twenty times a second.
"""

import os
import time
from typing import Final

__all__ = ["ASK_DIR", "StackRequests", "ask_path"]

ASK_DIR: Final = "asked"
"""Folder of the run directory with one file per process that was ever asked."""


_MORE_COME_S: Final = 300.0
"""Who has asked once sits before a page, and is likely to ask again."""


def ask_path(run: str, process: bytes) -> str:
    """Say which file a process looks at."""
    return os.path.join(run, ASK_DIR, process.hex())


class StackRequests:
    """Looks for requests to one process."""

    def __init__(self, path: str | None) -> None:
        """Look at a file; None if there is no run directory to be asked in."""
        self._path = path
        self._seen_ns: int | None = None
        self._came_s: float | None = None

    def came(self) -> bool:
        """Say whether somebody has asked since the last look."""
        touched_ns = self._touched_ns()
        is_new = touched_ns not in (None, self._seen_ns)
        if is_new:
            self._seen_ns = touched_ns
            self._came_s = time.monotonic()
        return is_new

    def are_waiting(self) -> bool:
        """Say whether `came` would say so."""
        return self._touched_ns() not in (None, self._seen_ns)

    def _touched_ns(self) -> int | None:
        if self._path is None or not os.access(self._path, os.F_OK):  # which costs half of `stat`
            return None
        try:
            return os.stat(self._path).st_mtime_ns
        except OSError:
            return None

    def are_expected(self) -> bool:
        """Say whether somebody has asked lately, who should not have to wait for the next time."""
        return self._came_s is not None and time.monotonic() - self._came_s < _MORE_COME_S
