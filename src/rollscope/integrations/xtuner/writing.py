"""The thread that writes a file of old beside the run: callers append, it encodes and writes."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from rollscope.instrument.guard import guarded, pass_over, tell_once
from rollscope.instrument.lifecycle import leave_alone, watch_along

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ClassicFile", "ClassicWriter"]

_EVERY_S: Final = 0.2
_MOST_WAITING: Final = 200_000
_AT_ONCE: Final = 2_000


class ClassicFile(Protocol):
    """A form of file."""

    def write(self, records: list[Any]) -> None:
        """Append records; raises OSError if that cannot be."""

    def close(self) -> None:
        """Close what is open."""


class ClassicWriter:
    """Writes records in the background; what finds no room is counted in `dropped`."""

    def __init__(self, file: ClassicFile, after_fork: Callable[[], None] | None = None) -> None:
        """Begin to write.

        Args:
            file: Takes the records.
            after_fork: Called in a forked child, before it writes for itself.
        """
        self.dropped = 0
        self._file = file
        self._after_fork = after_fork
        self._begin()
        watch_along(self)

    def _begin(self) -> None:
        self._waiting: deque[Any] = deque()
        self._wake = threading.Event()
        self._written = threading.Condition()
        self._is_busy = self._is_stopping = self._is_stuck = False
        self._thread = threading.Thread(
            target=self._work, name="rollscope-xtuner-file", daemon=True
        )
        self._thread.start()

    def add(self, record: Any) -> None:  # noqa: ANN401  (of the file's own kind)
        """Have a record written; it must not be changed any more."""
        if len(self._waiting) >= _MOST_WAITING:
            self.dropped += 1
            tell_once("xtuner:full", "Rollscope leaves records out of XTuner's file; it is slow")
            return
        self._waiting.append(record)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until all that was added is in the file; false if it is not in time."""
        if not self._thread.is_alive():
            return not self._waiting
        self._wake.set()
        with self._written:
            return self._written.wait_for(
                lambda: not self._waiting and not self._is_busy, timeout_s
            )

    def shutdown(self, timeout_s: float = 5.0, *, why: str = "shutdown") -> bool:
        """Write what there is and stop."""
        del why
        self._is_stopping = True
        self._wake.set()
        self._thread.join(timeout_s)
        leave_alone(self)
        if not self._thread.is_alive():
            self._file.close()
        return not self._waiting

    def restart_after_fork(self) -> None:
        """Write for the child alone, into what is its own."""
        with guarded("going on with XTuner's file after a fork"):
            if self._after_fork is not None:
                self._after_fork()
            self._file.close()
            self._begin()

    def _work(self) -> None:
        while True:
            self._wake.wait(_EVERY_S)
            self._wake.clear()
            is_last = self._is_stopping
            while self._waiting:
                if not self._write_some():
                    break
            with self._written:
                self._written.notify_all()
            if is_last:
                return

    def _write_some(self) -> bool:
        """Write a piece; false if the disk does not take it now, and it waits."""
        waiting, self._is_busy = self._waiting, True
        piece = [waiting.popleft() for _ in range(min(len(waiting), _AT_ONCE))]
        try:
            self._try(piece)
        finally:
            self._is_busy = False
        return not self._is_stuck

    def _try(self, piece: list[Any]) -> None:
        try:
            self._file.write(piece)
            self._is_stuck = False
        except OSError as error:
            self._waiting.extendleft(reversed(piece))
            self._is_stuck = True
            tell_once("xtuner:file", "Rollscope cannot write XTuner's file: %s", error)
        except Exception as error:  # a record that cannot be encoded must not cost the others
            if len(piece) == 1:
                self.dropped += 1
                pass_over("writing XTuner's file", error)
                return
            for record in piece:
                self._try([record])
