"""The HTTP sink: frames as bodies of `POST /v1/ingest`, over one connection that is kept open.

Beside the frames it tells the server how the clocks of both stand to each other. For that it makes
a tiny request now and then, since the time that a large body is under way says little.
"""

from __future__ import annotations

import http.client
import os
import socket
import time
import zlib
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from rollscope.instrument.sinks.collector import Busy, CollectorSink, Delivery, Refused, TooLarge
from rollscope.instrument.sinks.httpaddress import connect_http, is_same_machine, parse_address
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["HttpSink"]

_PATH: Final = "/v1/ingest"
_CONTENT_TYPE: Final = "application/x-rollscope-frames"
_READ_TIMEOUT_S: Final = 30.0
_MOST_ANSWER_BYTES: Final = 64 * 1024
_CLOCK_EVERY_S: Final = 5.0
_LATER_S: Final = 30.0
"""Between tries while the server answers, but wants to have nothing to do with us."""
_LONGEST_RETRY_S: Final = 60.0
_BUSY_STATUSES: Final = frozenset({429, 503, 507})

_abandoned: list[http.client.HTTPConnection] = []
"""Connections of a parent, in its child: kept, since their locks may be held for good."""


class _Taken(msgspec.Struct):
    """What the server answers when it has taken frames."""

    received_ns: int
    sent_ns: int


class _Failure(msgspec.Struct):
    """What the server answers when it has not."""

    error: str = ""
    advice: str = ""


class _Answer(NamedTuple):
    """An answer, whatever it is."""

    status: int
    body: bytes
    retry_after: str | None
    sent_mono_ns: int
    came_mono_ns: int


