"""Stops admission when everything fails, instead of failing the rest of the data too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollscope.runner.outcome import Status

if TYPE_CHECKING:
    from rollscope.runner.outcome import Failure

__all__ = ["Breaker"]

_FAILING: Final = (Status.FAILED, Status.TIMEOUT)


class Breaker:
    """Opens when so many attempts in a row have failed."""

    def __init__(self, window: int | None) -> None:
        self._window = window
        self.failed = 0
        """Attempts in a row."""
        self._first: Failure | None = None
        self.is_open = False

    def note(self, status: Status, failure: Failure | None) -> None:
        """Note how an attempt ended; cancelled ones tell nothing."""
        if status in _FAILING:
            if not self.failed:
                self._first = failure
            self.failed += 1
            if self._window is not None and self.failed >= self._window:
                self.is_open = True
        elif status is Status.OK or status is Status.REJECTED:
            self.failed = 0

    def explain(self) -> str:
        """Say what happened."""
        first = f": {self._first.type_name}: {self._first.text}" if self._first else ""
        return f"the last {self.failed} attempts all failed, the first with{first or ' a timeout'}"

    def reset(self) -> None:
        """Let work go on."""
        self.failed, self._first, self.is_open = 0, None, False
