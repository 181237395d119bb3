"""Asking a target for its metrics, over a connection that stays open.

Whoever answers may be anybody, so everything is bounded: headers, body, time, and no redirect is
followed. The event loop reads, so a hundred targets that are slow cost no thread.
"""

import asyncio
import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import h11

from rollscope._version import __version__
from rollscope.collect.addresses import TargetAddress

__all__ = ["Asker", "TargetTrouble"]

_CHUNK_BYTES: Final = 64 * 1024
_HEAD_BYTES: Final = 32 * 1024
_ACCEPT: Final = (
    "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.9,*/*;q=0.1"
)


class TargetTrouble(Exception):
    """A target did not give its metrics; the text says why."""


class Asker:
    """One target's connection; for the event loop."""

    def __init__(self, address: TargetAddress) -> None:
        self._address = address
        self._secure = ssl.create_default_context() if address.scheme == "https" else None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._http = h11.Connection(h11.CLIENT)

    async def ask(self, take: Callable[[bytes], bool], timeout_s: float) -> None:
        """Ask once, and give the body away piece by piece until it is over or no more is taken.

        Raises:
            TargetTrouble: It did not answer, or not with metrics.
        """
        try:
            async with asyncio.timeout(timeout_s):
                try:
                    await self._exchange(take)
                except _ConnectionGone:  # it had let go of a connection that was idle
                    await self._exchange(take)
        except TimeoutError:
            self.close()
            raise TargetTrouble(f"did not answer within {timeout_s:.3g} s") from None
        except OSError as error:
            self.close()
            raise TargetTrouble(f"cannot be reached: {_why(error)}") from error
        except (h11.ProtocolError, _ConnectionGone) as error:
            self.close()
            raise TargetTrouble(f"does not speak HTTP: {str(error)[:200]}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            with suppress(RuntimeError):  # the loop is gone
                self._streams[1].transport.abort()
            self._streams = None

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                self._address.host, self._address.port, ssl=self._secure, limit=_CHUNK_BYTES
            )
            self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        return self._streams

    async def _exchange(self, take: Callable[[bytes], bool]) -> None:
        is_reused = self._streams is not None
        reader, writer = await self._connect()
        request = h11.Request(
            method="GET",
            target=self._address.path,
            headers=[
                ("Host", self._address.instance),
                ("User-Agent", f"rollscope/{__version__}"),
                ("Accept", _ACCEPT),
                ("Accept-Encoding", "identity"),
            ],
        )
        writer.write(self._http.send(request) + self._http.send(h11.EndOfMessage()))
        try:
            first = await reader.read(_CHUNK_BYTES)
        except ConnectionError:
            first = b""
        if not first:
            self.close()
            raise _ConnectionGone if is_reused else TargetTrouble("hangs up without an answer")
        self._http.receive_data(first)
        await self._read(reader, take)

    async def _read(self, reader: asyncio.StreamReader, take: Callable[[bytes], bool]) -> None:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await reader.read(_CHUNK_BYTES))
            elif isinstance(event, h11.Response):
                _check(event)
            elif isinstance(event, h11.Data):
                if not take(bytes(event.data)):
                    self.close()
                    return
            elif isinstance(event, h11.EndOfMessage):
                self._finish()
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise TargetTrouble("hangs up amid its answer")

    def _finish(self) -> None:
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self.close()


def _why(error: OSError) -> str:
    # asyncio puts the address in place of the reason, which is known by its number alone.
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno).lower()
    return error.strerror or str(error) or type(error).__name__


class _ConnectionGone(Exception):
    pass


def _check(response: h11.Response) -> None:
    headers = dict(response.headers)
    if response.status_code != 200:
        raise TargetTrouble(f"answers {response.status_code} instead of 200")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise TargetTrouble("answers compressed, which was not asked for")
