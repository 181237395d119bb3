"""How long single calls take, split by the kernel's own account of the thread that makes them.

A call's time is spent on a core, waiting for a core, which a busy machine makes anybody do, or
blocked. Or it is in no account at all: the host of a virtual machine has taken the core away, and
the thread on it neither slept nor waited. Loops that do nothing but read clocks see the same.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["Calls", "Stopwatch"]

_MUCH_NS: Final = 1_000_000
_LITTLE_NS: Final = 10_000
"""Who has slept has missed more than that of its core."""
_LEFT_ALONE_NS: Final = 1_000_000
"""A call that waited for a core for less was left alone by the machine."""


class Calls(msgspec.Struct):
    """How many calls there were, and the longest of each in milliseconds."""

    count: int = 0
    wall_ms: float = 0.0
    wall_count: int = 0
    """How many calls took more than a millisecond, for whatever reason."""
    blocked_ms: float = 0.0
    """Asleep: neither on a core nor waiting for one."""
    blocked_count: int = 0
    """How many calls were blocked for more than a millisecond."""
    kept_waiting_ms: float = 0.0
    """Of that, what is ours to answer for. Only one thread may run Python at a time. Whoever loses
    its core loses that right too, in a while, and whoever waits for a core while holding it makes
    all others wait. So calls are left out that waited for a core themselves, and from the rest is
    taken what other threads of the process waited for one."""
    others_ran_ms: float = 0.0
    """What other threads of the process ran for while a call was blocked, at most: all that can be
    due to their work, of calls that waited for a core too."""
    taken_ms: float = 0.0
    """While the host had the core: in no account of this machine, and the thread never slept."""
    taken_count: int = 0
    """How many calls missed their core for more than a millisecond in that way."""


class Schedule(NamedTuple):
    """What the kernel says of a thread."""

    ran_ns: int
    waited_ns: int
    """For a core."""


class Stopwatch:
    """Times single calls of this thread, split by what the kernel says of it."""

    def __init__(self) -> None:
        self._schedule = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._own = str(threading.get_native_id())
        self._blocked_ns: list[int] = []
        """For how long each call that was left alone was blocked since the last look at others."""
        self._most_blocked_ns = 0
        """The same, of all calls."""
        self._others: dict[str, Schedule] = {}
        self.calls = Calls()

    def time(self, call: Callable[[], AbstractContextManager[Any]]) -> Any:
        """Enter and leave what a call gives; gives what entering gave."""
        waited = self._waited_ns()
        slept = _times_slept()  # after the line above, which may sleep
        cpu = time.thread_time_ns()
        began = time.perf_counter_ns()
        with call() as given:
            pass
        wall = time.perf_counter_ns() - began
        cpu = time.thread_time_ns() - cpu
        has_slept = wall - cpu > _LITTLE_NS and _times_slept() > slept
        waited = self._waited_ns() - waited
        missing = max(wall - waited - cpu, 0)
        blocked, taken = (missing, 0) if has_slept else (0, missing)
        calls = self.calls
        calls.count += 1
        calls.wall_count += wall > _MUCH_NS
        calls.wall_ms = max(calls.wall_ms, wall / 1e6)
        calls.blocked_count += blocked > _MUCH_NS
        calls.blocked_ms = max(calls.blocked_ms, blocked / 1e6)
        calls.taken_count += taken > _MUCH_NS
        calls.taken_ms = max(calls.taken_ms, taken / 1e6)
        self._most_blocked_ns = max(self._most_blocked_ns, blocked)
        if waited < _LEFT_ALONE_NS:
            self._blocked_ns.append(blocked)
        return given

    def look_at_others(self) -> None:
        """Take note of how long the process's other threads have run and waited by now."""
        before, self._others = self._others, self._look()
        both = [(before[thread], now) for thread, now in self._others.items() if thread in before]
        if self._blocked_ns:
            waited = sum(after.waited_ns - earlier.waited_ns for earlier, after in both)
            kept_waiting = (max(self._blocked_ns) - waited) / 1e6
            self.calls.kept_waiting_ms = max(self.calls.kept_waiting_ms, kept_waiting)
        ran = sum(after.ran_ns - earlier.ran_ns for earlier, after in both)
        others_ran = min(self._most_blocked_ns, ran) / 1e6
        self.calls.others_ran_ms = max(self.calls.others_ran_ms, others_ran)
        self._blocked_ns.clear()
        self._most_blocked_ns = 0

    def _waited_ns(self) -> int:
        return int(os.pread(self._schedule, 64, 0).split()[1])

    def _look(self) -> dict[str, Schedule]:
        found: dict[str, Schedule] = {}
        for thread in os.listdir("/proc/self/task"):
            if thread != self._own:
                with suppress(OSError):  # it has just ended
                    said = Path(f"/proc/self/task/{thread}/schedstat").read_text().split()
                    found[thread] = Schedule(int(said[0]), int(said[1]))
        return found

    def close(self) -> None:
        """Let go of the kernel's account."""
        os.close(self._schedule)


def _times_slept() -> int:
    """Say how often this thread has given its core up of its own accord."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
