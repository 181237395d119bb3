"""The thread that writes the classic files, and what sees to it that they are whole at the end.

A program's own threads only put things into buffers. Every second, and when it is asked, the thread
gathers what is ready and appends it. `lifecycle` tells it of exits, forks and SIGTERM.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from rollscope.config import Settings
from rollscope.instrument.buffers import take_all
from rollscope.instrument.guard import guarded
from rollscope.instrument.lifecycle import forget, watch_over
from rollscope.instrument.waiting import wait_until
from rollscope.instrument.wakepipe import WakePipe

if TYPE_CHECKING:
    from rollscope.integrations.areal.files import LineFile

__all__ = ["FLUSH_TIMEOUT_S", "Part", "Writer"]

FLUSH_TIMEOUT_S: Final = 5.0
_TICK_S: Final = 1.0


class Part(Protocol):
    """A tracer that has a file."""

    file: LineFile

    def gather(self, *, force: bool) -> None:
        """Put what is ready into the file's queue; with `force` everything."""

    def restart_after_fork(self) -> None:
        """Forget what the parent has recorded, and go on with a file of one's own."""


class _Ticket:
    """One request to write; done when the thread got to it."""

    def __init__(self) -> None:
        self.is_done = False


class Writer:
    """Writes the files of one tracer.

    Args:
        is_sync: Write in the thread that asks, as AReaL does; for tests that look at once.
    """

    def __init__(self, *, is_sync: bool = False) -> None:
        self.is_sync = is_sync
        self.parts: list[Part] = []
        """Whose files are written."""
        self._tickets: list[_Ticket] = []
        self._thread: threading.Thread | None = None
        self._pipe: WakePipe | None = None
        self._is_ending = False
        self._has_ended = True
        self._starting = threading.RLock()  # a signal handler may come back in here
        # What `lifecycle` wants to know of a recorder: to handle SIGTERM, and nobody to wake.
        self.settings = Settings()
        self.wake_fd = -1
        self.on_signal: Any = None

    def add(self, part: Part) -> None:
        """Write this part's file too, from now on."""
        self.parts.append(part)
        self.start()

    def start(self) -> None:
        """Start the thread, if it does not run."""
        with self._starting:
            if self._thread is not None:
                return
            self._pipe = WakePipe()
            self._is_ending = self._has_ended = False
            self._thread = threading.Thread(target=self._run, name="rollscope-areal", daemon=True)
            self._thread.start()
            watch_over(self, self)  # type: ignore[arg-type]  # it is enough of both

    def wake(self) -> None:
        """Let the thread look now."""
        pipe = self._pipe
        if pipe is not None:
            pipe.wake()

    def write(self, timeout_s: float = FLUSH_TIMEOUT_S) -> bool:
        """Write what was gathered; false if it is not on disk in time."""
        if self.is_sync or self._thread is None:
            results = [part.file.write() for part in self.parts]  # each of them, come what may
            return all(results)
        ticket = _Ticket()
        self._tickets.append(ticket)
        self.wake()
        wait_until(lambda: ticket.is_done or self._has_ended, timeout_s)
        return all(part.file.is_written() for part in self.parts)

    def flush(self, timeout_s: float = FLUSH_TIMEOUT_S) -> bool:
        """Write everything there is."""
        for part in self.parts:
            part.gather(force=True)
        return self.write(timeout_s)

    def shutdown(self, timeout_s: float = FLUSH_TIMEOUT_S, *, why: str = "") -> bool:
        """Write everything there is and end the thread."""
        deadline = time.monotonic() + timeout_s
        done = self.flush(timeout_s)
        with self._starting:
            if self._thread is None:
                return done
            self._is_ending = True
            self.wake()
            # A moment at least: a thread that waits for nothing ends at once.
            wait_until(lambda: self._has_ended, max(deadline - time.monotonic(), 0.1))
            if self._has_ended and self._pipe is not None:
                self._pipe.close()
            self._thread = self._pipe = None
        forget(self, self)  # type: ignore[arg-type]  # it is enough of both
        return done

    def restart_after_fork(self) -> None:
        """Write on our own in a forked child."""
        pipe, self._thread, self._pipe = self._pipe, None, None
        self._starting = threading.RLock()
        self._tickets = []
        if pipe is not None:
            pipe.close_in_child()
        for part in self.parts:
            part.restart_after_fork()
        self.start()

    def _run(self) -> None:
        try:
            while not self._is_ending:
                self._turn()
        finally:
            self._has_ended = True

    def _turn(self) -> None:
        pipe = self._pipe
        if pipe is not None and not self._tickets:
            pipe.wait(_TICK_S)
        tickets = take_all(self._tickets)
        for part in self.parts:
            with guarded("writing AReaL's files"):
                part.gather(force=False)
                part.file.write()
        for ticket in tickets:
            ticket.is_done = True
