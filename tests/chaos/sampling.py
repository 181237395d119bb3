"""What processes hold in memory and spools on disk, looked at all the time."""

from __future__ import annotations

import resource
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Sampler", "spooled_bytes"]

_EVERY_S: Final = 0.1


def spooled_bytes(spools: Path) -> int:
    """Give what all spools take on the disk."""
    total = 0
    for path in spools.glob("**/*.rsl"):
        with suppress(FileNotFoundError):  # delivered at this moment
            total += path.stat().st_size
    return total


class Sampler:
    """Notes the most that was seen."""

    def __init__(self, spools: Path, processes: Callable[[], Mapping[int, str]]) -> None:
        """Begin to look.

        Args:
            spools: Where spools lie.
            processes: Gives what runs now: pid and role.
        """
        self._spools = spools
        self._processes = processes
        self.peak_mb: dict[str, float] = {}
        """By role, the most that one process held."""
        self.peak_spool_bytes = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._stopping.set()
        self._thread.join()

    def _sample(self) -> None:
        page_bytes = resource.getpagesize()
        while not self._stopping.wait(_EVERY_S):
            self.peak_spool_bytes = max(self.peak_spool_bytes, spooled_bytes(self._spools))
            for pid, role in self._processes().items():
                with suppress(OSError):
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    held_mb = pages * page_bytes / 2**20
                    self.peak_mb[role] = max(self.peak_mb.get(role, 0.0), held_mb)
