"""Requests to a server: connections, time limits, further tries, bounded answers.

What is asked and what the answer means is left to the callers.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from rollscope.errors import MissingExtra
from rollscope.rollout.client.errors import (
    EndpointError,
    EndpointTimeout,
    EndpointUnavailable,
    MalformedAnswer,
    RequestRefused,
    excerpt,
    server_message,
)
from rollscope.rollout.client.reply import Reply, TimeLimits
from rollscope.rollout.client.retrying import RetryRule, read_retry_after

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import aiohttp

T = TypeVar("T")

__all__ = ["CallFacts", "Transport"]

_MOST_ERROR_BYTES: Final = 64 * 1024
_TOO_MANY: Final = 429


class CallFacts(msgspec.Struct):
    """How a call went so far, for its span and its errors."""

    tries: int = 0
    status: int | None = None
    """Of the last try that was answered."""

    def known(self) -> dict[str, int]:
        """Give what is known, by name."""
        status = {} if self.status is None else {"status": self.status}
        return {"tries": self.tries, **status}


class _TryAgain(Exception):
    """A try failed in a way that another may not."""

    def __init__(self, error: EndpointError, retry_after_s: float | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.retry_after_s = retry_after_s


class Transport:
    """A way to one server, shared by any number of calls on one event loop."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str] | None,
        limits: TimeLimits,
        retry: RetryRule,
        max_connections: int,
        max_body_bytes: int,
        seed: int | None = None,
    ) -> None:
        self.base_url = _checked_url(base_url)
        self._headers = {"Accept-Encoding": "identity", **(headers or {})}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._limits = limits
        self._retry = retry
        self._max_body_bytes = max_body_bytes
        self._max_connections = max_connections
        self._places = asyncio.Semaphore(max_connections)
        self._rng = random.Random(seed)  # noqa: S311  (spreads retries; nothing secret)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def fetch(
        self,
        path: str,
        body: Mapping[str, Any],
        facts: CallFacts,
        headers: Mapping[str, str],
        timeout_s: float | None = None,
    ) -> Any:  # noqa: ANN401  (JSON)
        """Ask, and give the whole answer, decoded.

        Raises:
            EndpointError: There is no answer that could be read.
        """
        data = msgspec.json.encode(body)

        async def once() -> bytes:
            reply = await self._open(path, data, facts, headers, timeout_s)
            try:
                return await self._reading(reply, reply.read(self._max_body_bytes))
            finally:
                reply.close()

        answer = await self._trying(facts, once)
        try:
            return msgspec.json.decode(answer)
        except ValueError as error:
            raise MalformedAnswer(
                f"{path} did not answer with JSON: {excerpt(answer)}",
                status=facts.status,
                tries=facts.tries,
            ) from error

    async def open_stream(
        self,
        path: str,
        body: Mapping[str, Any],
        facts: CallFacts,
        headers: Mapping[str, str],
        timeout_s: float | None = None,
    ) -> Reply:
        """Ask, and give the answer as it comes; tried again only until it has begun.

        Raises:
            EndpointError: There is no answer, or it is not a stream.
        """
        data = msgspec.json.encode(body)

        async def once() -> Reply:
            reply = await self._open(path, data, facts, headers, timeout_s)
            if reply.content_type == "text/event-stream":
                return reply
            try:
                start = await self._reading(reply, reply.read(_MOST_ERROR_BYTES, is_cut=True))
            finally:
                reply.close()
            raise MalformedAnswer(
                f"{path} was asked for a stream and answered with {reply.content_type}: "
                f"{server_message(start)}",
                status=facts.status,
            )

        return await self._trying(facts, once)

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _trying(self, facts: CallFacts, once: Callable[[], Awaitable[T]]) -> T:
        """Try until it works, the tries are spent, or trying again is no use."""
        while True:
            try:
                return await once()
            except _TryAgain as failure:
                if facts.tries > self._retry.max_retries:
                    failure.error.tries = facts.tries
                    raise failure.error from failure.__cause__
                wait_s = self._retry.wait_s(facts.tries, failure.retry_after_s, self._rng)
            except EndpointError as error:
                error.tries = facts.tries
                raise
            await asyncio.sleep(wait_s)

    async def _open(
        self,
        path: str,
        data: bytes,
        facts: CallFacts,
        headers: Mapping[str, str],
        timeout_s: float | None,
    ) -> Reply:
        """Make one try; give the reply if its status is good."""
        facts.tries += 1
        session = self._connected()
        await self._places.acquire()
        reply = Reply(self._limits, timeout_s, self._places.release)
        try:
            await self._reading(reply, reply.start(session, self.base_url + path, data, headers))
            facts.status = reply.status
            if reply.status != 200:
                await self._raise_status(path, reply)
        except BaseException:
            reply.close()
            raise
        return reply

    async def _raise_status(self, path: str, reply: Reply) -> None:
        body = await self._reading(reply, reply.read(_MOST_ERROR_BYTES, is_cut=True))
        message = f"{path} answered {reply.status}: {server_message(body)}"
        if reply.status == _TOO_MANY or reply.status >= 500:
            error = EndpointUnavailable(message, status=reply.status)
            raise _TryAgain(error, read_retry_after(reply.header("Retry-After")))
        raise RequestRefused(message, status=reply.status)

    async def _reading(self, reply: Reply, work: Awaitable[T]) -> T:
        """Wait for a reply, with the errors of the HTTP library turned into ours."""
        import aiohttp

        try:
            return await work
        except EndpointError:
            raise
        except aiohttp.ConnectionTimeoutError as error:
            slow = f"no connection to {self.base_url} within {self._limits.connect_s} s"
            raise _TryAgain(EndpointTimeout(slow)) from error
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            lost = EndpointUnavailable(f"{self.base_url}: {error!r}", status=reply.known_status)
            raise _TryAgain(lost) from error
        except aiohttp.ClientError as error:
            raise MalformedAnswer(f"{self.base_url} does not speak HTTP: {error!r}") from error

    def _connected(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is not None and loop is self._loop:
            return self._session
        if self._session is not None and self._loop is not None and not self._loop.is_closed():
            raise RuntimeError("a client serves one event loop; make another for this one")
        aiohttp = _import_aiohttp()
        self._loop = loop
        self._places = asyncio.Semaphore(self._max_connections)
        self._session = aiohttp.ClientSession(
            # Connections are counted by us, so that waiting for one is not taken for a slow server.
            connector=aiohttp.TCPConnector(limit=0),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s),
        )
        return self._session


def _import_aiohttp() -> Any:  # noqa: ANN401  (a module)
    try:
        import aiohttp
    except ImportError as error:
        raise MissingExtra(
            "talking to a server needs aiohttp; install it with: pip install 'rollscope[rollout]'"
        ) from error
    return aiohttp


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        raise ValueError(f'base_url must look like "http://host:port/v1", not {url!r}')
    return url.rstrip("/") + ("" if parts.path.strip("/") else "/v1")
