"""One runtime: what traces in a process from `configure_trace` to `close_trace`, and where to."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default as tracing
from rollscope.instrument.guard import guarded
from rollscope.integrations.xtuner.otlpfile import OtlpFile
from rollscope.integrations.xtuner.paths import path_header
from rollscope.integrations.xtuner.producerfile import (
    EVENT_FIELDS,
    EventMemory,
    ProducerFile,
    TraceEvent,
    event_of,
)
from rollscope.integrations.xtuner.sessions import Sessions
from rollscope.integrations.xtuner.states import members_of
from rollscope.integrations.xtuner.writing import ClassicWriter
from rollscope.model.refs import format_traceparent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span
    from rollscope.instrument.tracer import Tracer
    from rollscope.integrations.xtuner.config import Options
    from rollscope.integrations.xtuner.sessions import Seat

__all__ = ["TraceRuntime"]

_CLOSE_S: Final = 5.0


class TraceRuntime:
    """What `configure_trace` gives: the runtime of one design and the recorder of the other."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.enabled = options.enabled
        self.mode = _mode(options)
        self.run_id = options.run_id if options.enabled else ""
        self.service_name = options.service_name
        self.trace_viewer_url: str | None = None
        self.trace_viewer_port: int | None = None
        self.sessions = Sessions()
        self.tracer: Tracer = tracing._tracer
        self.wants_spans = self.wants_events = False
        self.write_span: Callable[[tuple[Any, ...]], None] = _forget
        """Takes the fields of an `EndedSpan`."""
        self._is_own = False
        self._others: list[Any] = []
        self._memory = EventMemory(options.max_events, options.max_events_per_trace)
        self._writer: ClassicWriter | None = None

    @property
    def recorder(self) -> Recorder | None:
        """What records in this process; None if nothing does."""
        return self.tracer._recorder

    @property
    def run_dir(self) -> Path:
        """Where the run is."""
        if not self.enabled:
            return Path()
        return Path(self.tracer.settings.dir).absolute() / self.tracer.run

    @property
    def trace_jsonl_path(self) -> Path:
        """Where OTLP lines go, if they are written."""
        if not self.enabled:
            return Path()
        return self.options.jsonl_path or self.run_dir / "traces" / "traces.jsonl"

    @property
    def events(self) -> list[TraceEvent]:
        """The events that are kept in memory, where they go into no file."""
        return self._memory.list()

    @property
    def dropped(self) -> int:
        """How many records found no room on their way into the file of old."""
        return 0 if self._writer is None else self._writer.dropped

    def start(self) -> None:
        """Begin to record."""
        options = self.options
        self._is_own = not tracing.enabled()
        if self._is_own:
            self.tracer = tracing.init(
                run=os.environ.get("ROLLSCOPE_RUN") or options.run_id,
                dir=os.environ.get("ROLLSCOPE_DIR") or options.output_dir,
                sink=options.sink,
                tags={"service": options.service_name},
                viewer=False,
            )
        self._start_file()
        if options.viewer and not options.is_inherited and self.recorder is not None:
            from rollscope.integrations.xtuner.viewing import start_viewer

            with guarded("starting the viewer"):
                start_viewer(self)

    def _start_file(self) -> None:
        options = self.options
        if self.recorder is None:
            return
        self.wants_spans = options.classic == "otlp"
        self.wants_events = options.classic == "producer"
        if self.wants_spans:
            file = OtlpFile(self.trace_jsonl_path, options.service_name, self.run_id)
            self._writer = ClassicWriter(file, self.sessions.restart_after_fork)
            self.write_span = self._writer.add
        elif self.wants_events and options.output_dir is not None:
            shards = ProducerFile(options.output_dir)
            self._writer = ClassicWriter(shards, self.sessions.restart_after_fork)

    def record(self, event: TraceEvent) -> None:
        """Keep an event of the producer trace."""
        for other in self._others:
            with guarded("telling a recorder"):
                other.record(event)
        if self.options.classic != "producer":
            return
        if self._writer is not None:
            self._writer.add(event)
        else:
            self._memory.add(event)

    def record_many(self, events: Iterable[TraceEvent]) -> None:
        """Keep several."""
        for event in events:
            self.record(event)

    def mark(self, target: object, stage: str, **fields: Any) -> None:
        """Keep an event of a stage for each rollout of a state, or of a list of them."""
        at_s = time.time()
        given = {name: item for name, item in fields.items() if name in EVENT_FIELDS}
        for member in members_of(target):
            self.record(event_of(member, stage, at_s, None, member.error_msg, given))

    def mark_many(self, targets: Iterable[object], stage: str, **fields: Any) -> None:
        """Do as `mark` for several."""
        for target in targets:
            self.mark(target, stage, **fields)

    def inject(self, carrier: dict[str, str], path: tuple[str, ...]) -> dict[str, str]:
        """Write the context, and the names of the spans around, into a carrier."""
        self.tracer.inject(carrier)
        return _with_path(carrier, path)

    def carrier_of(self, span: Span, seat: Seat | None, path: tuple[str, ...]) -> dict[str, str]:
        """Give a carrier of the current span, quickly: most of it is that of its session.

        Args:
            span: The current one.
            seat: Its session.
            path: The names of the spans around.
        """
        if seat is None or span.ref is None:
            return self.inject({}, path)
        if seat.carrier is None:
            seat.carrier = {}
            self.tracer.inject(seat.carrier)
        return _with_path({**seat.carrier, "traceparent": format_traceparent(span.ref)}, path)

    def flush(self, timeout_s: float = _CLOSE_S) -> bool:
        """Wait until everything is written."""
        until = time.monotonic() + timeout_s
        is_done = self._writer is None or self._writer.flush(timeout_s)
        return self.tracer.flush(max(0.0, until - time.monotonic())) and is_done

    def close(self, timeout_s: float = _CLOSE_S) -> None:
        """End every session, write everything and stop."""
        until = time.monotonic() + timeout_s
        with guarded("closing the sessions of XTuner"):
            self.sessions.close()
        if self._writer is not None:
            self._writer.shutdown(timeout_s)
        if self._is_own and tracing._tracer is self.tracer:
            tracing.shutdown(max(0.1, until - time.monotonic()))


def _mode(options: Options) -> str:
    if not options.enabled:
        return "disabled"
    return "inherited" if options.is_inherited else "driver"


def _forget(span: tuple[Any, ...]) -> None:
    """Write no span: nobody wants them."""


def _with_path(carrier: dict[str, str], path: tuple[str, ...]) -> dict[str, str]:
    if path:
        held = carrier.get("baggage")
        carrier["baggage"] = f"{held},{path_header(path)}" if held else path_header(path)
    return carrier
