"""Spans of a request: which of them are new, where they belong, and into the books."""

import os
from itertools import count
from typing import Final

from rollscope.otlp.aliases import Meaning
from rollscope.otlp.forms import Request, SpanForm
from rollscope.otlp.placing import Known, Placer
from rollscope.otlp.spankinds import plain_kind, span_kind
from rollscope.otlp.spanrows import (
    PlacedSpan,
    content_payloads,
    event_rows,
    made_row,
    session_facts,
    span_row,
)
from rollscope.otlp.told import meaning_of
from rollscope.otlp.writing import Books

__all__ = ["EARLIEST_NS", "LATEST_AHEAD_NS", "Tracing", "admit"]

EARLIEST_NS: Final = 10**18
"""In 2001: an earlier time is not one of a wall clock."""
LATEST_AHEAD_NS: Final = 24 * 3600 * 10**9
"""How far ahead of us the clock of a sender may be."""
_PENDING: Final = "pending"
_LOGFIRE_PENDING: Final = "pending_span"

_event_ids: Final = count((int.from_bytes(os.urandom(8)) >> 1) | 1)

Key = tuple[bytes, int]


class Tracing:
    """Takes spans, request by request."""

    def __init__(self, placer: Placer, books: Books, *, keeps_content: bool = False) -> None:
        self._placer = placer
        self._books = books
        self._keeps_content = keeps_content
        self.doubled = 0
        """Spans that came more than once."""

    def take(self, request: Request, now_ns: int) -> None:
        """Put the spans of a request into the books."""
        waiting: dict[Key, tuple[SpanForm, Meaning]] = {}
        for form in request.spans:
            meaning = meaning_of(form)
            why = admit(form, meaning, now_ns)
            if why:
                request.reject(why)
                continue
            key = (form.trace_id, form.span_id)
            if self._is_new(key, form, waiting):
                waiting[key] = (form, meaning)
        # Roots first, so that a session in one request has its root's id.
        keys = sorted(waiting, key=lambda key: waiting[key][0].parent_id != 0)
        for key in keys:
            if key in waiting:
                self._place(key, waiting, now_ns)

    def _is_new(
        self, key: Key, form: SpanForm, waiting: dict[Key, tuple[SpanForm, Meaning]]
    ) -> bool:
        known = self._placer.spans.get(key)
        if known is not None and known.is_kept and (known.end_ns or form.is_open):
            self.doubled += not form.is_open
            return False
        beside = waiting.get(key)
        if beside is None:
            return True
        if not beside[0].is_open:
            self.doubled += not form.is_open
            return False
        return not form.is_open

    def _place(self, key: Key, waiting: dict[Key, tuple[SpanForm, Meaning]], now_ns: int) -> None:
        """Place a span, after those above it that came with it."""
        chain = [key]
        seen = {key}
        while True:
            form = waiting[chain[-1]][0]
            above = (form.trace_id, form.parent_id)
            if above not in waiting or above in seen:
                break
            chain.append(above)
            seen.add(above)
        for one in reversed(chain):
            self._write(*waiting.pop(one), now_ns)

    def _write(self, form: SpanForm, meaning: Meaning, now_ns: int) -> None:
        placer = self._placer
        parent = placer.spans.get((form.trace_id, form.parent_id)) if form.parent_id else None
        place = placer.place(form, meaning, parent)
        kind = span_kind(form, meaning, place.session_id, parent.phase if parent else "")
        parent_id = form.parent_id
        for made in placer.made:
            book = self._books.book(made.session.place.run, form.sender, made.session.sender)
            made.session.sender = book.key
            book.rows.append(made_row(made))
            if made.root is form:
                # The session stands for it; it is all of it, not a phase.
                kind = plain_kind(form)
                parent_id = parent_id or made.session.session_id
        placer.made.clear()
        span = PlacedSpan(form, meaning, place, kind, parent_id)
        known = Known(place, kind.phase, form.start_ns, 0 if form.is_open else form.end_ns or 1)
        placer.spans.put((form.trace_id, form.span_id), known)
        book = self._books.book(place.run, form.sender)
        book.spans.append(known)
        book.rows.append(span_row(span))
        if form.events:
            book.rows += event_rows(span, EARLIEST_NS, now_ns + LATEST_AHEAD_NS, _event_ids)
        book.facts += session_facts(span)
        if meaning.content and self._keeps_content:
            book.payloads += content_payloads(span)


def admit(form: SpanForm, meaning: Meaning, now_ns: int) -> str | None:
    """Bring a span to one form, whoever sent it; give why it cannot be used.

    Args:
        form: The span; changed.
        meaning: What its attributes say; changed.
        now_ns: Its times may not be long after that.
    """
    return _open_pending(form, meaning) or _check_times(form, meaning, now_ns)


def _open_pending(form: SpanForm, meaning: Meaning) -> str | None:
    """Bring all ways to tell of an open span to one; give why it is none."""
    kind = meaning.place.get("span_type")
    if kind == _LOGFIRE_PENDING:
        # It has an id of its own, and the span that is open for its parent.
        if not form.parent_id:
            return "is pending but names no span"
        form.span_id = form.parent_id
        form.parent_id = _hex_id(meaning.place.get("pending_parent"))
        form.is_open = True
    elif kind == _PENDING or (form.end_ns == 0 and form.start_ns):
        form.is_open = True
    if not form.parent_id and "parent" in meaning.place:
        form.parent_id = _hex_id(meaning.place["parent"])
    return None


def _hex_id(value: object) -> int:
    try:
        return max(int(value, 16), 0) if isinstance(value, str) and len(value) == 16 else 0
    except ValueError:
        return 0


def _check_times(form: SpanForm, meaning: Meaning, now_ns: int) -> str | None:
    """Say what is wrong with the times of a span: one in 1970 would be all that a page shows."""
    if form.start_ns == 0 and form.end_ns:
        form.start_ns = form.end_ns
        meaning.details["clock_suspect"] = True
    times = (form.start_ns,) if form.is_open else (form.start_ns, form.end_ns)
    if not all(times):
        return "has no times"
    if min(times) < EARLIEST_NS:
        return "has times before 2001, so not of a wall clock"
    if max(times) > now_ns + LATEST_AHEAD_NS:
        return "has times more than a day ahead"
    return None
