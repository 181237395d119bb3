"""Sessions that a runner keeps for the code it runs, made of what is known only when it is asked.

Most tasks begin and end and no phase is opened in them. So what a session is made of (its ids, its
scope, its attributes) waits until somebody reads one of them. Until then a session is a few
pointers. One that is unread when the writer finds it open, or over, is recorded as it is: the
writer *claims* it, which gives it its ids and nothing else.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rollscope.instrument.spans import LEFT, Session, Span
from rollscope.model.kinds import KIND_CODES, Kind
from rollscope.model.refs import SpanRef
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextvars import ContextVar

    from rollscope.instrument.buffers import Buffers

    Facts = tuple[str, int, str | None, dict[str, Any], int]
    """task key, sample, group, attributes, thread."""
    Describe = Callable[["HostedSession"], Facts]
    Begin = Callable[[Any, int, Any, int | None, int, Describe, Span | None], "HostedSession"]

__all__ = ["HostedSession", "HostedTypes", "bind_hosted"]

_SESSION: Final = KIND_CODES[Kind.SESSION]
_SPREAD: Final = 0x9E3779B97F4A7C15
"""The golden ratio, of 64 bits and odd: times this, ids that are counted up lie evenly all over the
range, as those count on who take a share of all traces by their last bytes."""
_64_BITS: Final = 2**64 - 1
_LATE: Final = frozenset(("attrs", "fields", "id", "scope", "thread"))
"""What is set all at once, when one of it is read for the first time."""


class HostedSession(Session):
    """A session of a runner, as the runner sees it."""

    __slots__ = ("has_id", "is_over", "number", "outer", "version")

    # Slots of spans that would stay empty here, put to use: thousands may be open.
    label: Any = Span.name  # type: ignore[misc]  # mypy knows no slots by other names
    """What the runner calls it by, with `number`; `settings` and these are for `describe`."""
    settings: Any = Span.own_scope  # type: ignore[misc]
    describe: Any = Span.what  # type: ignore[misc]
    """Says what it is made of, a `Describe`; None once that was asked."""
    number: int
    version: int | None
    outer: Scope
    """Of the span that its task was submitted in."""
    has_id: bool
    """Whether it was read or claimed; until then it is known to its runner alone."""
    is_over: bool
    """Set by the runner when it ends."""


class HostedTypes(NamedTuple):
    """What `bind_hosted` makes."""

    begin: Begin
    record: Callable[[HostedSession, int, int], None]
    claim: Callable[[Sequence[HostedSession]], list[Describe | None]]
    traces_of: Callable[[Iterable[int]], list[bytes]]
    """Names the traces of sessions that were claimed, by their ids."""
    renew: Callable[[], None]
    """Called in a forked child: the thread that held our lock may not be there."""


def bind_hosted(
    session_type: type[Session],
    buffers: Buffers,
    current: ContextVar[Span],
    new_ids: Callable[[int], list[int]],
    new_trace: Callable[[], bytes],
) -> HostedTypes:
    """Make the sessions of one recorder that a runner keeps.

    Args:
        session_type: What they are besides.
        buffers: Of the recorder.
        current: Tells the span that code is in.
        new_ids: Gives so many span ids.
        new_trace: Gives trace ids.
    """
    open_spans, extend = buffers.open, buffers.rows.extend
    get_current, set_current, note_start = current.get, current.set, buffers.started.append
    completing = threading.Lock()
    prefix = new_trace()[:8]  # also that of forked children, who know sessions begun before them

    def renew() -> None:
        nonlocal completing
        completing = threading.Lock()

    def traces_of(span_ids: Iterable[int]) -> list[bytes]:
        """Name the traces of sessions that open one: by their ids, so that nobody keeps them."""
        return [prefix + (span_id * _SPREAD & _64_BITS).to_bytes(8) for span_id in span_ids]

    class Hosted(session_type, HostedSession):  # type: ignore[misc,valid-type]  # of a recorder
        """A session of a runner."""

        __slots__ = ()

        name = "session"
        what = _SESSION

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (one of many slots)
            """Fill the slots, one of which was read."""
            if name in _LATE:
                complete(self, None)
                return getattr(self, name)
            raise AttributeError(name)

        @property
        def ref(self) -> SpanRef | None:
            if self.has_id and self.describe is not None:  # it was claimed
                return SpanRef(traces_of([self.id])[0], self.id)
            return super().ref

    def begin(
        label: Any,  # noqa: ANN401  (the runner's)
        number: int,
        settings: Any,  # noqa: ANN401
        version: int | None,
        start_ns: int,
        describe: Describe,
        before: Span | None,
    ) -> HostedSession:
        """Open a session, current in this context.

        It belongs to the task that is open around it; else it opens a trace of its own, or goes
        on with that of an attempt before it.
        """
        span: HostedSession = Hosted()
        span.label, span.number, span.settings, span.version = label, number, settings, version
        span.start_ns, span.describe, span.is_over = start_ns, describe, False
        span.has_id = False
        around = get_current()
        outer = around.scope
        # Not the span itself: tasks that submit their successors would keep all before them alive.
        span.outer, span.parent = outer, LEFT
        is_in_task = outer.session_id is None and outer.task_key is not None
        span.parent_id = around.id if is_in_task else 0
        if before is not None:
            _ = before.id  # so that it has all that is taken from it
            complete(span, before)
        set_current(span)
        note_start(span)
        return span

    def open_all(spans: Sequence[HostedSession]) -> None:
        """Put sessions among the open ones that a runner has begun and not ended."""
        for span, describe in zip(spans, claim(spans), strict=True):
            if describe is None:
                complete(span, None)
                continue
            open_spans[span.id] = span
            if span.is_over:  # since a moment ago; see `complete`
                open_spans.pop(span.id, None)

    def complete(span: HostedSession, before: Span | None) -> None:
        """Fill the slots of a session, in whichever thread that is."""
        with completing:
            describe = span.describe
            if describe is None:
                return
            key, sample, group, span.attrs, span.thread = describe(span)
            is_claimed = span.has_id
            span_id = span.id if is_claimed else new_ids(1)[0]
            if before is not None:
                span.parent_id, last = before.parent_id, before.scope
                span.scope = Scope(last.trace_id, last.step, last.task_key, group, span_id, sample)
            else:
                place(span, span_id, key, group, sample)
            span.fields = {} if span.version is None else {"version_start": span.version}
            span.id = span_id
            if not span.is_over:
                open_spans[span_id] = span
            # In this order: who ends it says so first and looks at `has_id` then. So one of the
            # two sees the other, and what is over does not stay among the open ones.
            span.has_id, span.describe = True, None
            if not is_claimed:  # else the writer may be reading it
                span.label = None
            if span.is_over:
                open_spans.pop(span_id, None)

    def place(
        span: HostedSession,
        span_id: int,
        key: str,
        group: str | None,
        sample: int,
    ) -> None:
        """Give a session its scope: in the task around it, or of its own."""
        outer = span.outer
        task_key = _task_around(outer)
        if task_key is not None:
            trace_id, key, group = outer.trace_id, task_key, group or outer.group
        else:
            (trace_id,) = traces_of([span_id])
        span.scope = Scope(trace_id, outer.step, key, group, span_id, sample)

    def claim(spans: Sequence[HostedSession]) -> list[Describe | None]:
        """Give ids to sessions that nobody has read anything of, and say what describes each.

        None stands for the others, and for those that belong to a task; `record` is for them.
        """
        claimed: list[Describe | None] = []
        add = claimed.append
        outer, is_of_task = None, False
        with completing:
            for span, span_id in zip(spans, new_ids(len(spans)), strict=True):
                describe = span.describe
                if span.outer is not outer:
                    outer = span.outer
                    is_of_task = _task_around(outer) is not None
                if describe is None or is_of_task:
                    add(None)
                    continue
                if not span.has_id:
                    span.id, span.has_id = span_id, True
                add(describe)
        return claimed

    def record(span: HostedSession, end: int, status: int) -> None:
        """Record a session that has been taken out of the open ones."""
        complete(span, None)  # an unset slot would see to it, at the price of an exception
        extend(
            (
                _SESSION,
                "session",
                span.scope,
                span.id,
                span.parent_id,
                span.start_ns,
                end,
                status,
                span.attrs,
                span.fields,
            )
        )

    buffers.open_all = open_all
    return HostedTypes(begin, record, claim, traces_of, renew)


def _task_around(outer: Scope) -> str | None:
    """Give the key of the task that a session begun in this scope belongs to."""
    return outer.task_key if outer.session_id is None else None
