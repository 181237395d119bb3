"""The runtime: whether anything is traced in this process, where to, and what children get."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict, deque
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument import default as tracing
from rollscope.instrument.guard import guarded
from rollscope.integrations.xtuner.config import Options, options_from_environment, read_options
from rollscope.integrations.xtuner.otlpfile import EndedSpan, OtlpFile
from rollscope.integrations.xtuner.producerfile import ProducerFile, TraceEvent
from rollscope.integrations.xtuner.regions import event_of, path_header
from rollscope.integrations.xtuner.sessions import Sessions
from rollscope.integrations.xtuner.states import members_of
from rollscope.integrations.xtuner.writing import ClassicWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.tracer import Tracer

__all__ = [
    "TraceRuntime",
    "active",
    "close_trace",
    "configure_trace",
    "configure_trace_runtime",
    "current_trace_runtime",
    "flush_trace",
    "get_trace_env_vars",
    "get_tracer",
    "merge_trace_runtime_env",
    "use_trace_recorder",
]

_CLOSE_S: Final = 5.0
_SHARED: Final = ("ROLLSCOPE_RUN", "ROLLSCOPE_DIR", "ROLLSCOPE_SINK", "ROLLSCOPE_TOKEN")
_UNDECIDED: Final = object()


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
        self._is_own = False
        self._others: list[Any] = []
        self._memory: OrderedDict[str, deque[TraceEvent]] = OrderedDict()
        self._held = 0
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
        return [event for each in self._memory.values() for event in each]

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
            self._remember(event)

    def record_many(self, events: Iterable[TraceEvent]) -> None:
        """Keep several."""
        for event in events:
            self.record(event)

    def mark(self, target: object, stage: str, **fields: Any) -> None:
        """Keep an event of a stage for each rollout of a state, or of a list of them."""
        at_s = time.time()
        for member in members_of(target):
            self.record(event_of(member, stage, at_s, None, member.error_msg, fields))

    def mark_many(self, targets: Iterable[object], stage: str, **fields: Any) -> None:
        """Do as `mark` for several."""
        for target in targets:
            self.mark(target, stage, **fields)

    def write_span(self, span: EndedSpan) -> None:
        """Write a span into the file of OTLP lines."""
        if self._writer is not None:
            self._writer.add(span)

    def inject(self, carrier: dict[str, str], path: tuple[str, ...]) -> dict[str, str]:
        """Write the context, and the names of the spans around, into a carrier."""
        self.tracer.inject(carrier)
        if path:
            held = [carrier["baggage"]] if carrier.get("baggage") else []
            carrier["baggage"] = ",".join([*held, path_header(path)])
        return carrier

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

    def _remember(self, event: TraceEvent) -> None:
        kept = self._memory.get(event.trace_id)
        if kept is None:
            kept = self._memory[event.trace_id] = deque(maxlen=self.options.max_events_per_trace)
        self._held += len(kept) != kept.maxlen
        kept.append(event)
        while self._held > self.options.max_events and len(self._memory) > 1:
            self._held -= len(self._memory.popitem(last=False)[1])


def _mode(options: Options) -> str:
    if not options.enabled:
        return "disabled"
    return "inherited" if options.is_inherited else "driver"


_active: Any = _UNDECIDED
_lock = threading.RLock()


def active() -> TraceRuntime | None:
    """Give the runtime if anything is traced; the first call looks into the environment."""
    found: TraceRuntime | None = _decide() if _active is _UNDECIDED else _active
    return found


def _decide() -> TraceRuntime | None:
    global _active
    with _lock:
        if _active is _UNDECIDED:
            _active = None
            with guarded("reading XTuner's variables"):
                options = options_from_environment(os.environ)
                if options is not None:
                    _active = _started(options)
        found: TraceRuntime | None = _active
        return found


def _started(options: Options) -> TraceRuntime:
    runtime = TraceRuntime(options)
    with guarded("starting to trace"):
        runtime.start()
    return runtime


def configure_trace(
    config: object = None, *, output_dir: str | os.PathLike[str] | None = None
) -> TraceRuntime:
    """Trace from now on, or no longer; what was traced before is closed.

    Args:
        config: A `TraceConfig`, a mapping, or the original's own object.
        output_dir: Counts instead of the field of that name.

    Raises:
        ValueError: A field is unknown, has a wrong value, or contradicts its twin.
    """
    global _active
    options = read_options(config, output_dir)
    with _lock:
        close_trace()
        if not options.enabled:
            return TraceRuntime(options)
        _active = _started(options)
        runtime: TraceRuntime = _active
        return runtime


configure_trace_runtime = configure_trace


def close_trace() -> None:
    """Write everything and stop; takes 5 seconds at most."""
    global _active
    with _lock:
        ending, _active = _active, None
        if isinstance(ending, TraceRuntime):
            ending.close()


def flush_trace() -> bool:
    """Wait until everything so far is written; false if it is not within 5 seconds."""
    runtime = active()
    return True if runtime is None else runtime.flush()


def current_trace_runtime() -> TraceRuntime | None:
    """Give the runtime; None if nothing is traced."""
    return active()


def get_tracer() -> Tracer:
    """Give Rollscope's own tracer, which takes spans of any kind."""
    runtime = active()
    return tracing._tracer if runtime is None else runtime.tracer