class HttpSink(CollectorSink):
    """Sends frames to `rollscope view` on another machine.

    Args:
        address: `http://HOST:PORT` or `https://…`; may have the token in it, as `view` prints it.
        token: What the server knows its own by.
        ca_file: Certificates to trust instead of the system's.
        spool_dir: As for `CollectorSink`.
        spool_mb: As for `CollectorSink`.
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca_file: str | None = None,
        spool_dir: str | None = None,
        spool_mb: float = 1024.0,
    ) -> None:
        self._place = parse_address(address)
        super().__init__(self._place.shown, spool_dir=spool_dir, spool_mb=spool_mb)
        self._token = token or self._place.token
        self._ca_file = ca_file
        self._connection: http.client.HTTPConnection | None = None
        self._prefix = ""
        self._is_near = False
        self._is_used = False
        self._exchange = ""
        """The clock readings of the last finished exchange, as the server wants them."""
        self._exchange_due_s = 0.0

    def connect(self) -> None:
        """Connect to the server."""
        self.disconnect()
        connection, self._prefix = connect_http(self._place, self._ca_file)
        connection.sock.settimeout(_READ_TIMEOUT_S)
        self._is_near = is_same_machine(connection)
        self._is_used = False
        self._exchange, self._exchange_due_s = "", 0.0
        self._connection = connection

    def disconnect(self) -> None:
        """Close the connection; a request that is under way in another thread fails."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if (sock := connection.sock) is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # closing alone wakes nobody
        connection.close()

    def abandon(self) -> None:
        """Let go of the parent's connection without a word on it."""
        connection, self._connection = self._connection, None
        self._exchange = ""
        if connection is not None:
            _abandoned.append(connection)
            if connection.sock is not None:
                with suppress(OSError):
                    os.close(connection.sock.detach())

    def deliver(self, delivery: Delivery) -> None:
        """Post frames; see `CollectorSink`."""
        if delivery.process == self.process and time.monotonic() >= self._exchange_due_s:
            self._compare_clocks(delivery)
        self._check(self._send(delivery, delivery.data))

    def _compare_clocks(self, delivery: Delivery) -> None:
        answer = self._send(delivery, b"")
        taken = self._check(answer)
        self._exchange = (
            f" {answer.sent_mono_ns} {taken.received_ns} {taken.sent_ns} {answer.came_mono_ns}"
        )
        self._exchange_due_s = time.monotonic() + _CLOCK_EVERY_S

    def _send(self, delivery: Delivery, data: bytes) -> _Answer:
        """Post a body; once more over a new connection if the server has closed the old one."""
        if self._connection is not None and self._connection.sock is None:
            self.connect()  # the server has closed the old one, with notice
        is_small = self._is_near or not data
        body = data if is_small else zlib.compress(data, 1)
        headers = self._headers(delivery)
        if not is_small:
            headers["Content-Encoding"] = "deflate"
        try:
            return self._post(body, headers, is_own=delivery.process == self.process)
        except (http.client.BadStatusLine, ConnectionError, BrokenPipeError):
            # Also RemoteDisconnected: a connection that was idle may be closed at any time.
            if not self._is_used or self._connection is None:
                raise
            self.connect()
            return self._post(body, headers, is_own=delivery.process == self.process)

    def _headers(self, delivery: Delivery) -> dict[str, str]:
        headers = {
            "Content-Type": _CONTENT_TYPE,
            "Rollscope-Run": delivery.run,
            "Rollscope-Process": delivery.process.hex(),
        }
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if delivery.tags:
            headers["Rollscope-Tags"] = quote(msgspec.json.encode(delivery.tags))
        return headers

    def _post(self, body: bytes, headers: dict[str, str], *, is_own: bool) -> _Answer:
        connection = self._connection
        if connection is None:
            raise ConnectionError("not connected")
        connection.putrequest("POST", f"{self._prefix}{_PATH}", skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        sent_ns = time.perf_counter_ns()  # as late as it can be, since it goes along
        if is_own:
            connection.putheader("Rollscope-Clock", f"{sent_ns}{self._exchange}")
        response, came_ns = self._respond(connection, body)
        answer = response.read(_MOST_ANSWER_BYTES)
        if response.isclosed():
            self._is_used = True
        else:  # a longer answer than any of ours
            connection.close()
        return _Answer(response.status, answer, response.getheader("Retry-After"), sent_ns, came_ns)

    def _respond(
        self, connection: http.client.HTTPConnection, body: bytes
    ) -> tuple[http.client.HTTPResponse, int]:
        """Send a request; give the head of the answer, and when its first byte was there."""
        try:
            connection.endheaders(body)
        except (BrokenPipeError, ConnectionResetError):
            # A server that wants no more of the body has said why, perhaps.
            with suppress(OSError, http.client.HTTPException):
                return connection.getresponse(), 0
            raise
        if self._place.scheme == "http" and connection.sock is not None:
            connection.sock.recv(1, socket.MSG_PEEK)
            came_ns = time.perf_counter_ns()  # before anything is parsed
            return connection.getresponse(), came_ns
        response = connection.getresponse()
        return response, time.perf_counter_ns()

    @staticmethod
    def _check(answer: _Answer) -> _Taken:
        """Make of an answer what it means for the frames."""
        status = answer.status
        if status == 200:
            try:
                return msgspec.json.decode(answer.body, type=_Taken)
            except UNDECODABLE:
                raise Busy(_LATER_S, "what answers there is no Rollscope") from None
        said = _sentence(answer.body)
        if status == 400:
            raise Refused(said or "no reason given")
        if status == 413:
            raise TooLarge
        if status in _BUSY_STATUSES:
            raise Busy(_seconds(answer.retry_after), said, may_pass=True)
        if status == 401:
            raise Busy(_LATER_S, "the token is wrong or missing (setting token)")
        if status < 500:
            raise Busy(_LATER_S, said or f"it answers with status {status}")
        raise ConnectionError(f"the server answers with status {status}")


def _sentence(body: bytes) -> str:
    try:
        failure = msgspec.json.decode(body, type=_Failure)
    except UNDECODABLE:
        return ""
    return "; ".join(part for part in (failure.error, failure.advice) if part)[:500]


def _seconds(retry_after: str | None) -> float:
    try:
        seconds = float(retry_after or "1")
    except ValueError:  # a date, say
        return 1.0
    return min(max(seconds, 0.1), _LONGEST_RETRY_S) if seconds == seconds else 1.0
