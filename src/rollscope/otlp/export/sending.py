"""Delivering requests: again and again while that makes sense, and never in silence.

A `Target` sends one request once. What may be tried again is, later and later, as long as patience
lasts; what is too large is halved by the caller.
"""

import random
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from rollscope.errors import RollscopeError
from rollscope.otlp.answering import Signal

__all__ = ["Again", "Delivered", "ExportFailed", "Sending", "Stopped", "Target", "TooLarge"]

_FIRST_WAIT_S: Final = 0.25
_LONGEST_WAIT_S: Final = 30.0


class ExportFailed(RollscopeError):
    """An endpoint does not take what it is sent; the message says what to do."""


class Again(Exception):
    """A request was not taken now; it may be later."""

    def __init__(self, why: str, after_s: float | None = None) -> None:
        """Keep what was said, and when to come back if that was said too."""
        super().__init__(why)
        self.after_s = after_s


class Stopped(Exception):
    """Somebody does not want to wait any longer."""


class TooLarge(Exception):
    """A request has more in it than the endpoint takes at once."""


class Delivered(NamedTuple):
    """What an endpoint said to a request that it took."""

    rejected: int = 0
    message: str = ""


class Target(Protocol):
    """Where requests go."""

    def send(self, signal: Signal, body: bytes) -> Delivered:
        """Send a request once.

        Raises:
            Again: It may be tried again.
            TooLarge: It may be tried in pieces.
            ExportFailed: It must not be tried again.
        """

    def close(self) -> None:
        """Let go of the connection."""


class Sending:
    """Delivers requests to a target."""

    def __init__(
        self,
        target: Target,
        patience_s: float | None,
        *,
        sleep: Callable[[float], object] = time.sleep,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """Make ready.

        Args:
            target: Where to.
            patience_s: How long one request is tried; None: until it is taken.
            sleep: Waits; true if it was told to stop meanwhile.
            tell: Told, once for each time of trouble, why nothing is taken.
        """
        self._target = target
        self._patience_s = patience_s
        self._sleep = sleep
        self._tell = tell or (lambda _: None)
        self._jitter = random.Random()  # noqa: S311  (spreads tries, guards nothing)

    def deliver(self, signal: Signal, body: bytes) -> Delivered:
        """Send a request until it is taken.

        Raises:
            TooLarge: It may be tried in pieces.
            ExportFailed: It was refused for good, or patience has run out.
            Stopped: Waiting was ended.
        """
        give_up_at = None if self._patience_s is None else time.monotonic() + self._patience_s
        wait_s = _FIRST_WAIT_S
        has_told = False
        while True:
            try:
                return self._target.send(signal, body)
            except Again as trouble:
                pause_s = trouble.after_s
                if pause_s is None:
                    pause_s = wait_s * self._jitter.uniform(0.75, 1.25)
                    wait_s = min(wait_s * 2, _LONGEST_WAIT_S)
                if give_up_at is not None and time.monotonic() + pause_s > give_up_at:
                    raise ExportFailed(
                        f"{trouble}; it was tried for {self._patience_s:g} s, see that the "
                        "endpoint is there and takes OTLP, then export again"
                    ) from trouble
                if not has_told:
                    self._tell(f"{trouble}; trying again")
                    has_told = True
                if self._sleep(pause_s):
                    raise Stopped from trouble
