"""One traced region: a span of the run, and of the file of OTLP lines beside it.

This is what every call pays for, so it does little: what is not needed at once is left to the
thread that writes. Regions that are about rollouts are in `rolloutregions`.
"""

from __future__ import annotations

from contextvars import ContextVar
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any, Final, Self

from rollscope.instrument.guard import pass_over
from rollscope.instrument.spans import NOOP
from rollscope.integrations.xtuner.paths import PATH_KEY, path_in
from rollscope.integrations.xtuner.stages import phase_of, plain_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from rollscope.instrument.propagation import Attachment
    from rollscope.instrument.recorder import Recorder
    from rollscope.instrument.spans import Span
    from rollscope.integrations.xtuner.traceruntime import TraceRuntime

__all__ = ["Region", "current_region", "enter_region", "text_of"]

_ERROR_CHARS: Final = 500
_region: ContextVar[Region | None] = ContextVar("rollscope-xtuner-region", default=None)


class Region:
    """A timed region; `with` and `async with` both serve."""

    __slots__ = (
        "_attached",
        "_carrier",
        "_events",
        "_outer",
        "_runtime",
        "_span",
        "_wall_ns",
        "attributes",
        "name",
        "path",
    )

    def __init__(
        self,
        runtime: TraceRuntime,
        name: str,
        attributes: dict[str, Any],
        carrier: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare a region.

        Args:
            runtime: Where it is recorded.
            name: What it is called.
            attributes: Cleaned already.
            carrier: Of the caller in another process.
        """
        self.attributes, self.name = attributes, name
        self._runtime, self._carrier = runtime, carrier
        self.path: tuple[str, ...] = ()
        self._outer: Region | None = None
        self._attached: Attachment | None = None
        self._events: list[tuple[str, int, dict[str, Any]]] | None = None
        self._span: Span = NOOP

    def __enter__(self) -> Self:
        """Begin."""
        try:
            if self._runtime.wants_spans:
                self._wall_ns = time_ns()
            self._begin()
        except Exception as error:
            pass_over("beginning a region of XTuner", error)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; an exception passes on."""
        try:
            self._end(error)
        except Exception as fault:
            pass_over("ending a region of XTuner", fault)

    async def __aenter__(self) -> Self:
        """Do as `__enter__`."""
        return self.__enter__()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Do as `__exit__`."""
        self.__exit__(error_type, error, traceback)

    def returned(self, value: object) -> None:
        """Tell what the traced function gave back."""

    def set(self, attributes: dict[str, Any]) -> None:
        """Add attributes."""
        self.attributes.update(attributes)
        self._span.set(**plain_attributes(attributes))

    def add_event(self, name: str, attributes: dict[str, Any]) -> None:
        """Note an instant for the file of OTLP lines."""
        if self._events is None:
            self._events = []
        self._events.append((name, time_ns(), attributes))

    def _begin(self) -> None:
        recorder = self._runtime.tracer._recorder
        if recorder is not None:
            self._span = self._new_span(recorder, self._take_place(self._carrier)).__enter__()

    def _take_place(self, carrier: Mapping[str, Any] | None) -> str | None:
        """Become the region that the caller is in; gives the phase that this is, if it is one."""
        self._outer = outer = _region.get()
        path = () if outer is None else outer.path
        if carrier is not None:
            self._attached = self._runtime.tracer.attach(carrier)
            path = path_in(carrier) or path
        self.path = (*path, self.name)
        _region.set(self)
        attributes = self.attributes
        if PATH_KEY not in attributes:
            attributes[PATH_KEY] = self.path
        stage = phase_of(self.name, attributes)
        if stage is not None and any(phase_of(name, {}) == stage for name in path):
            return None  # the outermost counts
        return stage

    def _new_span(self, recorder: Recorder, stage: str | None) -> Span:
        attrs = plain_attributes(self.attributes)
        if stage is None:
            return recorder.new_span(self.name, "misc", attrs)
        if stage != self.name:
            attrs["span_name"] = self.name
        return recorder.new_phase(stage, attrs)

    def _end(self, error: BaseException | None) -> None:
        self._leave_place()
        if error is not None:
            self._span.set(**self._note_error(error))
            self._span.__exit__(type(error), error, None)
        else:
            self._span.__exit__(None, None, None)
        span = self._span
        if self._attached is not None:
            self._attached.__exit__(None, None, None)
        if self._runtime.wants_spans and span.id:
            self._write(span, span.parent_id, self.attributes, error)

    def _leave_place(self) -> None:
        if _region.get() is self:
            _region.set(self._outer)
        self._outer = None  # contexts that live on must not keep all regions around alive

    def _note_error(self, error: BaseException) -> dict[str, Any]:
        told = {"error.type": type(error).__name__, "error.message": text_of(error)}
        self.attributes |= {"error": True, **told}
        return told

    def _write(
        self,
        span: Span,
        parent_id: int,
        attributes: dict[str, Any],
        error: BaseException | None,
    ) -> None:
        """Have the span written into the file of OTLP lines."""
        end_ns = self._wall_ns + perf_counter_ns() - span.start_ns
        text = None if error is None else f"{type(error).__name__}: {text_of(error)}"
        scope, wall_ns = span.scope, self._wall_ns
        self._runtime.write_span(
            (scope.trace_id, span.id, parent_id, self.name, wall_ns, end_ns, attributes, text,
             self._events)
        )  # fmt: skip


def current_region() -> Region | None:
    """Give the region that the caller is in."""
    return _region.get()


def enter_region(region: Region | None) -> None:
    """Let the caller be in a region, or in none."""
    _region.set(region)


def text_of(error: BaseException) -> str:
    """Give the text of an error, or of what can be had of it."""
    try:
        return str(error)[:_ERROR_CHARS]
    except Exception:  # its __str__ is the program's own code
        return "(its text cannot be had)"
