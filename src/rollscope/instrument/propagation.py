"""Context across borders: W3C headers, environment variables, threads, executors, processes.

asyncio carries context by itself (tasks, `gather`, `TaskGroup`, `to_thread`), and so does a fork.
Everything else goes through a carrier: a `traceparent`, a `baggage` with what the receiving side
needs to know of the step, task and session, and a `tracestate` that says it more briefly, for those
who export what they are given (see `tracestate`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import NOOP, RemoteSpan
from rollscope.instrument.tracestate import format_tracestate, parse_tracestate
from rollscope.model.refs import SpanRef, format_traceparent, parse_traceparent, span_hex
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from contextvars import ContextVar
    from types import TracebackType

    from rollscope.instrument.spans import AddFacts, Span

__all__ = ["Attachment", "extract_span", "inject_span"]

_HEADERS: Final = ("traceparent", "tracestate", "baggage")
_NESTED: Final = ("_ray_trace_ctx", "_xtuner_trace_carrier", "_otel_ctx")
"""Where others put headers among their own values: Ray's tracing, XTuner and ROLL."""
_PREFIX: Final = "rollscope."
_MAX_BAGGAGE: Final = 8192
_MAX_MEMBER: Final = 512


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
    from urllib.parse import quote  # costs 5 ms, which not every program needs to pay

    ref = span.ref
    if ref is None:
        return
    carrier["traceparent"] = format_traceparent(ref)
    scope = span.scope
    members = {
        "step": scope.step,
        "task": scope.task_key,
        "group": scope.group,
        "session": None if scope.session_id is None else span_hex(scope.session_id),
        "sample": scope.sample,
    }
    # Made to fit as they are in the log, so that both sides name the same task, and short enough
    # for an environment variable.
    ours = [
        f"{_PREFIX}{name}={quote(clean_text(value, _MAX_MEMBER), safe='')}"
        for name, value in members.items()
        if value is not None
    ]
    theirs = [
        member
        for member in baggage.split(",")
        if member.strip() and not member.strip().startswith(_PREFIX)
    ]
    if ours or theirs:
        carrier["baggage"] = ",".join(theirs + ours)
    state = format_tracestate(run, scope, tracestate)
    if state:
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
    return {
        str(name).lower(): value
        for name, value in carrier.items()
        if isinstance(value, str) and str(name).lower() in _HEADERS
    }


def _scope_of(ref: SpanRef, headers: Mapping[str, str]) -> Scope:
    """Read what the span belongs to; a proxy may have kept either header only."""
    scope = _baggage_scope(ref, headers.get("baggage", ""))
    state = parse_tracestate(headers.get("tracestate", ""))
    if state is None or any(value is not None for value in scope.as_row()[1:]):
        return scope
    return Scope(
        ref.trace_id, state.step, state.task_key, state.group, state.session_id, state.sample
    )


def _baggage_scope(ref: SpanRef, baggage: str) -> Scope:
    from urllib.parse import unquote

    if len(baggage) > _MAX_BAGGAGE:
        baggage = baggage[:_MAX_BAGGAGE].rpartition(",")[0]  # half a member would mislead
    members: dict[str, str] = {}
    for member in baggage.split(","):
        name, _, value = member.strip().partition("=")
        if name.startswith(_PREFIX):
            members[name.removeprefix(_PREFIX)] = unquote(value.partition(";")[0])
    return Scope(
        ref.trace_id,
        _whole(members.get("step"), 10),
        members.get("task"),
        members.get("group"),
        _whole(members.get("session"), 16, least=1),
        _whole(members.get("sample"), 10),
    )


def _whole(text: str | None, base: int, least: int = -(2**63)) -> int | None:
    """Read a number that came from outside; None unless it fits a record."""
    try:
        number = int(text, base) if text else None
    except ValueError:
        return None
    return number if number is not None and least <= number < 2**63 else None


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
