"""What entering and leaving a span does: the cheapest possible path, made for one recorder.

The span classes are closures over a recorder's buffer, clock and counter, because a closure
variable costs a third of an attribute chain and this path is the price of every span. A native
core would replace `bind_span_types` and nothing else.
"""

from __future__ import annotations

from operator import attrgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rollscope.instrument.calls import STEP_BEGUN, STEP_ENDED
from rollscope.instrument.elsewhere import Elsewhere
from rollscope.instrument.endings import classify
from rollscope.instrument.guard import tell_once
from rollscope.instrument.hosted import HostedTypes, bind_hosted
from rollscope.instrument.ids import span_counter
from rollscope.instrument.sanitise import clean_text
from rollscope.instrument.spans import LEFT, NOOP, Session, Span, lineage
from rollscope.instrument.verdicts import read_verdict, tell_unknown
from rollscope.model.kinds import (
    EVENT_CODE,
    KIND_CODES,
    SPAN_CODES,
    STATUS_CODES,
    WHAT_OF_CODE,
    Kind,
    Status,
)
from rollscope.model.refs import SpanRef
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar
    from types import TracebackType

    from rollscope.instrument.buffers import Buffers
    from rollscope.instrument.clock import Clock
    from rollscope.instrument.ids import IdSource
    from rollscope.instrument.spans import AddFacts

__all__ = ["SpanTypes", "bind_span_types"]

_OK, _ERROR = STATUS_CODES[Status.OK], STATUS_CODES[Status.ERROR]
_STEP, _TASK, _SESSION = (KIND_CODES[kind] for kind in (Kind.STEP, Kind.TASK, Kind.SESSION))
_PHASE, _STATE = KIND_CODES[Kind.PHASE], KIND_CODES[Kind.STATE]
_begun_of = attrgetter("what", "name", "scope", "id", "parent_id", "start_ns")
"""A built-in, which can be called where the stack has no room for a function of ours."""
_GIVEN_FIELDS = ("lane", "version_start")
"""Fields that a span is made with; the others are learned while it is open."""


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
    renew_ids: Callable[[], None]
    """Called in a forked child, where spans made before the fork may still be entered."""
    hosted: HostedTypes
    find_current: Callable[[], Span]


