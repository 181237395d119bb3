"""Finds out when user code blocks the loop, and which code it is.

A thread asks the loop for an answer now and then, only while tasks run. No answer for a quarter of
a second means that something blocks; its stack is then taken, once for each time.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

import msgspec

from rollscope.instrument.stacks import call_chain
from rollscope.model.loops import BLOCKED_FROM_S
from rollscope.runner.children import owner_of
from rollscope.runner.guard import log

if TYPE_CHECKING:
    from rollscope.runner.kernel import Kernel

__all__ = ["Block", "Watcher"]

_KEPT: Final = 20
_TELL_EVERY_S: Final = 1.0
"""Lags are recorded together: one at a time, they alone would keep a recorder busy while every task
waits for an engine."""


class Block(msgspec.Struct, frozen=True):
    """A time in which the loop did not turn."""

    task_id: int | None
    """The task whose code blocked, where that is known."""
    frames: list[str]
    """`file:line function`, outermost first, a quarter of a second into it."""
    blocked_s: float


class Watcher:
    """Watches one loop, from a thread that sleeps while nothing runs."""

    def __init__(self, kernel: Kernel, probe_s: float | None, name: str) -> None:
        self._kernel = kernel
        self._probe_s = probe_s
        self._name = name
        self._thread: threading.Thread | None = None
        self._work = threading.Event()
        # Bare locks to wait at: an `Event` takes ten calls for each wait.
        self._pace = threading.Lock()
        self._pace.acquire()
        self._is_over = False
        self.lag_s = 0.0
        """How long the loop took to answer the last time."""
        self.blocked_since: float | None = None
        self.blocks: list[Block] = []
        self._untold: list[float] = []
        self._told_at = 0.0

    def wake(self) -> None:
        """Begin to watch: a task was started; from the loop thread."""
        if self._probe_s is None or self._work.is_set():
            return
        self._work.set()
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._watch, name=f"rollscope-{self._name}-watch", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        if not self._is_over:
            self._is_over = True
            self._pace.release()
        self._work.set()

    def blocked_for_s(self) -> float:
        """Say how long the loop has not answered; 0 if it does."""
        since = self.blocked_since
        return 0.0 if since is None else time.monotonic() - since

    def _watch(self) -> None:
        assert self._probe_s is not None  # noqa: S101  (the thread is not started without)
        while not self._is_over:
            if not self._work.is_set():
                self._work.wait()
            if not self._kernel.running:
                self._tell_lags()
                self._work.clear()
                if not self._kernel.running:  # none started between the two looks
                    continue
                self._work.set()
            self._probe()
            self._pace.acquire(timeout=self._probe_s)  # given back only at the end
        self._tell_lags()

    def _probe(self) -> None:
        answered = threading.Lock()
        answered.acquire()
        asked = time.monotonic()
        self._kernel.call_loop(answered.release)
        if answered.acquire(timeout=BLOCKED_FROM_S):
            self._note_lag(time.monotonic() - asked)
            return
        if self._is_over or self._kernel.loop is None or self._kernel.loop.is_closed():
            return
        self.blocked_since = asked
        task_id, frames = self._culprit()
        while not answered.acquire(timeout=1.0):
            if self._is_over:
                return
        self._note_lag(time.monotonic() - asked)
        self.blocked_since = None
        self._tell(Block(task_id, frames, self.lag_s))

    def _note_lag(self, lag_s: float) -> None:
        self.lag_s = lag_s
        self._untold.append(lag_s)
        if lag_s >= BLOCKED_FROM_S or time.monotonic() - self._told_at >= _TELL_EVERY_S:
            self._tell_lags()

    def _tell_lags(self) -> None:
        self._told_at = time.monotonic()
        untold, self._untold = self._untold, []
        self._kernel.trace.lagged(untold)

    def _culprit(self) -> tuple[int | None, list[str]]:
        kernel, loop = self._kernel, self._kernel.loop
        frame = sys._current_frames().get(kernel.thread_id or 0)
        if frame is None or loop is None:
            return None, []
        current = asyncio.current_task(loop)  # it may be one that a task has started
        owner = None if current is None else owner_of(current)
        if owner is None or owner.kernel is not kernel:
            return None, call_chain(frame)
        return owner.id, call_chain(frame)

    def _tell(self, block: Block) -> None:
        self.blocks = [*self.blocks[-_KEPT + 1 :], block]
        where = block.frames[-1] if block.frames else "an unknown place"
        log.warning("the loop was blocked for %.2f s at %s", block.blocked_s, where)
        self._kernel.trace.blocked(block.task_id, block.frames, block.blocked_s)
