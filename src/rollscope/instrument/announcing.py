"""Announcing what is open: a span that lives longer than a drain is written before it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import guarded
from rollscope.instrument.hosted import HostedSession
from rollscope.instrument.stepaside import step_aside
from rollscope.model.batch import number_column
from rollscope.model.kinds import STATUS_CODES, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rollscope.instrument.buffers import Buffers
    from rollscope.instrument.spans import Span
    from rollscope.model.batch import SpanColumns

__all__ = ["Announcer"]

_FEW: Final = 1_000
_ROWS_AT_ONCE: Final = 100
_SESSIONS_AT_ONCE: Final = 200
_OPEN: Final = STATUS_CODES[Status.OPEN]


class Announcer:
    """Knows which of the open spans have been announced."""

    def __init__(
        self,
        buffers: Buffers,
        put_sessions: Callable[[SpanColumns], None],
        watch: Callable[[Collection[int]], None],
    ) -> None:
        """Begin with none.

        Args:
            buffers: Of the recorder.
            put_sessions: Takes the records of a runner's sessions, ready to be packed.
            watch: Is told the ids of what was announced, once each.
        """
        self._buffers = buffers
        self._put_sessions = put_sessions
        self._watch = watch
        self._announced: dict[int, None] = {}
        """Ids; a set of twenty thousand takes three times as much."""
        self._entering: list[Span] = []
        """Spans that were being entered at the last look."""
        self._seen = (0, 0)
        """How many spans lived at the last look."""
        self._list: bytes | None = None
        """What is open, as a column; None if that may be something else by now."""

    def has_nothing_new(self) -> bool:
        """Say whether nothing was recorded since the last look, but for metrics."""
        return not self._entering and self._buffers.is_untouched(self._seen)

    def announce(self) -> list[Any]:
        """Give a start record for each span that is open and has none yet."""
        self._list = None
        self._seen = self._buffers.count_living()
        entering, self._entering = self._entering, []
        fresh = self._buffers.opened_since(self._announced.__contains__)
        rows: list[Any] = []
        announced: list[int] = []
        for span in {span.id: span for span in entering + self._announce_hosted(fresh)}.values():
            if span.id not in self._buffers.open:
                continue
            if row := _start_row(span):
                rows += row
                announced.append(span.id)
                if len(announced) % _ROWS_AT_ONCE == 0:
                    step_aside()
            else:
                self._entering.append(span)
        self._note(announced)
        if len(self._announced) > 2 * len(self._buffers.open) + _FEW:
            self._announced = self._still_open()
        return rows

    def _announce_hosted(self, fresh: list[Span]) -> list[Span]:
        """Announce the sessions of runners among the spans, many at a time; give the others."""
        host = self._buffers.host
        if host is None:
            return fresh
        others: list[Span] = []
        for at in range(0, len(fresh), _SESSIONS_AT_ONCE):
            living: list[Span] = []
            for span in fresh[at : at + _SESSIONS_AT_ONCE]:
                if not isinstance(span, HostedSession):
                    others.append(span)
                elif not span.is_over:
                    living.append(span)
            if not living:
                continue
            columns, left = None, living
            with guarded("announcing sessions"):
                columns, left = host.announce(living)
            others += left
            if columns is not None:
                self._put_sessions(columns)
                given_back = set(left)
                self._note([span.id for span in living if span not in given_back])
                step_aside()
        return others

    def _note(self, span_ids: Collection[int]) -> None:
        self._announced |= dict.fromkeys(span_ids)
        self._watch(span_ids)

    def list_open(self) -> bytes:
        """Give the ids of the announced spans that have not ended, as a column."""
        if self._list is None:
            self._announced = self._still_open()
            self._list = number_column(sorted(self._announced))
        return self._list

    def _still_open(self) -> dict[int, None]:
        """Give the announced spans that have not ended.

        A span whose end is lost is not among them, and so is found out by who reads the list.
        """
        living = list(filter(self._buffers.open.__contains__, self._announced))
        if len(living) == len(self._announced):
            return self._announced
        # After those: what ends is among these before it leaves the open ones.
        ending = self._buffers.ending_ids() & self._announced.keys()
        return dict.fromkeys([*living, *ending])


def _start_row(span: Span) -> tuple[Any, ...]:
    """Make the start record of an open span; none yet if it is being entered this instant."""
    start_ns = getattr(span, "start_ns", None)
    if start_ns is None:
        return ()
    return (
        span.what,
        span.name,
        span.scope,
        span.id,
        span.parent_id,
        start_ns,
        0,
        _OPEN,
        dict(span.attrs),
        dict(getattr(span, "fields", {})) or None,
    )
