"""Spans: the objects that a host program enters and leaves, and their cheapest possible path.

`bind_span_types` makes the classes for one recorder. They are closures over its buffer, clock and
counter, because a closure variable costs a third of an attribute chain and this path is the price
of every span. A native core would replace that one function.
"""

from __future__ import annotations

import itertools
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rollscope.instrument.endings import classify
from rollscope.instrument.guard import tell_once
from rollscope.instrument.ids import span_counter
from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    Kind,
    Outcome,
    Status,
)
from rollscope.model.refs import SpanRef
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextvars import ContextVar
    from types import TracebackType

    from rollscope.instrument.buffers import Buffers
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.ids import IdSource

    AddFacts = Callable[[SpanRef, dict[str, Any]], None]

__all__ = ["NOOP", "RemoteSpan", "Session", "Span", "SpanTypes", "bind_span_types"]

_OK = STATUS_CODES[Status.OK]
_STEP, _TASK, _SESSION = (KIND_CODES[kind] for kind in (Kind.STEP, Kind.TASK, Kind.SESSION))
_PHASE, _STATE = KIND_CODES[Kind.PHASE], KIND_CODES[Kind.STATE]
_REASON_CHARS = 500


class Span:
    """A timed region. Enter it with `with` or `async with`; leaving it records it."""

    __slots__ = (
        "attrs",
        "fields",
        "id",
        "name",
        "parent",
        "parent_id",
        "scope",
        "start_ns",
        "thread",
        "what",
    )

    attrs: dict[str, Any]
    fields: dict[str, Any]
    """Set on steps, tasks, sessions and states only."""
    id: int
    name: str
    parent: Span
    """What becomes current again when this span is left."""
    parent_id: int
    scope: Scope
    start_ns: int
    thread: int
    what: int

    def __enter__(self) -> Self:
        """Start the clock and become the current span."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Stop the clock and record; an exception decides the status and passes on."""

    async def __aenter__(self) -> Self:
        """Do as `__enter__`."""
        return self.__enter__()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        """Do as `__exit__`."""
        self.__exit__(error_type, error, traceback)

    def set(self, **attrs: Any) -> Self:
        """Add attributes; after the span was left they are recorded as late facts."""
        return self

    @property
    def ref(self) -> SpanRef | None:
        """Name this span, for `annotate` or another process; None when nothing is recorded."""
        return SpanRef(self.scope.trace_id, self.id)


class Session(Span):
    """One sample of a task, which can be given a verdict."""

    __slots__ = ()

    def finish(
        self,
        outcome: str,
        *,
        reason: str | None = None,
        version: int | None = None,
        **attrs: Any,
    ) -> Self:
        """Give the verdict: accepted, rejected, failed, timeout, dropped or cancelled.

        Args:
            outcome: The verdict. The last one given counts.
            reason: Why, in a few words; sessions are grouped by it.
            version: The policy version at the end, if it changed on the way.
            **attrs: More facts, such as `reward=1.0`.
        """
        return self


class _NoopSpan(Session):
    """Stands in when nothing is recorded, and for the current span where there is none."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Read as false, so that `if span:` tells whether there is a real one."""
        return False

    @property
    def ref(self) -> None:
        """Name nothing."""
        return


NOOP = _NoopSpan()
NOOP.id = 0
# Built-ins as special methods: a disabled `with` then runs no Python frame, 75 ns less of 290.
# `"".format` takes any arguments and gives a false value, which lets exceptions pass.
_NoopSpan.__enter__ = itertools.repeat(NOOP).__next__  # type: ignore[method-assign,assignment]
_NoopSpan.__exit__ = "".format  # type: ignore[method-assign,assignment]


class RemoteSpan(Span):
    """The current span where the real one lives in another process."""

    __slots__ = ("_add_facts",)

    def __init__(self, span_id: int, scope: Scope, add_facts: AddFacts) -> None:
        self.id, self.scope, self.parent = span_id, scope, NOOP
        self._add_facts = add_facts

    def set(self, **attrs: Any) -> Self:
        """Record what is learned here as late facts about the real span."""
        self._add_facts(SpanRef(self.scope.trace_id, self.id), attrs)
        return self


