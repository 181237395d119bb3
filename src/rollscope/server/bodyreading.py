"""Reading what programs send: bounded in size, in time, and all of them together in memory.

Bytes are gathered by the event loop as they come, each counted against what the collector may hold.
Inflating them is work, and left to whoever takes the body in hand, in the collecting thread.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.requests import Request
from starlette.types import Message, Receive

from rollscope.collect.collector import Collector
from rollscope.errors import CollectorBusy
from rollscope.model.frames import HEADER_BYTES, MAX_BODY_BYTES
from rollscope.server.failures import Failure

__all__ = ["MOST_BYTES", "RawBody", "discard", "reading"]

MOST_BYTES: Final = MAX_BODY_BYTES + HEADER_BYTES
"""The largest body, packed or not: one frame of the largest size."""
_SILENCE_S: Final = 30.0
_WHOLE_S: Final = 300.0
_DISCARD_BYTES: Final = 4 * 1024 * 1024
_DISCARD_S: Final = 2.0
_WBITS: Final = {"": None, "identity": None, "deflate": zlib.MAX_WBITS, "gzip": 16 + zlib.MAX_WBITS}


class RawBody:
    """A body as it came."""

    def __init__(self, encoding: str) -> None:
        self._wbits = _WBITS[encoding]
        self.pieces: list[bytes] = []

    def inflate(self) -> bytes:
        """Give what was meant; costs at most as much memory as the largest body.

        Raises:
            Failure: It is damaged, or too large.
        """
        data = b"".join(self.pieces)
        self.pieces.clear()
        if self._wbits is None:
            return data
        inflater = zlib.decompressobj(self._wbits)
        try:
            plain = inflater.decompress(data, MOST_BYTES + 1)
        except zlib.error as error:
            raise Failure(400, f"The body cannot be unpacked: {error}.", _AS_IS) from None
        if len(plain) > MOST_BYTES:
            raise _too_large()
        if not inflater.eof:
            raise Failure(400, "The packed body ends too early.", _AS_IS)
        if inflater.unused_data:
            raise Failure(400, "Something follows the packed body.", _AS_IS)
        return plain


_AS_IS: Final = "Do not send it again as it is."


@asynccontextmanager
async def reading(request: Request, collector: Collector) -> AsyncIterator[RawBody]:
    """Read a body, and hold room for it while the block runs.

    Raises:
        Failure: It is packed in an unknown way, too large, or does not come.
        CollectorBusy: Too much is in memory already.
    """
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in _WBITS:
        await discard(request.receive)
        raise Failure(
            415, f"The Content-Encoding {encoding[:40]!r} is unknown.", "Use gzip, deflate or none."
        )
    if _announced(request) > MOST_BYTES:
        await discard(request.receive)
        raise _too_large()
    body = RawBody(encoding)
    with collector.reserve() as room:
        size = 0
        has_more = True
        try:
            async for message in _messages(request.receive):
                has_more = message.get("more_body", False)
                piece = message.get("body", b"")
                size += len(piece)
                if size > MOST_BYTES:
                    raise _too_large()
                room.add(len(piece))
                body.pieces.append(piece)
        except (Failure, CollectorBusy):
            body.pieces.clear()
            if has_more:
                await discard(request.receive)
            raise
        yield body


async def discard(receive: Receive) -> None:
    """Read the rest of a body and throw it away, if it is not long.

    Whoever is still sending when the connection is closed never sees the answer.
    """
    left = _DISCARD_BYTES
    try:
        async with asyncio.timeout(_DISCARD_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


async def _messages(receive: Receive) -> AsyncIterator[Message]:
    """Give the pieces of a body as they come, but wait for none too long."""
    now_s = asyncio.get_running_loop().time
    last_s = now_s() + _WHOLE_S
    has_more = True
    while has_more:
        try:
            async with asyncio.timeout_at(min(now_s() + _SILENCE_S, last_s)):
                message = await receive()
        except TimeoutError:
            close = {"Connection": "close"}
            late = Failure(408, "The body did not come in time.", "Send it again.", headers=close)
            raise late from None
        if message["type"] != "http.request":
            raise Failure(400, "The sender went away.")
        has_more = message.get("more_body", False)
        yield message


def _announced(request: Request) -> int:
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _too_large() -> Failure:
    return Failure(
        413, f"The body has more than {MOST_BYTES >> 20} MiB.", "Send it in smaller pieces."
    )
