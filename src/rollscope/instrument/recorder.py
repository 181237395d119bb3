"""The recorder of one process: its buffers, its writer thread, its way out.

A tracer has one recorder at a time; a fork gives the child a new one. The writer thread wakes ten
to twenty times a second to see whether the buffer fills, drains every `drain_s`, and watches for
spans that hang.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

from rollscope.instrument.asking import StackRequests, ask_path
from rollscope.instrument.binding import bind_span_types
from rollscope.instrument.buffers import Buffers, take_all
from rollscope.instrument.clock import WallLine
from rollscope.instrument.drain import Drain
from rollscope.instrument.guard import SINK_TROUBLE, guarded, tell_once
from rollscope.instrument.outbox import Outbox
from rollscope.instrument.process import describe_process
from rollscope.instrument.sinks import Opening, Sink
from rollscope.instrument.waiting import wait_until
from rollscope.instrument.wakepipe import WakePipe
from rollscope.instrument.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar

    from rollscope.config import Settings
    from rollscope.instrument.binding import SpanTypes
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.ids import IdSource
    from rollscope.instrument.spans import Span
    from rollscope.instrument.stacks import SpanStack

__all__ = ["Recorder"]

_TICK_S: Final = 0.05
_BUSY_TICK_S: Final = 0.02
_CALM_TICK_S: Final = 0.25
"""Between looks while nothing at all is recorded: thousands of spans may be open for minutes."""
_CALM_DRAIN_S: Final = 1.0
"""Between drains in such a time, of which only heart-beats and stacks can come."""
_CALM_SHARE: Final = 0.95
"""No longer than this part of `drain_s`, since a kill is to lose no more than that."""
_OUTBOX_SHARE: Final = 0.75
"""Part of the memory bound that encoded frames may take; the rest is the buffer's."""
_REDACTION_SHARE: Final = 0.5
"""Part of the time for ending that payloads may take to be redacted; the rest is the sink's."""