class SpanTypes(NamedTuple):
    """What `bind_span_types` makes: one constructor per kind, and events."""

    new_span: Callable[[str, str, dict[str, Any]], Span]
    new_phase: Callable[[str, dict[str, Any]], Span]
    new_state: Callable[[str, str, dict[str, Any]], Span]
    new_step: Callable[[int, int | None, dict[str, Any]], Span]
    new_task: Callable[[str, str | None, int | None, dict[str, Any]], Span]
    new_session: Callable[[int, int | None, str | None, int | None, dict[str, Any]], Session]
    add_event: Callable[[str, dict[str, Any]], None]
    add_facts: AddFacts


def bind_span_types(
    buffers: Buffers, current: ContextVar[Span], ids: IdSource, clock: Clock
) -> SpanTypes:
    """Make the span classes of one recorder in one process."""
    open_spans, rows = buffers.open, buffers.rows
    extend = rows.extend
    get_current, set_current = current.get, current.set
    next_id, new_trace = span_counter(ids).__next__, ids.trace_id
    now = clock.mono_ns
    make = object.__new__

    def add_facts(ref: SpanRef, facts: dict[str, Any]) -> None:
        buffers.facts.append((ref.trace_id, ref.span_id, now(), facts))

    def leave(span: Span) -> None:
        """Make the span's predecessor current again, also when spans are left out of order."""
        at = get_current()
        if at is span:
            set_current(span.parent)
            return
        while at.id and at.parent is not span:
            at = at.parent
        if at.id:
            at.parent = span.parent

    def close(span: Span, end: int, error: BaseException | None, fields: dict[str, Any]) -> None:
        """Record the end of a span off the fastest path: fields, errors, odd order."""
        status = _OK
        if error is not None:
            ending = classify(error)
            status = ending.status
            if ending.reason is not None:
                fields.setdefault("reason", ending.reason)
            if isinstance(span, Session) and ending.outcome is not None:
                fields.setdefault("outcome", ending.outcome)
        extend(
            (
                span.what,
                span.name,
                span.scope,
                span.id,
                span.parent_id,
                span.start_ns,
                end,
                status,
                span.attrs,
                fields or None,
            )
        )
        leave(span)
        span.parent = NOOP

    class Leaf(Span):
        """An ordinary span or a phase."""

        __slots__ = ()

        def __enter__(self) -> Self:
            self.parent = parent = get_current()
            self.parent_id = parent.id
            self.scope = parent.scope if parent.id else Scope(new_trace())
            self.thread = get_ident()
            self.id = span_id = next_id()
            open_spans[span_id] = self
            set_current(self)
            self.start_ns = now()
            return self

        def __exit__(
            self,
            error_type: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None:
            end = now()
            try:
                del open_spans[self.id]
            except (KeyError, AttributeError):
                return  # left twice, never entered, or opened before a fork: not ours to record
            if error is None and get_current() is self:
                extend(
                    (
                        self.what,
                        self.name,
                        self.scope,
                        self.id,
                        self.parent_id,
                        self.start_ns,
                        end,
                        _OK,
                        self.attrs,
                        None,
                    )
                )
                set_current(self.parent)
                # A span may live on as the parent in some task's context. It must not keep its
                # own ancestors alive, or tasks that start their successors would leak.
                self.parent = NOOP
            else:
                close(self, end, error, {})

        def set(self, **attrs: Any) -> Self:
            own_id = getattr(self, "id", 0)
            if own_id and own_id not in open_spans:
                add_facts(SpanRef(self.scope.trace_id, own_id), attrs)
            else:
                self.attrs.update(attrs)
            return self

    class Fielded(Leaf):
        """A state: a leaf with fields of its own."""

        __slots__ = ()

        def __exit__(
            self,
            error_type: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None:
            end = now()
            try:
                del open_spans[self.id]
            except (KeyError, AttributeError):
                return
            close(self, end, error, self.fields)

    class Scoped(Fielded):
        """A step, task or session: opens a scope that everything inside shares."""

        __slots__ = ()

        def __enter__(self) -> Self:
            self.parent = parent = get_current()
            self.thread = get_ident()
            self.id = span_id = next_id()
            self.open_scope(parent)
            open_spans[span_id] = self
            set_current(self)
            self.start_ns = now()
            return self

        def open_scope(self, parent: Span) -> None:
            """Start a trace of its own, with the scope prepared at construction."""
            self.parent_id = 0
            scope = self.scope
            self.scope = Scope(
                new_trace(),
                parent.scope.step if scope.step is None and parent.id else scope.step,
                scope.task_key,
                scope.group,
            )

    class LiveSession(Scoped, Session):
        """A session: stays in the trace of its task."""

        __slots__ = ()

        def open_scope(self, parent: Span) -> None:
            self.parent_id = parent.id
            outer = parent.scope if parent.id else Scope(new_trace())
            own = self.scope
            self.scope = Scope(
                outer.trace_id,
                outer.step if own.step is None else own.step,
                outer.task_key,
                outer.group if own.group is None else own.group,
                self.id,
                own.sample,
            )

        def finish(
            self,
            outcome: str,
            *,
            reason: str | None = None,
            version: int | None = None,
            **attrs: Any,
        ) -> Self:
            verdict = _verdict(outcome, reason, version)
            if getattr(self, "id", 0) in open_spans:
                self.fields.update(verdict)
                self.attrs.update(attrs)
            else:
                self.set(**verdict, **attrs)
            return self

    def new_span(name: str, category: str, attrs: dict[str, Any]) -> Span:
        span = make(Leaf)
        span.name, span.attrs = name, attrs
        try:
            span.what = SPAN_CODES[category]
        except (KeyError, TypeError):
            span.what = SPAN_CODES["misc"]
            _tell_unknown("category", category, SPAN_CODES)
        return span

    def new_phase(name: str, attrs: dict[str, Any]) -> Span:
        span = make(Leaf)
        span.name, span.attrs, span.what = name, attrs, _PHASE
        return span

    def new_state(name: str, lane: str, attrs: dict[str, Any]) -> Span:
        span = make(Fielded)
        span.name, span.attrs, span.what = name, attrs, _STATE
        span.fields = {"lane": lane}
        return span

    def new_step(number: int, version: int | None, attrs: dict[str, Any]) -> Span:
        span = make(Scoped)
        span.name, span.attrs, span.what = "step", attrs, _STEP
        span.scope = Scope(b"", number)
        span.fields = {} if version is None else {"version_start": version}
        return span

    def new_task(key: str, group: str | None, step: int | None, attrs: dict[str, Any]) -> Span:
        span = make(Scoped)
        span.name, span.attrs, span.what = "task", attrs, _TASK
        span.scope = Scope(b"", step, key, group)
        span.fields = {}
        return span

    def new_session(
        sample: int,
        version: int | None,
        group: str | None,
        step: int | None,
        attrs: dict[str, Any],
    ) -> Session:
        span = make(LiveSession)
        span.name, span.attrs, span.what = "session", attrs, _SESSION
        span.scope = Scope(b"", step, None, group, None, sample)
        span.fields = {} if version is None else {"version_start": version}
        return span

    def add_event(name: str, attrs: dict[str, Any]) -> None:
        at = now()
        parent = get_current()
        scope = parent.scope if parent.id else Scope(new_trace())
        extend((EVENT_CODE, name, scope, next_id(), parent.id, at, at, _OK, attrs, None))

    return SpanTypes(
        new_span, new_phase, new_state, new_step, new_task, new_session, add_event, add_facts
    )


def _verdict(outcome: str, reason: str | None, version: int | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    try:
        fields["outcome"] = Outcome(outcome)
    except ValueError:
        _tell_unknown("outcome", outcome, list(Outcome))
        fields["outcome"] = Outcome.FAILED
        fields["reason"] = f"unknown outcome {outcome!r}"[:_REASON_CHARS]
    if reason is not None:
        fields["reason"] = reason
    if version is not None:
        fields["version_end"] = version
    return fields


def _tell_unknown(what: str, value: object, known: Iterable[str]) -> None:
    tell_once(
        f"{what}:{value!r}"[:200],
        "Rollscope does not know the %s %.100r; known are: %s",
        what,
        value,
        ", ".join(known),
    )
