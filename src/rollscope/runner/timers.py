"""One heap for everything that is due at some time, and one armed timer for its head."""

from __future__ import annotations

import heapq
from contextvars import Context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Callable

__all__ = ["Timer", "Timers"]

_FEW: Final = 64
"""Entries below which dead ones are not worth sweeping out."""


class Timer:
    """Something that is due once."""

    __slots__ = ("act", "due_ns", "is_queued", "number")

    def __init__(self, due_ns: int, number: int, act: Callable[[], object] | None) -> None:
        self.due_ns, self.number, self.act = due_ns, number, act
        self.is_queued = True

    def __lt__(self, other: Timer) -> bool:
        return (self.due_ns, self.number) < (other.due_ns, other.number)


class Timers:
    """The heap; belongs to the loop thread."""

    def __init__(self, clock: Callable[[], int], on_error: Callable[[BaseException], None]) -> None:
        self._clock = clock
        self._on_error = on_error
        self._nowhere = Context()
        """That of the task which sets a timer would be kept alive by it."""
        self._heap: list[Timer] = []
        self._dead = 0
        self._count = 0
        self._loop: AbstractEventLoop | None = None
        self._armed: TimerHandle | None = None
        self._armed_ns = 0
        self.late_ns = 0
        """By how much timers were late in sum, for a loop that was held up."""

    def __len__(self) -> int:
        """Say how many are due some time."""
        return len(self._heap) - self._dead

    def bind(self, loop: AbstractEventLoop) -> None:
        """Use this loop."""
        self._loop = loop
        self._arm()

    def now_ns(self) -> int:
        """Give the time that they go by."""
        return self._clock()

    def at(self, due_ns: int, act: Callable[[], object]) -> Timer:
        """Call something at a time of the clock."""
        self._count += 1
        timer = Timer(due_ns, self._count, act)
        heapq.heappush(self._heap, timer)
        if self._heap[0] is timer:
            self._arm()
        return timer

    def after(self, delay_s: float, act: Callable[[], object]) -> Timer:
        """Call something after some time."""
        return self.at(self._clock() + max(0, int(delay_s * 1e9)), act)

    def take_back(self, timer: Timer) -> None:
        """Call it no more; a second time does nothing."""
        if timer.act is None:
            return
        timer.act = None
        if not timer.is_queued:  # it rings in this very moment
            return
        self._dead += 1
        if self._dead > _FEW and self._dead * 2 > len(self._heap):
            self._heap = [one for one in self._heap if one.act is not None]
            heapq.heapify(self._heap)
            self._dead = 0

    def clear(self) -> None:
        """Forget all of them."""
        self._heap.clear()
        self._dead = 0
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _arm(self, least_s: float = 0.0) -> None:
        if self._loop is None:
            return
        while self._heap and self._heap[0].act is None:
            heapq.heappop(self._heap)
            self._dead -= 1
        if not self._heap:
            return
        due_ns = self._heap[0].due_ns
        if self._armed is not None:
            if self._armed_ns <= due_ns:
                return
            self._armed.cancel()
        delay_s = max(least_s, (due_ns - self._clock()) / 1e9)
        self._armed_ns = due_ns
        self._armed = self._loop.call_later(delay_s, self._ring, context=self._nowhere)

    def _ring(self) -> None:
        self._armed = None
        now_ns = self._clock()
        heap = self._heap
        if heap and now_ns - self._armed_ns > _LATE_NS:
            self.late_ns += now_ns - self._armed_ns
        due: list[Timer] = []
        while heap and heap[0].due_ns <= now_ns:
            timer = heapq.heappop(heap)
            timer.is_queued = False
            if timer.act is None:
                self._dead -= 1
            else:
                due.append(timer)
        try:
            for timer in due:
                act, timer.act = timer.act, None
                if act is not None:  # one that rang before may have taken it back
                    act()
        except BaseException as error:  # a fault of ours
            self._on_error(error)
        self._arm(0.0 if due else _TICK_S)


_TICK_S: Final = 0.001
"""A loop that goes by milliseconds rings early by a part of one. Asked for that part again, it
would ring at once, and so over and over until the time has come."""
_LATE_NS: Final = 50_000_000
"""A timer that rings later than this tells of a loop that was held up."""
