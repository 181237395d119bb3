"""What was said in one session: messages, tool calls, completions, as far as they were kept."""

import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from rollscope.analysis.messages import Message, split_payload
from rollscope.answers.moves import Moves, moves_of
from rollscope.answers.rows import extent, sessions_with
from rollscope.answers.sessionfinding import find_session
from rollscope.answers.source import Source
from rollscope.errors import CommandError
from rollscope.model.refs import span_hex
from rollscope.store.embedded import RunStore
from rollscope.store.payloads import FoundPayload, PayloadIndex

__all__ = ["PayloadMessage", "Payloads", "session_payloads"]

_SHOWN_CHARS: Final = 4_096
"""Of one message, until it is opened."""
_OPENED_CHARS: Final = 150_000
_MOST_MESSAGES: Final = 2_000
_MOST_CHARS: Final = 1_000_000
"""Of all messages of an answer."""
_OFF: Final = (
    "No text was kept. It is kept where payloads are on: rollscope.init(payloads=True) or "
    "ROLLSCOPE_PAYLOADS=on, and rollscope.payload(name, value) or the OpenAI client hands it over."
)
_NONE_HERE: Final = (
    "The run keeps text, but none was handed over in this session: call "
    "rollscope.payload(name, value) inside of it."
)

_indexes: "weakref.WeakKeyDictionary[RunStore, PayloadIndex]" = weakref.WeakKeyDictionary()


class PayloadMessage(msgspec.Struct, kw_only=True):
    """One message, or any other text that was kept."""

    span_id: int
    index: int
    """Its place among all messages of its span; with `span_id` it names the message."""
    time_ns: int
    name: str
    """What it was kept as."""
    role: str | None
    """Who said it, where it is part of a conversation."""
    text: str
    bytes: int
    """Of the whole text."""
    is_whole: bool
    """Whether all that was kept is shown; if not, it can be opened."""
    cut: bool
    """Whether its end was not kept."""
    is_json: bool
    repeated: int
    """How many messages before it are left out, since the same stand above."""


class Payloads(msgspec.Struct, kw_only=True):
    """What was kept of a session."""

    session_id: int
    captured: bool
    why: str | None
    """Why there is nothing, and what to do about it."""
    messages: list[PayloadMessage]
    of: int
    """How many there are; fewer are given where they are too many or too long."""
    note: str | None
    """What is not shown, and how to get it."""


class _Kept(msgspec.Struct):
    payload: FoundPayload
    index: int
    message: Message
    repeated: int


def session_payloads(source: RunStore, given: str, full: str = "") -> Payloads:
    """Give the messages of a session.

    Args:
        source: The run.
        given: The session, as for `find_session`.
        full: One message to give whole, as `span,index`; the first 150,000 characters of it.

    Raises:
        CommandError: There is no such session or message.
    """
    session_id = find_session(source, given)
    index = _index_of(source)
    kept = list(_kept(index.find(_span_ids(source, session_id)), moves_of(source)))
    if full:
        one = _named(kept, full)
        message = _shown(one, _OPENED_CHARS)
        note = None if message.is_whole else _too_long(source.path, one)
        return _answer(session_id, [message], len(kept), note)
    if not kept:
        why = _NONE_HERE if index.has_any else _OFF
        answer = _answer(session_id, [], 0, None)
        return msgspec.structs.replace(answer, captured=False, why=why)
    messages = list(_within_bounds(kept))
    note = None
    if len(messages) < len(kept):
        note = (
            f"{len(kept) - len(messages):,} more messages are not shown; {_by_command(source.path)}"
        )
    return _answer(session_id, messages, len(kept), note)


def _answer(session_id: int, messages: list[PayloadMessage], of: int, note: str | None) -> Payloads:
    return Payloads(
        session_id=session_id, captured=True, why=None, messages=messages, of=of, note=note
    )


def _index_of(source: RunStore) -> PayloadIndex:
    index = _indexes.get(source)
    if index is None:
        index = _indexes[source] = PayloadIndex(source.path)
    index.refresh()
    return index


def _span_ids(source: Source, session_id: int) -> list[int]:
    """Give the ids of a session and of all its spans."""
    low, high = extent(source, sessions_with(source, [session_id]))
    sql = """
        SELECT span_id FROM spans
        WHERE session_id = $id AND recorded_start_ns BETWEEN $low AND $high"""
    ids = source.query(sql, id=session_id, low=low, high=high)["span_id"].to_pylist()
    return [session_id, *ids]


def _kept(payloads: Sequence[FoundPayload], moves: Moves) -> Iterator[_Kept]:
    """Take payloads apart, and leave out what a conversation only repeats."""
    for payload in payloads:
        payload.time_ns += moves.of(payload.process, payload.time_ns)
    counts: dict[int, int] = {}
    above: list[Message] = []
    for payload in sorted(payloads, key=lambda one: (one.time_ns, one.span_id)):
        messages = split_payload(payload.text, is_cut=payload.cut)
        repeated = _repeated(messages, above)
        first = counts.get(payload.span_id, 0)
        counts[payload.span_id] = first + len(messages)
        for place, message in enumerate(messages[repeated:], repeated):
            is_next = place == repeated
            yield _Kept(payload, first + place, message, repeated if is_next else 0)
        if len(messages) > 1 or messages[0].role is not None:
            above = [*above[:repeated], *messages[repeated:]] if repeated else above + messages


def _repeated(messages: Sequence[Message], above: Sequence[Message]) -> int:
    """Count the messages at the beginning that stand above already; one at least is new."""
    count = 0
    for ours, theirs in zip(messages, above, strict=False):
        if ours != theirs:
            break
        count += 1
    return min(count, len(messages) - 1)


def _named(kept: Sequence[_Kept], full: str) -> _Kept:
    span, _, index = full.partition(",")
    for one in kept:
        if (
            span_hex(one.payload.span_id) == span.strip().lower()
            and str(one.index) == index.strip()
        ):
            return one
    raise CommandError(f"the session has no message {full[:60]!r}; write it as span,index", 2)


def _within_bounds(kept: Sequence[_Kept]) -> Iterator[PayloadMessage]:
    left = _MOST_CHARS
    for one in kept[:_MOST_MESSAGES]:
        message = _shown(one, _SHOWN_CHARS)
        left -= len(message.text)
        if left < 0:
            return
        yield message


def _shown(one: _Kept, most: int) -> PayloadMessage:
    message, payload = one.message, one.payload
    return PayloadMessage(
        span_id=payload.span_id,
        index=one.index,
        time_ns=payload.time_ns,
        name=payload.name,
        role=message.role,
        text=message.text[:most],
        bytes=len(message.text.encode()),
        is_whole=len(message.text) <= most,
        cut=message.is_cut,
        is_json=message.is_json,
        repeated=one.repeated,
    )


def _too_long(run: Path, one: _Kept) -> str:
    size = len(one.message.text)
    return f"the first {_OPENED_CHARS:,} of {size:,} characters; {_by_command(run)}"


def _by_command(run: Path) -> str:
    return f"`rollscope cat {run.name} --payloads` writes everything"
