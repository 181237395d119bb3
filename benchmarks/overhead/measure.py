"""How a subject is timed: bursts of spans, in CPU time, many times over.

CPU time leaves out what other programs do to this machine, but not what they do to its caches and
clock speed. So each burst is repeated, and the best repetition is the figure, as in `timeit`. That
is fair only if bursts of all subjects last about as long: a short one finds a quiet moment easier.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FULL", "QUICK", "Result", "Scale", "empty_loop", "measure"]


class Scale(msgspec.Struct, frozen=True):
    """How much is measured."""

    rounds: int
    """Processes per subject; a process has its own luck with addresses and caches."""
    repetitions: int
    """Bursts per process."""
    burst: int
    """Spans per burst: about ten milliseconds, and few enough for buffers to stay small."""
    lag_pairs: int
    """Traced and untraced stretches of the event loop."""
    lag_s: float
    """Seconds per stretch."""

    @property
    def bursts(self) -> int:
        """All bursts of a process, the one to warm up included."""
        return self.repetitions + 1

    def shorten(self, factor: int) -> Scale:
        """Give the scale for a subject that takes about `factor` times as long per span."""
        return msgspec.structs.replace(self, burst=self.burst // factor)


FULL: Final = Scale(rounds=6, repetitions=25, burst=5_000, lag_pairs=20, lag_s=0.8)
QUICK: Final = Scale(rounds=2, repetitions=15, burst=5_000, lag_pairs=6, lag_s=0.8)


class Result(msgspec.Struct, omit_defaults=True):
    """What one process found out about its subject."""

    caller_ns: list[float] = []
    """CPU time of the calling thread per span, one figure per repetition."""
    total_ns: list[float] = []
    """CPU time of the whole process per span, until everything is where it should go."""
    figures: dict[str, list[float]] = {}
    """Anything else, by name."""
    problem: str = ""
    """Why there are no figures."""

    def add(self, other: Result) -> None:
        """Take in what another process found out about the same subject."""
        self.caller_ns += other.caller_ns
        self.total_ns += other.total_ns
        for name, values in other.figures.items():
            self.figures.setdefault(name, []).extend(values)
        self.problem = self.problem or other.problem


def empty_loop(count: int) -> int:
    """Give the CPU time of a loop that does nothing."""
    began = time.thread_time_ns()
    for _ in range(count):
        pass
    return time.thread_time_ns() - began


def measure(
    scale: Scale,
    burst: Callable[[int], int],
    finish: Callable[[], object],
    bare: Callable[[int], int] = empty_loop,
) -> Result:
    """Time a subject.

    Args:
        scale: How often and how much.
        burst: Records the given number of spans and gives the thread's CPU time for it.
        finish: Brings everything recorded to where it should go.
        bare: Does the same as `burst` without recording; its best time is taken off.
    """
    callers, totals, bares = [], [], []
    for _ in range(scale.bursts):
        gc.collect()
        bares.append(bare(scale.burst))
        began = time.process_time_ns()
        callers.append(burst(scale.burst))
        finish()
        totals.append(time.process_time_ns() - began)
    least = min(bares)
    return Result(
        # The first repetition warms up: imports, caches, the first frame of a log.
        caller_ns=[(spent - least) / scale.burst for spent in callers[1:]],
        total_ns=[(spent - least) / scale.burst for spent in totals[1:]],
    )