def bind_span_types(
    buffers: Buffers, current: ContextVar[Span], ids: IdSource, clock: Clock
) -> SpanTypes:
    """Make the span classes of one recorder in one process."""
    open_spans, rows = buffers.open, buffers.rows
    extend, add_call = rows.extend, buffers.samples.extend
    get_current, set_current, reset_current = current.get, current.set, current.reset
    elsewhere = Elsewhere(current)
    left_elsewhere = elsewhere.tokens
    next_id, new_trace = span_counter(ids).__next__, ids.trace_id
    now = clock.mono_ns

    def renew_ids() -> None:
        nonlocal next_id
        next_id = span_counter(ids).__next__
        hosted.renew()

    def add_facts(ref: SpanRef, facts: dict[str, Any]) -> None:
        try:
            buffers.facts.append((ref.trace_id, ref.span_id, now(), facts))
        except MemoryError:
            buffers.count_unrecorded("fact")

    def note_step(mark: int, step: Span, at: int | None) -> None:
        try:
            add_call((mark, step.own_scope[0], now() if at is None else at, step.id))
        except MemoryError:
            buffers.count_unrecorded("metric")

    def leave(span: Span) -> None:
        """Make the span's predecessor current again, also when spans are left out of order."""
        at = get_current()
        token, span._token = getattr(span, "_token", None), None
        if at is span:
            try:
                reset_current(token)  # type: ignore[arg-type]  # None gives a TypeError
            except (RuntimeError, TypeError, ValueError):  # used, none, of another context
                set_current(span.parent)
            else:
                return
        for inner in lineage(at):
            if inner.parent is span:
                inner.parent = span.parent
                inner._token = None  # it would make this one current again
                return
        elsewhere.note(span, token)

    def leave_unrecorded(span: Span) -> None:
        """Leave a span that is not ours to record: opened before a fork, left or never entered."""
        if getattr(span, "parent", LEFT) is not LEFT:
            leave(span)
            span.parent = LEFT

    def find_current() -> Span:
        span = get_current()
        return elsewhere.come_back(span) if span.id in left_elsewhere else span

    def lose(span: Span) -> None:
        """Leave a span for whose record there is no memory, and count it."""
        buffers.count_unrecorded(WHAT_OF_CODE[span.what].kind or "event")
        open_spans.pop(span.id, None)
        try:
            leave_unrecorded(span)
        except MemoryError:
            span.parent = LEFT

    def close(span: Span, end: int, error: BaseException | None, fields: dict[str, Any]) -> None:
        """Record the end of a span off the fastest path: fields, errors, odd order.

        Recording comes last, so that a span is not recorded yet if the stack has no room for this.
        """
        status = _OK
        if error is not None:
            ending = classify(error)
            status = ending.status
            if ending.reason is not None:
                fields.setdefault("reason", ending.reason)
            if isinstance(span, Session) and ending.outcome is not None:
                fields.setdefault("outcome", ending.outcome)
        leave(span)
        span.parent = LEFT
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

    def is_busy(span: Span) -> bool:
        """Say whether a span that was entered before is still open; make it fit for use if not."""
        if span.id in open_spans:
            tell_once(
                f"busy:{clean_text(span.name, 100)}",
                "Rollscope records the span %.100r once although it is entered again while it is "
                "open; make a new span each time",
                clean_text(span.name, 100),
            )
            return True
        # The buffer still holds what the last use was recorded with.
        span.attrs = dict(span.attrs)
        if isinstance(span, Fielded):
            span.fields = {key: span.fields[key] for key in _GIVEN_FIELDS if key in span.fields}
        return False

    class Leaf(Span):
        """An ordinary span or a phase."""

        __slots__ = ()

        def __enter__(self) -> Self:
            try:
                if self.id and is_busy(self):
                    return self
                parent = get_current()
                if left_elsewhere and parent.id in left_elsewhere:
                    parent = elsewhere.come_back(parent)
                self.parent = parent
                self.parent_id = parent.id
                self.scope = parent.scope if parent.id else Scope(new_trace())
                self.thread = get_ident()
                self.id = span_id = next_id()
                open_spans[span_id] = self
                self._token = set_current(self)
                self.start_ns = now()
            except MemoryError:
                lose(self)
                self.id = 0
            return self

        def __exit__(
            self,
            error_type: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None:
            try:
                end = now()
                try:
                    del open_spans[self.id]
                except (KeyError, AttributeError):
                    leave_unrecorded(self)
                    return
                if error is None and get_current() is self:
                    try:
                        reset_current(self._token)  # type: ignore[arg-type]  # as in `leave`
                    except (TypeError, ValueError):
                        leave(self)
                    self.parent, self._token = LEFT, None
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
                    return
                try:
                    close(self, end, error, {})
                except RecursionError:  # so close to the limit that only built-ins can be called
                    if self.parent is not LEFT and get_current() is self:
                        set_current(self.parent)
                    self.parent, self._token = LEFT, None
                    status = _OK if error is None else _ERROR
                    extend((*_begun_of(self), end, status, self.attrs, None))
            except MemoryError:
                if self.id:  # else it was lost as it was entered
                    lose(self)

        def set(self, /, **attrs: Any) -> Self:
            try:
                if self.id and self.id not in open_spans:
                    add_facts(SpanRef(self.scope.trace_id, self.id), attrs)
                else:
                    self.attrs.update(attrs)
            except MemoryError:
                buffers.count_unrecorded("fact")
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
            try:
                end = now()
                try:
                    del open_spans[self.id]
                except (KeyError, AttributeError):
                    leave_unrecorded(self)
                    return
                try:
                    close(self, end, error, self.fields)
                except RecursionError:  # so close to the limit that only built-ins can be called
                    if self.parent is not LEFT and get_current() is self:
                        set_current(self.parent)
                    self.parent, self._token = LEFT, None
                    status = _OK if error is None else _ERROR
                    extend((*_begun_of(self), end, status, self.attrs, self.fields or None))
            except MemoryError:
                if self.id:  # else it was lost as it was entered
                    lose(self)

    class Scoped(Fielded):
        """A step, task or session: opens a scope that everything inside shares."""

        __slots__ = ()

        def __enter__(self) -> Self:
            try:
                if self.id and is_busy(self):
                    return self
                parent = get_current()
                if left_elsewhere and parent.id in left_elsewhere:
                    parent = elsewhere.come_back(parent)
                self.parent = parent
                self.thread = get_ident()
                self.id = span_id = next_id()
                self.open_scope(parent)
                open_spans[span_id] = self
                self._token = set_current(self)
                self.start_ns = now()
            except MemoryError:
                lose(self)
                self.id = 0
            return self

        def open_scope(self, parent: Span) -> None:
            """Start a trace of its own."""
            self.parent_id = 0
            step, task_key, group, _ = self.own_scope
            self.scope = Scope(
                new_trace(),
                parent.scope.step if step is None and parent.id else step,
                task_key,
                group,
            )

    class Step(Scoped):
        """A step: calls of metrics in this process belong to it while it is open."""

        __slots__ = ()

        def __enter__(self) -> Self:
            was = self.id
            super().__enter__()
            if self.id and self.id != was:
                note_step(STEP_BEGUN, self, self.start_ns)
            return self

        def __exit__(
            self,
            error_type: type[BaseException] | None,
            error: BaseException | None,
            traceback: TracebackType | None,
            /,
        ) -> None:
            if self.id in open_spans:
                note_step(STEP_ENDED, self, None)
            super().__exit__(error_type, error, traceback)

    class LiveSession(Scoped, Session):
        """A session: stays in the trace of its task."""

        __slots__ = ()

        def open_scope(self, parent: Span) -> None:
            self.parent_id = parent.id
            outer = parent.scope if parent.id else Scope(new_trace())
            step, _, group, sample = self.own_scope
            self.scope = Scope(
                outer.trace_id,
                outer.step if step is None else step,
                outer.task_key,
                outer.group if group is None else group,
                self.id,
                sample,
            )

        def finish(
            self,
            /,
            outcome: str,
            *,
            reason: str | None = None,
            version: int | None = None,
            **attrs: Any,
        ) -> Self:
            try:
                verdict = read_verdict(outcome, reason, version)
                if self.id and self.id not in open_spans:
                    return self.set(**{**attrs, **verdict})
                self.fields.update(verdict)
                self.attrs.update(attrs)
            except MemoryError:
                buffers.count_unrecorded("fact")
            return self

    def new_span(name: str, category: str, attrs: dict[str, Any]) -> Span:
        try:
            span = Leaf()
            span.id, span.name, span.attrs = 0, name, attrs
            try:
                span.what = SPAN_CODES[category]
            except Exception:  # not only a KeyError: it may be any object
                span.what = SPAN_CODES["misc"]
                tell_unknown("category", category, SPAN_CODES)
        except MemoryError:
            return lose_unmade(Kind.SPAN)
        return span

    def new_phase(name: str, attrs: dict[str, Any]) -> Span:
        try:
            span = Leaf()
            span.id, span.name, span.attrs, span.what = 0, name, attrs, _PHASE
        except MemoryError:
            return lose_unmade(Kind.PHASE)
        return span

    def new_state(name: str, lane: str, attrs: dict[str, Any]) -> Span:
        try:
            span = Fielded()
            span.id, span.name, span.attrs, span.what = 0, name, attrs, _STATE
            span.fields = {"lane": lane}
        except MemoryError:
            return lose_unmade(Kind.STATE)
        return span

    def new_step(number: int, version: int | None, attrs: dict[str, Any]) -> Span:
        try:
            span = Step()
            span.id, span.name, span.attrs, span.what = 0, "step", attrs, _STEP
            span.own_scope = (number, None, None, None)
            span.fields = {} if version is None else {"version_start": version}
        except MemoryError:
            return lose_unmade(Kind.STEP)
        return span

    def new_task(key: str, group: str | None, step: int | None, attrs: dict[str, Any]) -> Span:
        try:
            span = Scoped()
            span.id, span.name, span.attrs, span.what = 0, "task", attrs, _TASK
            span.own_scope = (step, key, group, None)
            span.fields = {}
        except MemoryError:
            return lose_unmade(Kind.TASK)
        return span

    def new_session(
        sample: int,
        version: int | None,
        group: str | None,
        step: int | None,
        attrs: dict[str, Any],
    ) -> Session:
        try:
            span = LiveSession()
            span.id, span.name, span.attrs, span.what = 0, "session", attrs, _SESSION
            span.own_scope = (step, None, group, sample)
            span.fields = {} if version is None else {"version_start": version}
        except MemoryError:
            return lose_unmade(Kind.SESSION)
        return span

    def lose_unmade(kind: Kind) -> Session:
        buffers.count_unrecorded(kind)
        return NOOP

    def add_event(name: str, attrs: dict[str, Any]) -> None:
        try:
            at = now()
            parent = find_current()
            scope = parent.scope if parent.id else Scope(new_trace())
            extend((EVENT_CODE, name, scope, next_id(), parent.id, at, at, _OK, attrs, None))
        except MemoryError:
            buffers.count_unrecorded("event")

    def new_ids(count: int) -> list[int]:
        return [next_id() for _ in range(count)]

    hosted = bind_hosted(LiveSession, buffers, current, new_ids, new_trace)

    return SpanTypes(
        new_span,
        new_phase,
        new_state,
        new_step,
        new_task,
        new_session,
        add_event,
        add_facts,
        renew_ids,
        hosted,
        find_current,
    )
