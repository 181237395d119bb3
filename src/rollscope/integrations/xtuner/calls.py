"""Spans, events, attributes and context; which of the two designs is meant, the arguments tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import guarded, pass_over
from rollscope.instrument.spans import NOOP
from rollscope.integrations.xtuner.paths import path_in
from rollscope.integrations.xtuner.producerfile import EVENT_FIELDS
from rollscope.integrations.xtuner.regions import Region, current_region
from rollscope.integrations.xtuner.rolloutregions import RolloutRegion
from rollscope.integrations.xtuner.runtime import TraceRuntime, active
from rollscope.integrations.xtuner.states import members_of
from rollscope.integrations.xtuner.values import clean_attributes, clean_name

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from rollscope.instrument.propagation import Attachment
    from rollscope.instrument.spans import Span

__all__ = [
    "TraceContext",
    "extract_trace_context",
    "inject_trace_context",
    "region_about",
    "set_trace_attributes",
    "trace_event",
    "trace_span",
]


class _Done:
    """Something to await that is over already."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE: Final = _Done()


def trace_span(
    first: Any,  # noqa: ANN401  (a name, or what the span is about)
    second: Any = None,  # noqa: ANN401
    /,
    *,
    parent_carrier: Mapping[str, Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Region | Span:
    """Time a block, with `with` or `async with`.

    `trace_span("name", {…}, parent_carrier=…)` is a span; `trace_span(state, "name", …)` one of a
    rollout, or of each in a list.
    """
    runtime = active()
    if runtime is None:
        return NOOP
    try:
        if isinstance(first, str) or second is None or isinstance(second, Mapping):
            strict = runtime.options.strict
            given = second if attributes is None else attributes
            cleaned = clean_attributes(given, strict=strict)
            return Region(runtime, clean_name(first, strict=strict), cleaned, parent_carrier)
        return region_about(runtime, first, second, fields, attributes, parent_carrier)
    except Exception as error:
        if runtime.options.strict:
            raise
        pass_over("making a span of XTuner", error)
        return NOOP


def region_about(
    runtime: TraceRuntime,
    target: object,
    name: object,
    fields: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    carrier: Mapping[str, Any] | None = None,
) -> RolloutRegion:
    """Make a region about a state, or a list of states.

    Args:
        runtime: Where it is recorded.
        target: The state, or the list.
        name: What it is called.
        fields: Those of the producer trace count there; others become attributes.
        attributes: More of them.
        carrier: Of the caller in another process.
    """
    strict = runtime.options.strict
    given = {key: item for key, item in fields.items() if key in EVENT_FIELDS}
    other = {key: item for key, item in fields.items() if key not in EVENT_FIELDS}
    return RolloutRegion(
        runtime,
        clean_name(name, strict=strict),
        clean_attributes({**(attributes or {}), **other}, strict=strict),
        target,
        carrier=carrier,
        given=given,
        carries=True,
    )


def trace_event(first: Any, second: Any = None, /, **fields: Any) -> _Done:  # noqa: ANN401
    """Record an instant, at once; what it gives back may be awaited.

    `trace_event("name", {…})` belongs to the span around, `trace_event(state, "name", …)` to a
    rollout, or to each in a list.
    """
    runtime = active()
    if runtime is None:
        return _DONE
    try:
        strict = runtime.options.strict
        is_named_first = isinstance(first, str)
        name = clean_name(first if is_named_first else second, strict=strict)
        facts = fields.pop("attributes", second) if is_named_first else fields
        cleaned = clean_attributes(facts, strict=strict)
        _record_event(runtime, name, cleaned, None if is_named_first else first, fields)
    except Exception as error:
        if runtime.options.strict:
            raise
        pass_over("recording an event of XTuner", error)
    return _DONE


def _record_event(
    runtime: TraceRuntime, name: str, given: dict[str, Any], target: object, fields: dict[str, Any]
) -> None:
    region, recorder = current_region(), runtime.recorder
    if target is not None and runtime.wants_events:
        runtime.mark(target, name, **fields)
    if region is not None:
        region.add_event(name, given)
    if recorder is None:
        return
    members = members_of(target)
    if not members:
        recorder.types.add_event(name, given)
    for member in members:
        runtime.sessions.add_event(recorder, member, name, dict(given))


def set_trace_attributes(attributes: Mapping[str, Any] | None) -> None:
    """Add attributes to the span around."""
    runtime = active()
    region = None if runtime is None else current_region()
    if runtime is not None and region is not None:
        try:
            region.set(clean_attributes(attributes, strict=runtime.options.strict))
        except Exception as error:
            if runtime.options.strict:
                raise
            pass_over("setting attributes of XTuner", error)


def inject_trace_context(carrier: dict[str, str] | None = None) -> dict[str, str]:
    """Write the context into a carrier, or a new one, and give it; unchanged when off."""
    target = {} if carrier is None else carrier
    runtime = active()
    if runtime is not None:
        region = current_region()
        with guarded("injecting the context"):
            runtime.inject(target, () if region is None else region.path)
    return target


class TraceContext:
    """A context from elsewhere; `with` goes on under it."""

    def __init__(self, carrier: Mapping[str, Any]) -> None:
        self.carrier: dict[str, Any] = {}
        self.span_name_path: tuple[str, ...] = ()
        self._attached: Attachment | None = None
        with guarded("reading a context"):
            self.carrier = dict(carrier)
            self.span_name_path = path_in(self.carrier)

    def __enter__(self) -> TraceContext:
        """Go on under the span that the carrier names."""
        runtime = active()
        if runtime is not None:
            with guarded("going on under a context"):
                self._attached = runtime.tracer.attach(self.carrier)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make current again what was current before."""
        if self._attached is not None:
            self._attached.__exit__(error_type, error, traceback)


def extract_trace_context(carrier: Mapping[str, Any]) -> TraceContext:
    """Read a context that `inject_trace_context` wrote."""
    return TraceContext(carrier)
