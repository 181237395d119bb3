"""Context across borders: W3C headers, environment variables, threads, executors, processes.

asyncio carries context by itself (tasks, `gather`, `TaskGroup`, `to_thread`), and so does a fork.
Everything else goes through a carrier: a `traceparent`, a `baggage` with what the receiving side
needs to know of the step, task and session, and a `tracestate` that says it more briefly, for those
who export what they are given (see `tracestate`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rollscope.instrument.baggage import format_baggage, parse_baggage
from rollscope.instrument.guard import tell_once
from rollscope.instrument.spans import NOOP, RemoteSpan
from rollscope.instrument.tracestate import format_tracestate, parse_tracestate
from rollscope.model.refs import SpanRef, format_traceparent, parse_traceparent
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from contextvars import ContextVar
    from types import TracebackType

    from rollscope.instrument.spans import AddFacts, Span

__all__ = ["Attachment", "extract_span", "inject_span"]

_HEADERS: Final = ("traceparent", "tracestate", "baggage")
_LENGTHS: Final = frozenset(map(len, _HEADERS))
_NESTED: Final = ("_ray_trace_ctx", "_xtuner_trace_carrier", "_otel_ctx")
"""Where others put headers among their own values: Ray's tracing, XTuner and ROLL."""


def inject_span(
    span: Span,
    carrier: MutableMapping[str, str],
    baggage: str = "",
    tracestate: str = "",
    run: str | None = None,
) -> None:
    """Write the context of a span into headers.

    Args:
        span: Whose context.
        carrier: Takes the headers.
        baggage: What others want to be carried along; ours is added.
        tracestate: The same, of the other header.
        run: The run that the span belongs to.
    """
    ref = span.ref
    if ref is None:
        return
    scope = span.scope
    carrier["traceparent"] = format_traceparent(ref)
    if members := format_baggage(scope, baggage):
        carrier["baggage"] = members
    if state := format_tracestate(run, scope, tracestate):
        carrier["tracestate"] = state


def extract_span(carrier: Mapping[str, object], add_facts: AddFacts) -> Span | None:
    """Read what `inject_span`, or any W3C client, wrote; None if there is no valid context.

    Args:
        carrier: Headers, in any case; or values of another kind that hold some.
        add_facts: Takes what is learned about the span on this side.
    """
    headers = _headers_of(carrier)
    for name in _NESTED:
        inner = carrier.get(name) if "traceparent" not in headers else None
        if isinstance(inner, Mapping):
            headers = _headers_of(inner)
    text = headers.get("traceparent")
    if text is None:
        return None
    ref = parse_traceparent(text)
    if ref is None:
        tell_once(
            "traceparent",
            "Rollscope ignores the invalid traceparent %.100r; it looks like "
            "00-<32 hex digits>-<16 hex digits>-01",
            text,
        )
        return None
    return RemoteSpan(ref.span_id, _scope_of(ref, headers), add_facts)


def _headers_of(carrier: Mapping[str, object]) -> dict[str, str]:
    # Most headers are none of ours, which their length tells soonest.
    return {
        name.lower(): value
        for name, value in carrier.items()
        if isinstance(name, str)
        and len(name) in _LENGTHS
        and isinstance(value, str)
        and name.lower() in _HEADERS
    }


def _scope_of(ref: SpanRef, headers: Mapping[str, str]) -> Scope:
    """Read what the span belongs to; a proxy may have kept either header only."""
    scope = parse_baggage(ref.trace_id, headers.get("baggage", ""))
    if any(value is not None for value in scope.as_row()[1:]):
        return scope
    state = parse_tracestate(headers.get("tracestate", ""))
    if state is None:
        return scope
    return Scope(
        ref.trace_id, state.step, state.task_key, state.group, state.session_id, state.sample
    )


class Attachment:
    """Undoes an `attach` when left; without `with`, the attachment simply stays."""

    __slots__ = ("_current", "_span", "before")

    def __init__(self, current: ContextVar[Span] | None, span: Span) -> None:
        self._current = current
        self._span = span
        self.before = NOOP if current is None else current.get()
        if current is not None:
            current.set(span)

    def __enter__(self) -> Span:
        """Give the attached span."""
        return self._span

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make current again what was current before."""
        if self._current is not None and self._current.get() is self._span:
            self._current.set(self.before)
