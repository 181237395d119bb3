"""A streamed answer, as its reader sees it: pieces one by one, or joined."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import msgspec

from rollscope.rollout.client.errors import (
    AnswerTooLarge,
    EndpointError,
    EndpointUnavailable,
    MalformedAnswer,
    TornStream,
    excerpt,
    server_message,
)
from rollscope.rollout.client.events import DONE, EventReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rollscope.rollout.client.reply import Reply

__all__ = ["AnswerStream", "Joiner"]

C = TypeVar("C")
J = TypeVar("J")
Taken = TypeVar("Taken", contravariant=True)
Made = TypeVar("Made", covariant=True)


class Joiner(Protocol[Taken, Made]):
    """Makes an answer of pieces."""

    def add(self, chunk: Taken, /) -> None:
        """Add the next piece."""

    @property
    def has_begun(self) -> bool:
        """Whether anything was said yet."""

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended; None as long as it has not."""

    def joined(self) -> Made:
        """Give the answer."""


class AnswerStream(Generic[C, J]):
    """The pieces of an answer. Iterate to the end, or close: the server stops generating then.

    async for chunk in stream:
        ...
    """

    def __init__(
        self,
        reply: Reply,
        read_chunk: Callable[[object], C],
        joiner: Joiner[C, J],
        on_begin: Callable[[], None],
        on_end: Callable[[J | None, BaseException | None], None],
        max_bytes: int,
    ) -> None:
        """Take a reply that has begun.

        Args:
            reply: Where the pieces come from; is closed at the end.
            read_chunk: Reads a piece, decoded from JSON.
            joiner: Gets each piece.
            on_begin: Called once, when something was said.
            on_end: Called once, with the whole answer, or with what ended it; with neither if the
                reader closed the stream.
            max_bytes: How much may come in all.
        """
        self._reply = reply
        self._read_chunk = read_chunk
        self._joiner = joiner
        self._on_begin: Callable[[], None] | None = on_begin
        self._on_end = on_end
        self._left_bytes = max_bytes
        self._events = EventReader()
        self._ready: deque[bytes] = deque()
        self._is_read = False
        self._is_ended = False
        self._start = b""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> C:
        if self._is_ended:
            raise StopAsyncIteration
        try:
            chunk = await self._next()
        except BaseException as error:
            self._end(None, error)
            raise
        if chunk is None:
            self._end(self._joiner.joined(), None)
            raise StopAsyncIteration
        return chunk

    async def answer(self) -> J:
        """Read to the end and give the whole answer."""
        async for _ in self:
            pass
        return self._joiner.joined()

    async def close(self) -> None:
        """End it here."""
        self._end(None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(None, error)

    async def _next(self) -> C | None:
        while not self._ready and not self._is_read:
            await self._read_more()
        if not self._ready or self._ready[0] == DONE:
            if self._joiner.finish_reason is None:
                raise TornStream(f"the stream ended before the answer: {excerpt(self._start)}")
            return None
        return self._decode(self._ready.popleft())

    async def _read_more(self) -> None:
        try:
            data = await self._reply.read_some()
        except EndpointError:
            raise
        except Exception as error:  # the HTTP library's, of many kinds
            raise TornStream(f"the stream broke off: {error!r}") from error
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise AnswerTooLarge("the stream has more bytes than are allowed")
        self._start = self._start or data
        self._is_read = not data
        self._ready += self._events.feed(data) if data else self._events.finish()

    def _decode(self, event: bytes) -> C:
        try:
            value: Any = msgspec.json.decode(event)
            if isinstance(value, dict) and value.get("error"):
                raise EndpointUnavailable(f"the server gave up: {server_message(event)}")
            chunk = self._read_chunk(value)
        except ValueError as error:
            raise MalformedAnswer(f"a piece of the stream: {excerpt(event)}") from error
        self._joiner.add(chunk)
        if self._on_begin is not None and self._joiner.has_begun:
            self._on_begin()
            self._on_begin = None
        return chunk

    def _end(self, answer: J | None, error: BaseException | None) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        self._reply.close()
        self._on_end(answer, error)
