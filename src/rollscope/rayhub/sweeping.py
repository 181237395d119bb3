"""Sweeping: what processes that died had not sent is kept by whoever is on the same host.

A worker that Ray kills leaves its last frames in its spool, and there may be no later process that
would send them. The hub looks for such spools; and when a cluster ends with the program that had
started it, hub and all, that program does.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollscope.collect.keeping import Keeper
from rollscope.errors import IngestError
from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spoolhome import default_home, find_spools, is_abandoned

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.collect.keeping import Kept

__all__ = ["Sweeper", "sweep_up"]

_MOST_HOMES: Final = 64
_MOST_BYTES: Final = 1024 * 1024
"""Kept in one turn, so that calls need not wait long."""
_LOOK_EVERY_S: Final = 0.05


class Sweeper:
    """Keeps what lies in spools that nobody looks after; for one thread at a time.

    Args:
        address: Where they were to be sent.
        keep: Keeps frames; see `Keeper.keep`.
        home: Where spools lie.
    """

    def __init__(self, address: str, keep: Callable[..., Kept], home: str | None = None) -> None:
        self._address = address
        self._to_keep = keep
        self._homes = {home or default_home()}
        self._spool: Spool | None = None
        self.are_others_left = False
        """Whether the last look found spools that belong to living processes, or cannot be kept."""

    def watch(self, home: str) -> None:
        """Look into a directory of spools too; it may be one of another host, and not exist."""
        if home and home not in self._homes and len(self._homes) < _MOST_HOMES:
            self._homes.add(home)

    def sweep(self) -> bool:
        """Keep a piece; says whether it makes sense to go on."""
        if self._spool is None:
            self._spool = self._find()
        spool = self._spool
        if spool is None:
            return False
        is_kept = False
        with suppress(OSError):
            is_kept = self._keep(spool)
        if not is_kept or spool.waiting_bytes <= 0:
            self.are_others_left |= not is_kept
            spool.release()
            self._spool = None
        return is_kept

    def _find(self) -> Spool | None:
        self.are_others_left = False
        for home in sorted(self._homes):
            if not os.path.isdir(home):
                continue
            for path, to in find_spools(home):
                if to.address != self._address or not is_abandoned(path, to):
                    continue
                spool = Spool.claim(path)
                if spool is None:
                    self.are_others_left |= to.pid != os.getpid()
                elif spool.waiting_bytes:
                    return spool
                else:
                    spool.release()
        return None

    def _keep(self, spool: Spool) -> bool:
        """Keep the next piece of a spool; false if that is not to be done now."""
        data, to = spool.peek(_MOST_BYTES), spool.to
        if not data:
            return True
        try:
            self._to_keep(to.run, to.tags, bytes.fromhex(to.process), data)
        except IngestError as error:
            if error.retry_after_s is not None:
                return False  # it stays where it is
            spool.set_aside(data)
        else:
            spool.take()
        return True


def sweep_up(address: str, directory: str, home: str, patience_s: float) -> None:
    """Keep what processes left that are dying right now.

    Args:
        address: Where they were to send it.
        directory: The runs.
        home: Where their spools lie.
        patience_s: How long to wait for those that still live.
    """
    keeper = Keeper(Path(directory))
    sweeper = Sweeper(address, keeper.keep, home)
    deadline_s = time.monotonic() + patience_s
    try:
        while True:
            while sweeper.sweep():
                pass
            if not sweeper.are_others_left or time.monotonic() >= deadline_s:
                return
            time.sleep(_LOOK_EVERY_S)
    finally:
        keeper.close()
