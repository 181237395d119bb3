"""An HTTP server that answers as it is told to, byte by byte if need be, and breaks off at will."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Connection:
    """One request, while it is answered."""

    request: Request
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: Server

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()


Answer = Callable[[Connection], Awaitable[None]]


@dataclass
class Server:
    """Answers requests in turn; the last answer is given again and again."""

    answers: list[Answer]
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    client_left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client closes a connection that hangs."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                self.running += 1
                self.most_running = max(self.most_running, self.running)
                await answer(Connection(request, reader, writer, self))
                self.running -= 1
                if writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[Server]:
    """Run a server on a port of its own."""
    server = Server(list(answers))
    handlers: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.add(task)
        await server.serve(reader, writer)

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    host, port = listener.sockets[0].getsockname()
    server.url = f"http://{host}:{port}/v1"
    try:
        yield server
    finally:
        listener.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines if line)
    headers = {name.lower(): value for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(first.split()[1], headers, json.loads(body))


def raw(data: bytes) -> Answer:
    """Send bytes and close the connection."""

    async def answer(connection: Connection) -> None:
        await connection.send(data)
        connection.writer.close()

    return answer


def reply(
    body: Any, status: int = 200, content_type: str = "application/json", **headers: str
) -> Answer:
    """Answer with JSON, or with bytes as they are."""

    async def answer(connection: Connection) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} Whatever\r\nContent-Type: {content_type}\r\n{more}"
        await connection.send(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    return answer


def stream(events: Sequence[Any], *, step: int = 0, ending: bytes = b"0\r\n\r\n") -> Answer:
    """Stream events, in pieces of `step` bytes if given; without an ending, break off."""

    async def answer(connection: Connection) -> None:
        data = b"".join(
            b"data: " + (event if isinstance(event, bytes) else _compact(event)) + b"\n\n"
            for event in events
        )
        step_bytes = step or len(data) or 1
        pieces = [data[at : at + step_bytes] for at in range(0, len(data), step_bytes)]
        await connection.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            *(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces),
            ending,
        )
        if not ending:
            connection.writer.close()

    return answer


def hang(first: bytes = b"") -> Answer:
    """Send something, then nothing until the client leaves."""

    async def answer(connection: Connection) -> None:
        await connection.send(first)
        while await connection.reader.read(1024):
            pass
        connection.server.client_left.set()
        connection.writer.close()

    return answer


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
