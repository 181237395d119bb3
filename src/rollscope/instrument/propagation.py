"""Context across borders: W3C headers, environment variables, threads, executors, processes.

asyncio carries context by itself (tasks, `gather`, `TaskGroup`, `to_thread`), and so does a fork.
Everything else goes through a carrier: a `traceparent`, and a `baggage` with what the receiving
side needs to know of the step, task and session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import NOOP, RemoteSpan
from rollscope.model.refs import SpanRef, format_traceparent, parse_traceparent, span_hex
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from contextvars import ContextVar
    from types import TracebackType

    from rollscope.instrument.spans import AddFacts, Span

__all__ = ["Attachment", "extract_span", "inject_span"]

_PREFIX: Final = "rollscope."
_MAX_BAGGAGE: Final = 8192
_MAX_MEMBER: Final = 512


def inject_span(span: Span, carrier: MutableMapping[str, str], baggage: str = "") -> None:
    """Write the context of a span into headers.

    Args:
        span: Whose context.
        carrier: Takes the headers.
        baggage: What others want to be carried along; ours is added.
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


def extract_span(carrier: Mapping[str, str], add_facts: AddFacts) -> Span | None:
    """Read what `inject_span`, or any W3C client, wrote; None if there is no valid context.

    Args:
        carrier: Headers, in any case.
        add_facts: Takes what is learned about the span on this side.
    """
    headers = {
        str(name).lower(): value
        for name, value in carrier.items()
        if isinstance(value, str) and str(name).lower() in ("traceparent", "baggage")
    }
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
    return RemoteSpan(ref.span_id, _scope(ref, headers.get("baggage", "")), add_facts)


def _scope(ref: SpanRef, baggage: str) -> Scope:
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