class Recorder:
    """Records what one process does."""

    dress: ClassVar[Callable[[SpanTypes], SpanTypes] | None] = None
    """Makes of what spans are made with what they are to be made with instead, for every recorder;
    an integration sets it. So those who do not need it pay nothing."""

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
        if inherited is None:
            self.buffers = Buffers()
            self._bare_types = bind_span_types(self.buffers, current, ids, clock)
        else:
            # Spans made before a fork can still be entered, and told about, in the child.
            self.buffers, self._bare_types = inherited.buffers, inherited._bare_types
            self._bare_types.renew_ids()
        self.wear()
        self.add_call = self.buffers.samples.extend
        """Takes a call of a metric, as `calls` lays them out; indivisible, as that of rows is."""
        wall = WallLine(clock)
        header = describe_process(settings, wall.line, inherited.process if inherited else None)
        opening = Opening(run, settings.dir, self.process, header, settings.tags)
        self.outbox = Outbox(sink, opening, int(settings.buffer_mb * _OUTBOX_SHARE * 2**20))
        self._watchdog = Watchdog(self.buffers, current, clock, settings.stack_after_s)
        self._drain = Drain(
            self.buffers,
            self.outbox,
            settings,
            clock,
            wall,
            self.process,
            header,
            self._watchdog.watch,
        )
        has_files = settings.sink == "file"
        place = os.path.join(settings.dir, run)
        self._asked = StackRequests(ask_path(place, self.process) if has_files else None)
        self._pipe = WakePipe()
        self._flushes: list[threading.Event] = []
        self._end: str | None = None
        self._patience_s = 0.0
        self._has_ended = False
        self._is_left = False
        self._is_busy = False
        self._is_calm = False
        self._tick_s = min(_TICK_S, settings.drain_s / 2)
        self.on_signal: Callable[[bytes], None] | None = None
        """Is told of signals; set while `wake_fd` is, or may be again, where they are written."""
        self._thread = threading.Thread(target=self._write, name="rollscope-writer", daemon=True)

    def wear(self) -> None:
        """Make spans from now on as `dress` says."""
        dress = type(self).dress
        self.types = self._bare_types if dress is None else dress(self._bare_types)
        self.new_span = self.types.new_span
        self.new_phase = self.types.new_phase

    def start(self) -> None:
        """Start writing."""
        self.outbox.start()
        self._drain.payloads.start()
        self._thread.start()

    @property
    def wake_fd(self) -> int:
        """The descriptor that wakes the writer, fit for `signal.set_wakeup_fd`; -1 when closed."""
        return self._pipe.fd

    def stacks(self) -> list[SpanStack]:
        """Say where every open span hangs, now."""
        return self._watchdog.capture_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything recorded before this call is with the sink."""
        deadline = time.monotonic() + timeout_s
        is_drained = self._drain_by(deadline)
        if is_drained and not self._drain.payloads.is_redacted():
            # What payloads have become once they are redacted is taken by another drain.
            is_redacted = self._drain.payloads.wait_redacted(deadline - time.monotonic())
            is_drained = is_redacted and self._drain_by(deadline)
        return is_drained and self.outbox.wait_empty(deadline - time.monotonic())

    def _drain_by(self, deadline: float) -> bool:
        drained = threading.Event()
        self._flushes.append(drained)
        self._pipe.wake()
        # Not `drained.wait`, whose lock the writer needs, and a signal handler may end the writer.
        return wait_until(drained.is_set, deadline - time.monotonic())

    def stop(self, why: str, timeout_s: float) -> bool:
        """Write everything and end; false if the sink did not take it in time."""
        deadline = time.monotonic() + timeout_s
        self._patience_s = timeout_s * _REDACTION_SHARE
        self._end = why
        self._pipe.wake()
        wait_until(lambda: self._has_ended, timeout_s)
        is_drained = self._has_ended
        self.outbox.close(max(deadline - time.monotonic(), 0.0))
        left = self.outbox.unsent()
        if is_drained and not left:
            return True
        if not is_drained:
            left += self.buffers.count_waiting()
        tell_once(
            SINK_TROUBLE,
            "Rollscope could not write the last %d records of run %r in %g s",
            left,
            self.run,
            timeout_s,
        )
        return False

    def abandon(self) -> None:
        """Let go of a recorder that came over from the parent of a fork; write nothing."""
        self.buffers.clear()
        if self.on_signal is None:
            self._pipe.close_in_child()

    def close_pipe(self) -> None:
        """Let go of the descriptors of a stopped recorder, unless they are still needed."""
        self._is_left = True
        if self.on_signal is None and self._has_ended:
            self._pipe.close()

    def _write(self) -> None:
        try:
            self._write_until_end()
        finally:
            self._has_ended = True
            if self._is_left:  # by who could not wait any longer
                self.close_pipe()

    def _write_until_end(self) -> None:
        due_ns = calm_until_ns = 0
        while self._end is None:
            with guarded("waiting"):
                self._wait(due_ns)
                if self._is_calm:
                    self._rest(calm_until_ns)
            at = self.clock.mono_ns()
            waiting = take_all(self._flushes)
            is_asked = self._asked.came()
            if at >= due_ns or waiting or is_asked or self.buffers.is_filling():
                # A tick early rather than late: a kill is to lose no more than `drain_s`.
                due_ns = at + int((self.settings.drain_s - self._tick_s) * 1e9)
                calm_until_ns = at + int(_CALM_DRAIN_S * 1e9)
                # This thread ends when it is told to, not by what it reads.
                with suppress(SystemExit), guarded("writing records"):
                    stacks = self._stacks_to_write(is_asked)
                    self._drain.run(stacks=stacks, is_flush=bool(waiting))
            elif self._is_busy:
                with suppress(SystemExit), guarded("writing rows"):
                    self._drain.run_rows()
            for drained in waiting:
                drained.set()
        with suppress(SystemExit), guarded("writing the last records"):
            self._drain.run(end=self._end, patience_s=self._patience_s)
        self._drain.payloads.stop()
        for drained in take_all(self._flushes):
            drained.set()

    def _stacks_to_write(self, is_asked: bool) -> list[SpanStack]:
        if is_asked:
            with guarded("taking await stacks on request"):
                return self._watchdog.capture_all()
        return self._watchdog.due()

    def _wait(self, due_ns: int) -> None:
        """Wait for the next tick or a wake-up; hand signals that came to whoever listens."""
        if self._is_busy:
            tick_s = min(_BUSY_TICK_S, self._tick_s)
        elif self.buffers.rows or self.buffers.hosted or self._asked.are_expected():
            tick_s = self._tick_s
        elif self._is_calm:
            tick_s = min(_CALM_TICK_S, self.settings.drain_s * _CALM_SHARE)
        else:
            left_s = (due_ns - self.clock.mono_ns()) * 1e-9
            tick_s = min(2 * self._tick_s, max(left_s, self._tick_s))
        self._sleep(0 if self.buffers.is_filling() else tick_s)
        self._is_busy = self.buffers.is_busy()
        self._is_calm = not self._is_busy and self._drain.has_nothing_new()

    def _rest(self, until_ns: int) -> None:
        """Wait on while nothing is recorded, and nobody wants anything.

        There is much of such a time, and every cache is cold at the end of a sleep; so a look is
        as short as it can be.
        """
        if self._asked.are_expected():
            return
        tick_s = min(_CALM_TICK_S, self.settings.drain_s * _CALM_SHARE)
        while (
            self._end is None
            and not self._flushes
            and not self.buffers.samples
            and self._drain.has_nothing_new()
            and not self._asked.are_waiting()
            and self.clock.mono_ns() < until_ns
        ):
            self._sleep(tick_s)

    def _sleep(self, seconds: float) -> None:
        signals = self._pipe.wait(seconds)
        if signals and self.on_signal is not None:
            self.on_signal(signals)
