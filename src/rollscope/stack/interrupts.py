"""Signals that wake a loop: somebody wants an end, or a child is over."""

import os
import select
import signal
from types import FrameType
from typing import Final, Self

__all__ = ["Interrupts"]

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Takes note of signals while it is entered; `wait` returns as soon as one comes.

    Only the main thread may enter it, since only that may handle signals.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []
        """Signals that ask for an end, in the order in which they came."""
        self._reading = self._writing = -1
        self._before: dict[int, object] = {}
        self._wakeup_before = -1

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in _ENDING:
            self._before[number] = signal.signal(number, self._take_note)
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _wake_only)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal.signal gave it
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._reading)
        os.close(self._writing)

    def wait(self, timeout_s: float) -> None:
        """Wait for a signal, or until the time is up."""
        if select.select([self._reading], [], [], timeout_s)[0]:
            os.read(self._reading, 4096)

    def _take_note(self, number: int, frame: FrameType | None) -> None:
        self.asked.append(number)


def _wake_only(number: int, frame: FrameType | None) -> None:
    """Do nothing: that a handler is there is what wakes the loop."""
