"""Which runs are being recorded right now, told from their logs alone.

Logs that a server writes on its own account do not count, or two of them that look at one run would
keep each other going after its end.
"""

import time
from pathlib import Path
from typing import Final

from rollscope.errors import FrameError
from rollscope.model.batch import Batch, decode_batch
from rollscope.model.frames import scan_frames
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
from rollscope.model.serverroles import SERVER_ROLES

__all__ = ["RunChoice", "is_recorded"]

_QUIET_NS: Final = 20_000_000_000
"""Processes beat every few seconds."""
_PEEK_BYTES: Final = 65_536
_LOOK_EVERY_S: Final = 5.0
_MOST_RUNS: Final = 50
_MOST_PEEKED: Final = 64


def is_recorded(run: Path) -> bool:
    """Say whether a process of the run has written a moment ago, and not its end."""
    since_ns = time.time_ns() - _QUIET_NS
    try:
        dated = [(log.stat().st_mtime_ns, log) for log in (run / LOG_DIR).glob(f"*{LOG_SUFFIX}")]
        recent = sorted((one for one in dated if one[0] > since_ns), reverse=True)
        return any(_goes_on(log) for _, log in recent[:_MOST_PEEKED])
    except OSError:
        return False


def _goes_on(log: Path) -> bool:
    with log.open("rb") as file:
        head = _decoded(scan_frames(file.read(_PEEK_BYTES)).bodies[:1])
        file.seek(max(file.seek(0, 2) - _PEEK_BYTES, 0))
        tail = _decoded(scan_frames(file.read(), final=True).bodies[-1:])
    if head is not None and head.header is not None and head.header.role in SERVER_ROLES:
        return False
    return tail is None or tail.end is None


def _decoded(bodies: list[bytes]) -> Batch | None:
    try:
        return decode_batch(bodies[0]) if bodies else None
    except FrameError:
        return None


class RunChoice:
    """Finds the run that is meant where none is named; stays with it while it goes on."""

    def __init__(self, directory: Path, only_run: str | None) -> None:
        """Know none yet.

        Args:
            directory: Where runs are.
            only_run: The only one that there can be.
        """
        self._directory = directory
        self._only_run = only_run
        self._chosen: str | None = None
        self._looked_s = -_LOOK_EVERY_S

    def choose(self) -> str | None:
        """Give the run: the one there is, or the newest of those that are being recorded."""
        if self._only_run is not None:
            return self._only_run
        if self._chosen is not None and is_recorded(self._directory / self._chosen):
            return self._chosen
        self._chosen = None
        if time.monotonic() - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            self._chosen = next((run.name for run in self._newest() if is_recorded(run)), None)
        return self._chosen

    def _newest(self) -> list[Path]:
        try:
            dated = [
                (logs.stat().st_mtime_ns, logs.parent)
                for logs in self._directory.glob(f"*/{LOG_DIR}")
            ]
        except OSError:
            return []
        return [run for _, run in sorted(dated, reverse=True)[:_MOST_RUNS]]
