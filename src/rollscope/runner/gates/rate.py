"""A gate that spreads starts over time."""

import time
from collections.abc import Callable
from typing import Final

from rollscope.runner.gates.base import CountingGate

__all__ = ["RateGate"]

_TICKS_PER_NS: Final = 1_000_000
_TICKS_PER_S: Final = 1_000_000_000 * _TICKS_PER_NS
"""Time is counted in whole femtoseconds.

With floats the time promised for a token could come with the token still a rounding error away,
and the runner would be woken for nothing, again and again.
"""


class RateGate(CountingGate):
    """Lets `per_s` tasks start a second, and up to `burst` at once after a quiet time.

    A token bucket, kept as the one moment at which it will be full again. A token is spent by
    starting: one is not given back when the task ends, and a further attempt takes another.
    """

    def __init__(
        self,
        per_s: float,
        burst: int = 1,
        *,
        name: str = "rate",
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        if not per_s > 0:
            raise ValueError(f"a rate must be above zero: {per_s}")
        if burst < 1:
            raise ValueError(f"a burst holds at least one task: {burst}")
        super().__init__(name)
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._interval = max(1, round(_TICKS_PER_S / per_s))
        self._full_at = clock() * _TICKS_PER_NS

    def available(self) -> int:
        """Count the tokens that are there now."""
        with self._lock:
            return self._tokens(self._clock() * _TICKS_PER_NS)

    def take(self, count: int) -> None:
        """Spend tokens."""
        with self._lock:
            now = self._clock() * _TICKS_PER_NS
            self._full_at = max(self._full_at, now) + count * self._interval

    def give(self, count: int) -> None:
        """Do nothing: time alone brings tokens back."""

    def next_permit_ns(self, now_ns: int) -> int | None:
        """Tell when a token will be there, on the gate's clock; None if one is there now."""
        with self._lock:
            if self._tokens(now_ns * _TICKS_PER_NS) > 0:
                return None
            due = self._full_at - (self._burst - 1) * self._interval
            return -(-due // _TICKS_PER_NS)

    def numbers(self) -> dict[str, float | None]:
        """Give the rate, the burst and the tokens that are there."""
        return {"per_s": self._per_s, "burst": self._burst, "available": self.available()}

    def _tokens(self, now: int) -> int:
        missing = max(0, self._full_at - now)
        return (self._burst * self._interval - missing) // self._interval
