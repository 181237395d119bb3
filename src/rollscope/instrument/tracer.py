"""The tracer: the object behind the API. It works alone, beside the default one or without it."""

from __future__ import annotations

import os
import time
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar, cast, overload

from rollscope.config import Settings, resolve, unknown_variables
from rollscope.instrument.calls import COUNT, GAUGE, OBSERVE
from rollscope.instrument.carry import Carried
from rollscope.instrument.clock import SystemClock
from rollscope.instrument.decorator import traced
from rollscope.instrument.guard import guarded, pass_over, tell_once
from rollscope.instrument.ids import RandomIds
from rollscope.instrument.lifecycle import forget, give_wakeup_back, watch_over
from rollscope.instrument.propagation import Attachment, extract_span, inject_span
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import NOOP, Session, Span
from rollscope.model.refs import SpanRef, parse_traceparent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from types import TracebackType

    from rollscope.instrument.clock import Clock
    from rollscope.instrument.ids import IdSource
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.sinks import Sink
    from rollscope.instrument.stacks import SpanStack
    from rollscope.instrument.viewer import Viewer

__all__ = ["Tracer", "decorate"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound="Callable[..., Any]")

_FLUSH_TIMEOUT_S: Final = 5.0


class Tracer:
    """Records the spans of this process into a run.

    Args:
        clock: Where time comes from; for tests.
        ids: Where ids come from; for tests.
        **settings: As for `rollscope.init`.

    Raises:
        SettingError: A setting is unknown or has a value that is not allowed.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        **settings: Any,
    ) -> None:
        self._setup(_anchored(resolve(settings, os.environ)), clock, ids)
        if self.settings.enabled:
            for variable, hint in unknown_variables(os.environ).items():
                tell_once(f"variable:{variable}", "Rollscope ignores %s; %s", variable, hint)
            with guarded("starting to record"):
                self._record(inherited=None)
                self._attach_environment()
            if self.settings.viewer is not False:
                with guarded("starting the viewer"):
                    self._start_viewer()

    @classmethod
    def disabled(cls) -> Self:
        """Give a tracer that records nothing and looks at nothing, the environment included."""
        tracer = cls.__new__(cls)
        tracer._setup(Settings(enabled=False), None, None)
        return tracer

    def _setup(self, settings: Settings, clock: Clock | None, ids: IdSource | None) -> None:
        self.settings = settings
        self.run = settings.run or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        self._clock: Clock = clock or SystemClock()
        self._ids: IdSource = ids or RandomIds()
        self._current: ContextVar[Span] = ContextVar("rollscope-span", default=NOOP)
        self._sink: Sink | None = None
        self._recorder: Recorder | None = None
        self._ending: Recorder | None = None
        self._viewer: Viewer | None = None

    def _start_viewer(self) -> None:
        from rollscope.instrument.viewer import start_viewer

        self._viewer = start_viewer(self.settings, self.run)

    def _record(self, inherited: Recorder | None) -> None:
        """Begin to record in this process."""
        # Loaded here: a program that never calls `init` does not pay for the machinery.
        from rollscope.instrument.recorder import Recorder

        if self._sink is None:
            from rollscope.instrument.sinks.choosing import make_sink

            self._sink = make_sink(self.settings)
        recorder = Recorder(
            self.settings,
            self.run,
            self._sink,
            self._current,
            self._clock,
            self._ids,
            inherited,
        )
        recorder.start()
        self._recorder = recorder
        watch_over(self, recorder)

    def _attach_environment(self) -> None:
        """Go on under the span that started this process, if it told us so."""
        if "TRACEPARENT" in os.environ:
            self.attach(os.environ)

    def restart_after_fork(self) -> None:
        """Record on our own in a forked child; called by the fork hook."""
        is_recording = self._recorder is not None
        inherited = self._recorder or self._ending
        self._recorder = self._ending = None
        if self._viewer is not None:
            self._viewer.let_go()  # the viewer is to end with the parent
            self._viewer = None
        if inherited is None:
            return
        give_wakeup_back(inherited)
        inherited.abandon()
        if is_recording:
            self._record(inherited)

    def __enter__(self) -> Self:
        """Use the tracer for a block; leaving it shuts the tracer down."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Shut down."""
        self.shutdown()

    def enabled(self) -> bool:
        """Say whether anything is recorded."""
        return self._recorder is not None

    def flush(self, timeout_s: float = _FLUSH_TIMEOUT_S) -> bool:
        """Wait until everything recorded so far is with the sink; false if it is not in time."""
        recorder = self._recorder
        return True if recorder is None else recorder.flush(timeout_s)

    def shutdown(self, timeout_s: float = _FLUSH_TIMEOUT_S, *, why: str = "shutdown") -> bool:
        """Write everything and stop recording; false if the sink did not take all in time."""
        # A second caller, such as a signal handler inside of the first call, waits as the first.
        recorder = self._ending = self._recorder or self._ending
        self._recorder = None
        if recorder is None:
            return True
        done = recorder.stop(why, timeout_s)
        if self._viewer is not None:
            self._viewer.let_go()
            self._viewer = None
        self._ending = None
        forget(self, recorder)
        recorder.close_pipe()
        return done

    def stacks(self) -> list[SpanStack]:
        """Say where every open span hangs now: chains of awaits, or of calls."""
        recorder = self._recorder
        return [] if recorder is None else recorder.stacks()

    def step(self, number: int, /, *, version: int | None = None, **attrs: Any) -> Span:
        """Time one trainer step."""
        recorder = self._recorder
        return NOOP if recorder is None else recorder.types.new_step(number, version, attrs)

    def task(
        self,
        key: str,
        /,
        *,
        group: str | None = None,
        step: int | None = None,
        **attrs: Any,
    ) -> Span:
        """Time one data item being rolled out; opens a trace of its own."""
        recorder = self._recorder
        return NOOP if recorder is None else recorder.types.new_task(key, group, step, attrs)

    def session(
        self,
        *,
        sample: int = 0,
        version: int | None = None,
        group: str | None = None,
        step: int | None = None,
        **attrs: Any,
    ) -> Session:
        """Time one sample of a task."""
        recorder = self._recorder
        if recorder is None:
            return NOOP
        return recorder.types.new_session(sample, version, group, step, attrs)

    def phase(self, name: str, /, **attrs: Any) -> Span:
        """Time a named stage of a session."""
        recorder = self._recorder
        return NOOP if recorder is None else recorder.new_phase(name, attrs)

    def span(self, name: str, /, category: str = "misc", **attrs: Any) -> Span:
        """Time any other region."""
        recorder = self._recorder
        return NOOP if recorder is None else recorder.new_span(name, category, attrs)

    def state(self, name: str, /, *, lane: str, **attrs: Any) -> Span:
        """Time an interval on a lane."""
        recorder = self._recorder
        return NOOP if recorder is None else recorder.types.new_state(name, lane, attrs)

    @overload
    def trace(self, name: F, /) -> F: ...
    @overload
    def trace(
        self,
        name: str | None = None,
        /,
        *,
        category: str = "misc",
        attrs: Callable[..., dict[str, Any]] | None = None,
    ) -> Callable[[F], F]: ...
    def trace(
        self,
        name: F | str | None = None,
        /,
        *,
        category: str = "misc",
        attrs: Callable[..., dict[str, Any]] | None = None,
    ) -> F | Callable[[F], F]:
        """Make each call of a function a span; serves coroutines and generators too.

        Args:
            name: The span's name; the function's qualified name if not given.
            category: As for `span`.
            attrs: Called with the function's arguments, gives the span's attributes.
        """
        return decorate(lambda: self._recorder, name, category, attrs)

    def event(self, name: str, /, **attrs: Any) -> None:
        """Record an instant."""
        recorder = self._recorder
        if recorder is not None:
            recorder.types.add_event(name, attrs)

    def annotate(self, target: Span | SpanRef | str | None, /, **facts: Any) -> None:
        """Record what became known about a span late, such as a reward or the consuming step.

        Args:
            target: A span, its `ref`, or that as text; None is taken for "not recorded".
            **facts: What became known.
        """
        recorder = self._recorder
        if recorder is None or target is None:
            return
        ref = _ref_of(target)
        if ref is not None:
            recorder.types.add_facts(ref, facts)
        elif not issubclass(type(target), Span):
            tell_once(
                "annotate",
                "Rollscope cannot annotate %r; give it a span, its .ref, or that as text",
                clean_text(target, 100),
            )

    def payload(self, name: str, value: Any, /) -> None:  # noqa: ANN401  (any payload goes)
        """Keep trajectory text (messages, tokens) with the current span, if payloads are on."""
        recorder = self._recorder
        if recorder is None or not recorder.settings.payloads:
            return
        ref = self.current().ref
        if ref is None:
            shown = clean_text(name, 100)
            tell_once(
                f"payload:{shown}",
                "Rollscope cannot keep the payload %r outside of any span",
                shown,
            )
            return
        try:
            at = recorder.clock.mono_ns()
            # A conversation that grows later is kept as it is now.
            if issubclass(type(value), list):
                value = list.copy(value)
            elif issubclass(type(value), dict):
                value = dict.copy(value)
            recorder.buffers.payloads.append((ref.trace_id, ref.span_id, at, name, value))
        except MemoryError:
            recorder.buffers.count_unrecorded("payload")

    def count(self, name: str, value: float = 1, /, **labels: Any) -> None:
        """Add to a counter."""
        recorder = self._recorder
        if recorder is not None:
            try:
                recorder.add_call((COUNT, name, value, labels))
            except MemoryError:
                recorder.buffers.count_unrecorded("metric")

    def gauge(self, name: str, value: float, /, **labels: Any) -> None:
        """Set a gauge."""
        recorder = self._recorder
        if recorder is not None:
            try:
                recorder.add_call((GAUGE, name, value, labels))
            except MemoryError:
                recorder.buffers.count_unrecorded("metric")

    def observe(self, name: str, value: float, /, **labels: Any) -> None:
        """Add a value to a histogram."""
        recorder = self._recorder
        if recorder is not None:
            try:
                recorder.add_call((OBSERVE, name, value, labels))
            except MemoryError:
                recorder.buffers.count_unrecorded("metric")

    def current(self) -> Span:
        """Give the current span; where there is none, one that is false and ignores everything."""
        recorder = self._recorder
        return self._current.get() if recorder is None else recorder.types.find_current()

    def inject(self, carrier: MutableMapping[str, str] | None = None) -> dict[str, str]:
        """Write the current context as W3C headers into a carrier, or a new one, and give it."""
        headers: dict[str, str] = {}
        span = self.current()
        if self._recorder is None or not span:
            return headers
        try:
            baggage = _text(carrier, "baggage")
            inject_span(span, headers, baggage, _text(carrier, "tracestate"), self.run)
            if carrier is not None:
                carrier.update(headers)
        except Exception as error:
            pass_over("injecting the context", error)
        return headers

    def attach(self, carrier: Mapping[str, object]) -> Attachment:
        """Go on under the span that a carrier names: for good, or for a `with` block.

        Args:
            carrier: Headers as `inject` writes them, in any case; an environment works too.
        """
        recorder = self._recorder
        if recorder is None:
            return Attachment(None, NOOP)
        span = None
        try:
            span = extract_span(carrier, recorder.types.add_facts)
        except Exception as error:
            pass_over("attaching a context", error)
        return Attachment(None, NOOP) if span is None else Attachment(self._current, span)

    def carry(self, function: Callable[P, R]) -> Callable[P, R]:
        """Make a function that runs under the current span in another thread or process.

        For `threading.Thread`, executors, `run_in_executor`, process pools and spawned processes,
        which do not carry context by themselves.
        """
        if self._recorder is None:
            return function
        return Carried(function, self.inject(), self._portable_settings(), copy_context())

    def child_env(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Give an environment in which a subprocess records into this run, under this span.

        Args:
            env: What to add to; the environment of this process if not given.
        """
        child = dict(os.environ if env is None else env)
        if self._recorder is None:
            return child
        for name, value in self._portable_settings().items():
            child[f"ROLLSCOPE_{name.upper()}"] = str(value)
        theirs = {name: child.get(name.upper(), "") for name in ("baggage", "tracestate")}
        for name, value in self.inject(theirs).items():
            child[name.upper()] = value
        return child

    def _portable_settings(self) -> dict[str, Any]:
        """Give the settings that make another process record into the same run."""
        portable = {
            "run": self.run,
            "dir": _absolute(self.settings.dir),
            "payloads": self.settings.payloads,
        }
        if self.settings.redact is not None and self.settings.payloads:
            from rollscope.instrument.redaction import function_path

            path = function_path(self.settings.redact)
            portable |= {"payloads": False} if path is None else {"redact": path}
        if isinstance(self.settings.sink, str):
            portable["sink"] = self.settings.sink
        return portable | self.settings.of_network_sink()


def _anchored(settings: Settings) -> Settings:
    """Give settings whose paths stay the same wherever the program goes."""
    paths = {"dir": settings.dir, "spool_dir": settings.spool_dir, "ca_file": settings.ca_file}
    if settings.sink == "ray":  # where all workers of a job mean the same by a relative one
        del paths["dir"]
    given = {name: _absolute(path) for name, path in paths.items() if path is not None}
    return Settings(**{**settings.values, **given})


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the program's own directory is gone; it may yet go to another
        return path


def _ref_of(target: Any) -> SpanRef | None:  # noqa: ANN401  (whatever was handed over)
    """Find out which span is meant; None if that cannot be told."""
    kind = type(target)
    if issubclass(kind, Span):
        return cast("Span", target).ref
    if issubclass(kind, str):
        return parse_traceparent(target)
    if not issubclass(kind, SpanRef):
        return None
    trace_id, span_id = target
    # One made by hand, of text perhaps, would spoil the frame it is written in.
    is_sound = type(trace_id) is bytes and len(trace_id) == 16 and type(span_id) is int
    return SpanRef(trace_id, span_id) if is_sound and 0 < span_id < 2**64 else None


def _text(carrier: Mapping[str, str] | None, name: str) -> str:
    value = "" if carrier is None else carrier.get(name)
    return value if isinstance(value, str) else ""


def decorate(
    recorder: Callable[[], Recorder | None],
    name: F | str | None,
    category: str,
    attrs: Callable[..., dict[str, Any]] | None,
) -> F | Callable[[F], F]:
    """Serve `@trace`, `@trace()` and `@trace("name")` alike."""
    if callable(name) or isinstance(name, classmethod):  # which is not callable by itself
        return traced(name, recorder, _name_of(name), category, attrs)

    def decorator(function: F) -> F:
        return traced(function, recorder, name or _name_of(function), category, attrs)

    return decorator


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
