"""Spans: the objects that a host program enters and leaves, as their user sees them.

What entering and leaving do is left to `binding`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Self

from rollscope.model.kinds import SPAN_CODES
from rollscope.model.refs import SpanRef
from rollscope.model.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextvars import Token
    from types import TracebackType

    AddFacts = Callable[[SpanRef, dict[str, Any]], None]
    OwnScope = tuple[int | None, str | None, str | None, int | None]
    """step, task key, group, sample."""

__all__ = ["LEFT", "NOOP", "RemoteSpan", "Session", "Span", "lineage"]

_MAX_LINEAGE = 10_000


class Span:
    """A timed region. Enter it with `with` or `async with`; leaving it records it."""

    __slots__ = (
        "_token",
        "attrs",
        "fields",
        "id",
        "name",
        "own_scope",
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
    """0 until the span is entered."""
    name: str
    own_scope: OwnScope
    """What a step, task or session was given itself; the rest of its scope comes from around it."""
    parent: Span
    """What becomes current again when this span is left; `LEFT` from then on."""
    parent_id: int
    scope: Scope
    start_ns: int
    thread: int
    what: int
    if TYPE_CHECKING:  # ours alone, unlike what may be read off a span
        _token: Token[Span] | None
        """By which it is made current no longer where it was entered; None once it is left."""

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

    def set(self, /, **attrs: Any) -> Self:
        """Add attributes; after the span was left they are recorded as late facts."""
        return self

    @property
    def ref(self) -> SpanRef | None:
        """Name this span, for `annotate` or another process.

        None when nothing is recorded, and before the span is entered.
        """
        return SpanRef(self.scope.trace_id, self.id) if self.id else None

    def __copy__(self) -> Self:
        """Give the span itself: a copy of what holds it is still about the same one."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Do as `__copy__`."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a reference: elsewhere `ref`, `set` and `finish` are about this span."""
        from rollscope.instrument.travelling import arrive

        return arrive, (self.ref,)


class Session(Span):
    """One sample of a task, which can be given a verdict."""

    __slots__ = ()

    def finish(
        self,
        /,
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
# A span may live on as the parent in some task's context. It must not keep its own ancestors alive,
# or tasks that start their successors would leak; so a span that is left gets this for a parent.
LEFT = _NoopSpan()
for _noop in (NOOP, LEFT):
    # Code that reads a span must work as well with one that is not there.
    _noop.id = _noop.parent_id = _noop.start_ns = _noop.thread = 0
    _noop.name, _noop.attrs, _noop.fields = "", {}, {}
    _noop.parent, _noop.scope, _noop.what = NOOP, Scope(bytes(16)), SPAN_CODES["misc"]
# Built-ins as special methods: a disabled `with` then runs no Python frame, 60 ns less of 290. A
# `with` calls them without the span, an `ExitStack` with it: the partial `get` gives NOOP for both.
# `"".format` takes any arguments and gives a false value, which lets exceptions pass.
_NoopSpan.__enter__ = functools.partial(  # type: ignore[method-assign,assignment]
    {None: NOOP}.get, None
)
_NoopSpan.__exit__ = "".format  # type: ignore[method-assign,assignment]


class RemoteSpan(Span):
    """The current span where the real one lives in another process."""

    __slots__ = ("_add_facts",)

    def __init__(self, span_id: int, scope: Scope, add_facts: AddFacts) -> None:
        self.id, self.scope, self.parent = span_id, scope, NOOP
        self.name, self.attrs, self.parent_id = "", {}, 0
        self._add_facts = add_facts

    def set(self, /, **attrs: Any) -> Self:
        """Record what is learned here as late facts about the real span."""
        self._add_facts(SpanRef(self.scope.trace_id, self.id), attrs)
        return self


def lineage(span: Span | None) -> Iterator[Span]:
    """Give a span and its ancestors, outwards; not for ever if one was entered inside itself."""
    for _ in range(_MAX_LINEAGE):
        if span is None or not span.id:
            return
        yield span
        span = span.parent
