"""Sending prepared bodies over connections that stay open, at full speed or at a rate."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingesting.bodies import NativeBody

__all__ = ["Request", "native_requests", "otlp_requests", "send_all"]

_CONNECTIONS: Final = 4
_ANSWER_S: Final = 120.0
_HEAD_END: Final = b"\r\n\r\n"


class Request(NamedTuple):
    """A request, ready to be sent."""

    head: bytes
    body: bytes
    sender: int
    """Requests of one sender go over one connection, one after the other."""


def native_requests(run: str, bodies: Sequence[NativeBody]) -> list[Request]:
    """Make requests that send frames to a run."""
    processes = sorted({body.process for body in bodies})
    requests = []
    for process, data in bodies:
        headers = {
            "Content-Type": "application/x-rollscope-frames",
            "Rollscope-Run": run,
            "Rollscope-Process": process.hex(),
        }
        head = _head("/v1/ingest", headers, len(data))
        requests.append(Request(head, data, processes.index(process)))
    return requests


def otlp_requests(bodies: Sequence[bytes]) -> list[Request]:
    """Make requests that send OTLP traces."""
    headers = {"Content-Type": "application/x-protobuf"}
    return [
        Request(_head("/v1/traces", headers, len(body)), body, number)
        for number, body in enumerate(bodies)
    ]


def _head(path: str, headers: dict[str, str], size: int) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {size}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + _HEAD_END


def send_all(port: int, requests: Sequence[Request], bytes_per_s: float | None = None) -> float:
    """Send requests over a few connections and hear every answer; gives the seconds it took.

    Args:
        port: Of loopback.
        requests: What to send; everything but a 200 ends it all.
        bytes_per_s: At most so fast, of bodies; as fast as answers come if not given.
    """
    shares: list[list[tuple[float, Request]]] = [[] for _ in range(_CONNECTIONS)]
    sent = 0
    for request in requests:
        due_s = 0.0 if bytes_per_s is None else sent / bytes_per_s
        shares[request.sender % _CONNECTIONS].append((due_s, request))
        sent += len(request.body)
    faults: list[BaseException] = []
    began_s = time.perf_counter()

    def work(share: list[tuple[float, Request]]) -> None:
        try:
            _send_share(port, share, began_s)
        except BaseException as error:  # told by whoever waits
            faults.append(error)

    threads = [threading.Thread(target=work, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return time.perf_counter() - began_s


def _send_share(port: int, share: list[tuple[float, Request]], began_s: float) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for due_s, request in share:
            time.sleep(max(began_s + due_s - time.perf_counter(), 0.0))
            connection.sendall(request.head)
            connection.sendall(request.body)
            status = _read_answer(connection)
            if status != 200:
                raise RuntimeError(f"a request was answered with {status}")


def _read_answer(connection: socket.socket) -> int:
    """Read one answer, and give its status."""
    answer = b""
    while _HEAD_END not in answer:
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError("the receiver closed the connection")
        answer += piece
    head, _, body = answer.partition(_HEAD_END)
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next((line for line in lines if line.startswith("content-length:")), "x: 0")
    missing = int(length.partition(":")[2]) - len(body)
    while missing > 0:
        missing -= len(connection.recv(65_536))
    return int(lines[0].split()[1])
