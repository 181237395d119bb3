"""`PerfTracer`: scopes and instants, recorded natively and kept for the classic perf file."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import pass_over, tell_once
from rollscope.instrument.spans import NOOP
from rollscope.integrations.areal import state
from rollscope.integrations.areal.categories import (
    CategoryLike,
    is_own_category,
    normalise_category,
)
from rollscope.integrations.areal.events import Life
from rollscope.integrations.areal.files import LineFile
from rollscope.integrations.areal.lines import copy_args
from rollscope.integrations.areal.profiler import Profiling, Tracks, is_profiling
from rollscope.integrations.areal.scopes import Scope
from rollscope.integrations.areal.sessions import SessionTracer
from rollscope.integrations.areal.settings import TracerSettings, read_settings
from rollscope.integrations.areal.steps import StepCutter
from rollscope.integrations.areal.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.instrument.spans import Span

__all__ = ["PerfTracer"]

_ROW_BYTES: Final = 512
"""What a row takes in memory, about."""


class PerfTracer:
    """Records scopes and instants of one process.

    Args:
        config: A `PerfTracerConfig`, or anything with its names as attributes or keys.
        rank: Of this process.
        role: What this process does; names a folder.

    Raises:
        ValueError: The rank is negative, or the config lacks a name.
        TypeError: `save_interval` is no number.
    """

    def __init__(self, config: object, *, rank: int, role: str | None = None) -> None:
        if rank < 0:
            raise ValueError("rank must be 0 or more")
        self.settings: TracerSettings = read_settings(config)
        self.dropped = 0
        """Events that found the buffer full."""
        self._rank, self._role = rank, role
        self._enabled = self.settings.enabled
        name = f"traces-r{rank}.jsonl"
        max_bytes = int(self.settings.max_buffer_mb * 2**20)
        self.file = LineFile(self.settings.file("perf_tracer", role, name), max_bytes)
        self._most_rows = max(max_bytes // _ROW_BYTES, 1)
        self._begin_life()
        self.steps = StepCutter() if rank == 0 and role in (None, "master") else None
        self._writer = Writer(is_sync=self.settings.sync_writes)
        self._session_tracer = self._make_session_tracer()
        if self._enabled:
            self._writer.add(self)

    def _make_session_tracer(self) -> SessionTracer | None:
        if self.settings.session is None:
            return None
        path = self.settings.file("session_tracer", self._role, f"sessions-r{self._rank}.jsonl")
        return SessionTracer(
            self.settings.session,
            output_path=path,
            rank=self._rank,
            role=self._role,
            writer=self._writer,
        )

    def _begin_life(self) -> None:
        self._life = Life(self._rank, self._role, self.settings.run)
        self._rows: deque[Any] = deque()
        self._threads = threading.local()
        self._tracks = Tracks()
        self._has_head = False
        self._is_save_wanted = False

    @property
    def enabled(self) -> bool:
        """Whether scopes and instants are recorded."""
        return self._enabled

    @property
    def session_tracer(self) -> SessionTracer | None:
        """Records sessions, if the config asks for that."""
        return self._session_tracer

    def set_enabled(self, flag: bool) -> None:
        """Switch scopes and instants on or off; sessions have a switch of their own."""
        if flag and self not in self._writer.parts:
            self._writer.add(self)
        self._enabled = bool(flag)

    def trace_scope(
        self,
        name: str,
        *,
        category: CategoryLike = None,
        enable_profiler: bool = False,
        profiler_args: dict[str, Any] | None = None,
        args: dict[str, Any] | None = None,
    ) -> Scope | Span:
        """Time a block; serves `with` and `async with`."""
        if not self._enabled:
            return NOOP
        try:
            given = copy_args(args)
            scope = Scope(self, name, normalise_category(category), given)
            if enable_profiler and self._is_profiled(given) and not is_profiling.get():
                scope.profiler_options = profiler_args or {}
        except Exception as error:  # what was given is the host's code
            pass_over("making a scope", error)
            return NOOP
        return scope

    atrace_scope = trace_scope

    def _is_profiled(self, args: dict[str, Any]) -> bool:
        step = args.get("global_step", state.step.get())
        try:
            return step in self.settings.profile_steps
        except TypeError:  # no number at all
            return False

    def instant(
        self, name: str, *, category: CategoryLike = None, args: dict[str, Any] | None = None
    ) -> None:
        """Record a moment."""
        if not self._enabled:
            return
        at = time.perf_counter_ns()
        try:
            given, short = copy_args(args), normalise_category(category)
            recorder = state.recorder()
            if recorder is not None:
                recorder.types.add_event(name, {"category": short, **given})
            self.keep(("i", (name, at, self.thread_id(), short, given, state.step.get())))
        except Exception as error:
            pass_over("recording an instant", error)

    def merge_profiler_trace(
        self,
        profiler_traces: Any,  # noqa: ANN401  (JSON)
        base_time_ns: int,
        *,
        args: dict[str, Any] | None = None,
    ) -> None:
        """Take the events of torch's profiler over.

        Args:
            profiler_traces: What the profiler has exported.
            base_time_ns: When it began, by `time.perf_counter_ns`.
            args: Not used, as in the original.
        """
        if self._enabled:
            self.keep(("P", (lambda: profiler_traces, base_time_ns)))

    def keep_profile(self, profiling: Profiling, base_ns: int) -> None:
        """Let the writer read a profile."""
        self.keep(("P", (profiling.read, base_ns)))

    def native_span(self, name: str, category: str, args: dict[str, Any]) -> Span:
        """Make Rollscope's own span of a scope."""
        recorder = state.recorder()
        if recorder is None:
            return NOOP
        if is_own_category(category):
            return recorder.new_span(name, category, args.copy())
        return recorder.new_span(name, "misc", {"category": category, **args})

    def thread_id(self) -> int:
        """Give the number of the calling thread, and tell its name once."""
        try:
            return self._threads.number  # type: ignore[no-any-return]  # set below
        except AttributeError:
            self._threads.number = number = threading.get_native_id()
            self.keep(("T", (number, threading.current_thread().name)))
            return number

    def keep(self, row: tuple[str, Any]) -> None:
        """Keep a row for the file; one that finds no room is counted."""
        rows = self._rows
        waiting = len(rows)
        if waiting >= self._most_rows:
            self.dropped += 1
            tell_once("areal-rows", "Rollscope drops perf events: more come than can be written")
            return
        rows.append(row)
        if waiting * 2 >= self._most_rows:
            self._writer.wake()

    def save(self, *, step: int | None = None, force: bool = False) -> None:
        """Have what was recorded written.

        Args:
            step: Of the trainer; only the last one of each `save_interval` steps writes.
            force: Write whatever the step, sessions too, and wait until it is on disk.
        """
        if self.steps is not None and step is not None:
            self.steps.end(step)
        if force:
            self._writer.flush()
        elif self._enabled and (step is None or (step + 1) % self.settings.save_interval == 0):
            self._is_save_wanted = True
            if self._writer.is_sync:
                self.gather(force=False)
                self.file.write()
            else:
                self._writer.wake()

    def reset(self) -> None:
        """Write everything, and begin anew: sessions from 0, times from 0."""
        if self._session_tracer is not None:
            self._session_tracer.reset()
        self._writer.flush()
        self._begin_life()
        self._enabled = self.settings.enabled

    def close(self) -> None:
        """Write everything, and stop."""
        if self.steps is not None:
            self.steps.close()
        self.reset()
        self._enabled = False
        self._writer.shutdown()

    def gather(self, *, force: bool) -> None:
        """Hand rows to the file: when a save asked for it, or when the buffer fills."""
        rows = self._rows
        if not (force or self._is_save_wanted or len(rows) * 2 >= self._most_rows):
            return
        self._is_save_wanted = False
        taken = [rows.popleft() for _ in range(len(rows))]
        if taken:
            self.file.put(partial(self._events, self._life, self._tracks, taken))

    def _events(
        self, life: Life, tracks: Tracks, rows: list[tuple[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        if not self._has_head:
            self._has_head = True
            yield from life.head()
        for kind, row in rows:
            if kind == "X":
                yield life.span(row)
            elif kind == "i":
                yield life.instant(row)
            elif kind == "T":
                yield life.thread(row)
            else:
                read, base_ns = row
                try:
                    yield from tracks.merge(read(), base_ns, life)
                except Exception as error:  # a profile that cannot be read costs no other event
                    tell_once("areal-profile", "Rollscope cannot read a profile: %s", error)

    def restart_after_fork(self) -> None:
        """Begin anew in a forked child, with a file of its own."""
        self._begin_life()
        folder = os.path.dirname(self.file.path)
        self.file.restart(os.path.join(folder, f"traces-r{self._rank}-p{os.getpid()}.jsonl"))
