"""A small server that takes frames as Rollscope's does, and misbehaves when it is told to."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rollscope.model.batch import Batch, decode_batch
from rollscope.model.clockline import ClockMap
from rollscope.model.frames import scan_frames
from rollscope.model.records import SpanRecord
from rollscope.model.unpack import batch_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["CERTIFICATE", "TOKEN", "CollectingServer", "Taken"]

TOKEN = "let-me-in-0123456789"  # noqa: S105  (nobody's)


CERTIFICATE = Path(__file__).parent / "tls" / "cert.pem"
"""Of 127.0.0.1 and localhost, signed by itself, good for a hundred years."""


class Taken(NamedTuple):
    """A request whose frames were taken."""

    headers: dict[str, str]
    batches: list[Batch]
    connection: tuple[str, int]


class CollectingServer:
    """Takes frames on a port of loopback; may go away and come back on the same port."""

    def __init__(self, token: str | None = TOKEN, *, is_tls: bool = False) -> None:
        self.token = token
        self._is_tls = is_tls
        self.taken: list[Taken] = []
        self.answer: Callable[[_Handler, bytes], bool] | None = None
        """Called with each request that has a body, answers instead if it gives true."""
        self.let_go = threading.Event()
        """Set, it lets requests go on that hang."""
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.connections: set[tuple[str, int]] = set()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{'https' if self._is_tls else 'http'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the same port as before."""
        server = ThreadingHTTPServer(("127.0.0.1", self.port), _Handler)
        if self._is_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE, CERTIFICATE.with_name("key.pem"))
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        server.daemon_threads = True
        server.block_on_close = False
        server.collecting = self  # type: ignore[attr-defined]
        self.port = server.server_address[1]
        self._server = server
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Listen no more, and close what is open."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            for handler in list(_handlers):
                handler.cut()

    def __enter__(self) -> CollectingServer:
        """Listen for a block."""
        self.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop."""
        self.let_go.set()
        self.stop()

    def batches(self) -> list[Batch]:
        """Give every batch that was taken, in the order of its coming, and each one once."""
        known: dict[tuple[bytes, int], Batch] = {}
        for taken in list(self.taken):
            for batch in taken.batches:
                known.setdefault((batch.process, batch.number), batch)
        return list(known.values())

    def names(self) -> list[str]:
        """Give the names of the spans that were taken and have ended."""
        records = [item for batch in self.batches() for item in batch_records(batch, ClockMap())]
        spans = [item for item in records if isinstance(item, SpanRecord)]
        return [span.name for span in spans if span.end_ns is not None]


_handlers: set[_Handler] = set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def setup(self) -> None:
        super().setup()
        _handlers.add(self)

    def finish(self) -> None:
        _handlers.discard(self)
        super().finish()

    def cut(self) -> None:
        """Close the connection at once."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *args: object) -> None:
        pass

    @property
    def collecting(self) -> CollectingServer:
        found: CollectingServer = self.server.collecting  # type: ignore[attr-defined]
        return found

    def do_POST(self) -> None:
        received_ns = time.time_ns()
        ours = self.collecting
        ours.connections.add(self.client_address)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if ours.token is not None and self.headers["Authorization"] != f"Bearer {ours.token}":
            self.respond(401, {"error": "wrong token"})
            return
        if ours.answer is not None and body and ours.answer(self, body):
            return
        batches = self.read(body)
        ours.taken.append(Taken(dict(self.headers), batches, self.client_address))
        said = {"frames": len(batches), "doubled": 0, "received_ns": received_ns}
        self.respond(200, {**said, "sent_ns": time.time_ns()})

    def read(self, body: bytes) -> list[Batch]:
        """Take a body apart; it must hold whole frames and nothing else."""
        if self.headers["Content-Encoding"] == "deflate":
            body = zlib.decompress(body)
        scan = scan_frames(body, final=True)
        assert scan.damaged == 0
        return [decode_batch(frame) for frame in scan.bodies]

    def respond(self, status: int, said: dict[str, Any], **headers: str) -> bool:
        """Answer in JSON."""
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        return True