def get_trace_env_vars() -> dict[str, str]:
    """Give the variables by which a child process traces into the same run."""
    runtime = active()
    if runtime is None or runtime.recorder is None:
        return {}
    shared = runtime.tracer.child_env({})
    found: dict[str, str] = {name: shared[name] for name in _SHARED if name in shared}
    options = runtime.options
    found["XTUNER_TRACE_CLASSIC"] = options.classic
    folder = "" if options.output_dir is None else str(options.output_dir)
    if options.classic == "producer":
        return found | {
            "XTUNER_TRACE_ENABLED": "1",
            "XTUNER_TRACE_OUTPUT_DIR": folder,
            "XTUNER_TRACE_MAX_EVENTS": str(options.max_events),
            "XTUNER_TRACE_MAX_EVENTS_PER_TRACE": str(options.max_events_per_trace),
        }
    return found | {
        "XTUNER_OTEL_ENABLED": "1",
        "XTUNER_OTEL_OUTPUT_DIR": folder or str(runtime.run_dir.parent),
        "XTUNER_OTEL_RUN_ID": runtime.run_id,
        "XTUNER_OTEL_RUN_DIR": str(runtime.run_dir),
        "XTUNER_OTEL_JSONL_PATH": str(runtime.trace_jsonl_path),
        "XTUNER_TRACE_ENABLE_ROLLOUT": "1" if options.traces_rollouts else "0",
        "OTEL_SERVICE_NAME": runtime.service_name,
    }


def merge_trace_runtime_env(runtime_env: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Give Ray's `runtime_env` with our variables in it; what is set there already stays."""
    merged = dict(runtime_env or {})
    ours = get_trace_env_vars()
    if ours:
        merged["env_vars"] = ours | dict(merged.get("env_vars") or {})
    return merged


@contextmanager
def use_trace_recorder(recorder: Any) -> Iterator[Any]:  # noqa: ANN401  (has `record`)
    """Give events of the producer trace to a recorder too, for a block."""
    global _active
    runtime = active()
    if recorder is runtime:
        yield recorder
        return
    before = runtime
    if runtime is None:
        runtime = TraceRuntime(replace(read_options({"classic": "none"}), enabled=True))
        _active = runtime
    wanted = runtime.wants_events
    runtime._others.append(recorder)
    runtime.wants_events = True
    try:
        yield recorder
    finally:
        runtime._others.remove(recorder)
        runtime.wants_events = wanted
        if before is None:
            _active = None
            runtime.close()
