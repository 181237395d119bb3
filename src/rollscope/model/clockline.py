"""Clock lines: how monotonic time is placed on the wall clock.

A line starts at an anchor, a reading of both clocks, and says how fast the wall clock runs against
the monotonic one from there on. A process writes a new line now and then; consecutive lines meet,
so that the order of a process's records is never disturbed.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["ClockLine", "ClockMap"]


class ClockLine(NamedTuple):
    """Wall time = wall_ns + (t - mono_ns) * (1 + rate_ppb / 1e9), in whole nanoseconds."""

    mono_ns: int
    wall_ns: int
    rate_ppb: int = 0
    jumped_ns: int = 0
    """How far the wall clock has jumped so far; jumps are not followed."""

    def wall_at(self, mono_ns: int) -> int:
        """Place a monotonic time on the wall clock."""
        elapsed = mono_ns - self.mono_ns
        return self.wall_ns + elapsed + elapsed * self.rate_ppb // 1_000_000_000


class ClockMap:
    """The lines of one process, as far as they are known."""

    def __init__(self, lines: Iterable[ClockLine] = ()) -> None:
        """Know the given lines."""
        self.lines: list[ClockLine] = []
        """In the order in which they start."""
        self._starts: list[int] = []
        for line in lines:
            self.add(line)

    def add(self, line: ClockLine) -> None:
        """Take a line; the same line may come any number of times, in any order."""
        at = bisect_right(self._starts, line.mono_ns)
        if at and self.lines[at - 1] == line:
            return
        self.lines.insert(at, line)
        self._starts.insert(at, line.mono_ns)

    def line_for(self, mono_ns: int) -> ClockLine:
        """Give the line in force at a time; before the first line, the first."""
        at = bisect_right(self._starts, mono_ns)
        return self.lines[max(at - 1, 0)]

    def wall_at(self, mono_ns: int) -> int:
        """Place a monotonic time on the wall clock."""
        return self.line_for(mono_ns).wall_at(mono_ns)
