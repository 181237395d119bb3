"""One answer of a server while it comes in: its time limits, its size, and its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import msgspec

from rollscope.rollout.client.errors import AnswerTooLarge, EndpointTimeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import aiohttp

T = TypeVar("T")

__all__ = ["Reply", "TimeLimits"]

_READ_BYTES = 64 * 1024


class TimeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a server may take, in one try; None for as long as it likes."""

    connect_s: float | None = 10.0
    first_byte_s: float | None = None
    """To the first byte of an answer; without a stream that is most of the time that it takes."""
    total_s: float | None = 3600.0


class Reply:
    """An answer that is asked for, and read as it comes. Must be closed."""

    def __init__(
        self, limits: TimeLimits, total_s: float | None, release: Callable[[], None]
    ) -> None:
        """Start the clock.

        Args:
            limits: The usual limits.
            total_s: Another limit on the whole.
            release: Called once, when closed.
        """
        self._total_s = limits.total_s if total_s is None else total_s
        self._first_byte_s = limits.first_byte_s
        self._release: Callable[[], None] | None = release
        self._response: aiohttp.ClientResponse | None = None
        self._started_at = asyncio.get_running_loop().time()
        self._has_begun = False

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._live().status

    @property
    def known_status(self) -> int | None:
        """The HTTP status; None before the server has answered."""
        return None if self._response is None else self._response.status

    @property
    def content_type(self) -> str:
        """What the server says that it sends."""
        return self._live().content_type

    def header(self, name: str) -> str | None:
        """Give a header of the answer."""
        return self._live().headers.get(name)

    async def start(
        self, session: aiohttp.ClientSession, url: str, data: bytes, headers: Mapping[str, str]
    ) -> None:
        """Send the request and wait for the head of the answer."""
        sending = session.post(
            url,
            data=data,
            headers={"Content-Type": "application/json", **headers},
            allow_redirects=False,  # the key is for this server and no other
        )
        self._response = await self._in_time(sending)

    async def read(self, max_bytes: int, *, is_cut: bool = False) -> bytes:
        """Give the whole body.

        Args:
            max_bytes: More are an error.
            is_cut: More are left out instead.

        Raises:
            AnswerTooLarge: There are more bytes.
            EndpointTimeout: It takes too long.
        """
        body = bytearray()
        while chunk := await self.read_some():
            body += chunk
            if len(body) > max_bytes:
                if is_cut:
                    break
                raise AnswerTooLarge(
                    f"the answer has more than {max_bytes} bytes", status=self.status
                )
        return bytes(body[:max_bytes])

    async def read_some(self) -> bytes:
        """Give the next bytes as they come; none at the end.

        Raises:
            EndpointTimeout: It takes too long.
        """
        chunk = await self._in_time(self._live().content.read(_READ_BYTES))
        self._has_begun = True
        return chunk

    async def _in_time(self, work: Awaitable[T]) -> T:
        limits = [(self._total_s, "the whole answer")]
        if not self._has_begun:
            limits.append((self._first_byte_s, "its first byte"))
        limit_s, what = min(
            ((limit, what) for limit, what in limits if limit is not None),
            default=(None, ""),
        )
        until = None if limit_s is None else self._started_at + limit_s
        deadline = asyncio.timeout_at(until)
        try:
            async with deadline:
                return await work
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise EndpointTimeout(
                f"the server took more than {limit_s} s for {what}", status=self.known_status
            ) from error

    def _live(self) -> aiohttp.ClientResponse:
        if self._response is None:
            raise RuntimeError("the request was not sent yet")
        return self._response

    def close(self) -> None:
        """Let go of the connection; if the answer was not read to its end, the server notices."""
        release, self._release = self._release, None
        if release is None:
            return
        if self._response is not None and not self._response.content.at_eof():
            self._response.close()
        release()
