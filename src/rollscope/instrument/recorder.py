"""The recorder of one process: its buffers, its writer thread, its way out.

A tracer has one recorder at a time; a fork gives the child a new one. The writer thread wakes
twenty times a second to see whether the buffer fills, drains every `drain_s`, and watches for
spans that hang.
"""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING, Final

from rollscope.instrument.buffers import ROW, Buffers, take_all
from rollscope.instrument.clock import WallLine
from rollscope.instrument.drain import Drain
from rollscope.instrument.guard import guarded, tell
from rollscope.instrument.outbox import Outbox
from rollscope.instrument.process import describe_process
from rollscope.instrument.sinks import Opening, Sink
from rollscope.instrument.spans import bind_span_types
from rollscope.instrument.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar

    from rollscope.config import Settings
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.ids import IdSource
    from rollscope.instrument.spans import Span
    from rollscope.instrument.stacks import SpanStack

__all__ = ["Recorder"]

_TICK_S: Final = 0.05
_EARLY_ROWS: Final = 10_000
"""With this many rows the writer does not wait for the drain to be due."""
_OUTBOX_SHARE: Final = 0.75
"""Part of the memory bound that encoded frames may take; the rest is the buffer's."""


class Recorder:
    """Records what one process does."""

    def __init__(
        self,
        settings: Settings,
        run: str,
        sink: Sink,
        current: ContextVar[Span],
        clock: Clock,
        ids: IdSource,
        inherited: Recorder | None = None,
    ) -> None:
        self.settings = settings
        self.run = run
        self.process = ids.process_id()
        self.current = current
        self.clock = clock
        # Spans from before a fork keep their buffers, so that facts about them still arrive.
        self.buffers: Buffers = Buffers() if inherited is None else inherited.buffers
        self.types = bind_span_types(self.buffers, current, ids, clock)
        self.new_span = self.types.new_span
        self.new_phase = self.types.new_phase
        wall = WallLine(clock)
        header = describe_process(settings, wall.line, inherited.process if inherited else None)
        opening = Opening(run, settings.dir, self.process, header, settings.tags)
        self.outbox = Outbox(sink, opening, int(settings.buffer_mb * _OUTBOX_SHARE * 2**20))
        self._drain = Drain(self.buffers, self.outbox, settings, clock, wall, self.process, header)
        self._watchdog = Watchdog(self.buffers, current, clock, settings.stack_after_s)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        # Re-entrant, since a signal handler may stop a recorder inside one of its own calls.
        self._pipe_lock = threading.RLock()
        self._flushes: list[threading.Event] = []
        self._end: str | None = None
        self.on_signal: Callable[[bytes], None] | None = None
        self._thread = threading.Thread(target=self._write, name="rollscope-writer", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self.outbox.start()
        self._thread.start()

    @property
    def wake_fd(self) -> int:
        """The descriptor that wakes the writer, fit for `signal.set_wakeup_fd`; -1 when closed."""
        return self._wake_write

    def stacks(self) -> list[SpanStack]:
        """Say where every open span hangs, now."""
        return self._watchdog.capture_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything recorded before this call is with the sink."""
        drained = threading.Event()
        self._flushes.append(drained)
        self._wake()
        return drained.wait(timeout_s) and self.outbox.wait_empty(timeout_s)

    def stop(self, why: str, timeout_s: float) -> bool:
        """Write everything and end; false if the sink did not take it in time."""
        self._end = why
        self._wake()
        self._thread.join(timeout_s)
        done = self.outbox.close(timeout_s)
        if not done or self.outbox.unsent():
            tell(
                "Rollscope could not write the last %d records of run %r in %g s",
                self.outbox.unsent(),
                self.run,
                timeout_s,
            )
            return False
        return True

    def abandon(self) -> None:
        """Let go of a recorder that came over from the parent of a fork; write nothing."""
        self.buffers.clear()
        self._pipe_lock = threading.RLock()  # the parent's writer may have held it
        self._close_pipe()

    def _wake(self) -> None:
        with self._pipe_lock:
            if self._wake_write >= 0:
                try:
                    os.write(self._wake_write, b"\0")
                except BlockingIOError:  # full, so the writer is about to wake anyway
                    return

    def _close_pipe(self) -> None:
        with self._pipe_lock:
            if self._wake_write >= 0:
                os.close(self._wake_read)
                os.close(self._wake_write)
                self._wake_read = self._wake_write = -1

    def _write(self) -> None:
        due_ns = 0
        while self._end is None:
            with guarded("waiting"):
                self._sleep()
            at = self.clock.mono_ns()
            waiting = take_all(self._flushes)
            if at >= due_ns or waiting or len(self.buffers.rows) > _EARLY_ROWS * ROW:
                due_ns = at + int(self.settings.drain_s * 1e9)
                with guarded("writing records"):
                    self._drain.run(stacks=self._watchdog.due())
            for drained in waiting:
                drained.set()
        with guarded("writing the last records"):
            self._drain.run(end=self._end)
        for drained in take_all(self._flushes):
            drained.set()
        if self.on_signal is None:
            # Else the pipe is the wake-up descriptor for signals, and must not be closed under it.
            self._close_pipe()

    def _sleep(self) -> None:
        """Wait for the next tick or a wake-up; hand signals that came to whoever listens."""
        select.select([self._wake_read], [], [], _TICK_S)
        try:
            signals = os.read(self._wake_read, 4096).strip(b"\0")
        except BlockingIOError:
            return
        if signals and self.on_signal is not None:
            self.on_signal(signals)
