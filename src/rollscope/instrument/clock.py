"""The clocks of a process, and the line that ties them together.

Durations come from the monotonic clock alone. The wall clock only places them, and `WallLine`
follows it gently: drift is slewed away, a jump is not followed.
"""

import time
from typing import Final, Protocol

from rollscope.model.clockline import ClockLine

__all__ = ["Clock", "SystemClock", "WallLine", "read_both"]

_RENEW_NS: Final = 10_000_000_000
_FIRST_RENEW_NS: Final = 1_000_000_000
"""The first line knows no drift, and 100 parts per million make a millisecond in ten seconds."""
_MAX_RATE_PPB: Final = 500_000
"""The fastest that NTP slews a clock: 500 parts per million."""
_JUMP_NS: Final = 50_000_000
"""A difference beyond this, and beyond what drift can explain, is a jump."""


class Clock(Protocol):
    """A pair of clocks, in nanoseconds."""

    def mono_ns(self) -> int:
        """Read the monotonic clock."""

    def wall_ns(self) -> int:
        """Read the wall clock, nanoseconds since the epoch."""


class SystemClock:
    """The clocks of this machine."""

    mono_ns = staticmethod(time.perf_counter_ns)
    wall_ns = staticmethod(time.time_ns)


def read_both(clock: Clock) -> tuple[int, int]:
    """Read the monotonic and the wall clock as one moment: the tightest of three tries."""
    best: tuple[int, int, int] | None = None
    for _ in range(3):
        before = clock.mono_ns()
        wall = clock.wall_ns()
        after = clock.mono_ns()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, wall)
    assert best is not None  # noqa: S101  (the loop runs three times)
    return best[1], best[2]


class WallLine:
    """Keeps the current clock line of a process.

    Each renewal starts where the last line stands, so lines always meet, and aims to be right by
    the next one, which is expected after ten seconds or, in a process with little to write, after
    as long as this one took. The rate is the drift seen over the whole life of the process plus
    what corrects the error at hand; the total stays within what a slewed clock can do.
    """

    def __init__(self, clock: Clock) -> None:
        """Anchor both clocks."""
        self._clock = clock
        self.line = ClockLine(*read_both(self._clock))
        self._origin = self.line
        self._jumped_ns = 0

    def renew_if_due(self) -> ClockLine:
        """Give the line in force, a fresh one every ten seconds."""
        due_ns = _FIRST_RENEW_NS if self.line is self._origin else _RENEW_NS
        if self._clock.mono_ns() - self.line.mono_ns < due_ns:
            return self.line
        mono, wall = read_both(self._clock)
        at = self.line.wall_at(mono)
        error = wall - self._jumped_ns - at
        elapsed = mono - self.line.mono_ns
        if abs(error) > _JUMP_NS + elapsed * _MAX_RATE_PPB // 1_000_000_000:
            self._jumped_ns += error
            error = 0
        lived = mono - self._origin.mono_ns
        drift = (at + error - self._origin.wall_ns - lived) * 1_000_000_000 // lived
        rate = drift + error * 1_000_000_000 // max(elapsed, _RENEW_NS)
        rate = max(-_MAX_RATE_PPB, min(_MAX_RATE_PPB, rate))
        self.line = ClockLine(mono, at, rate, self._jumped_ns)
        return self.line
