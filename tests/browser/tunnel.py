"""A tunnel between browser and server that can be cut, left hanging, and measured."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

__all__ = ["Tunnel"]

_CHUNK = 65_536


class Tunnel:
    """Passes on bytes from a port of its own to a server, as `ssh -L` does."""

    def __init__(self, url: str, prefix: str = "") -> None:
        """Begin to listen.

        Args:
            url: Where the server is.
            prefix: A path to put before its own, which it is not told of.
        """
        there = urlsplit(url)
        assert there.hostname is not None
        assert there.port is not None
        self._server = (there.hostname, there.port)
        self._links: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self.received = 0
        """Bytes that the server has sent through it."""
        self._port = 0
        self.mend()
        self.url = f"http://127.0.0.1:{self._port}{prefix}/"
        self._prefix = prefix.encode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flows.set()
        self.cut()

    def mend(self) -> None:
        """Listen, at the same port as ever."""
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def cut(self) -> None:
        """Refuse whoever comes, and drop whoever is there."""
        # Closing alone would leave the thread in `accept`, and with it the port.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            links, self._links = self._links, set()
        for link in links:
            _close(link)

    def hang(self) -> None:
        """Pass on nothing more, and close nothing: a peer that has left without a word."""
        self._flows.clear()

    def flow(self) -> None:
        """Pass on what comes, and what has come since."""
        self._flows.set()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                near, _ = listening.accept()
                far = socket.create_connection(self._server)
            except OSError:
                return
            with self._lock:
                self._links |= {near, far}
            for source, sink, is_answer in ((near, far, False), (far, near, True)):
                threading.Thread(
                    target=self._pump, args=(source, sink, is_answer), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flows.wait()
                if is_answer:
                    with self._lock:
                        self.received += len(data)
                elif self._prefix:
                    data = data.replace(b"GET " + self._prefix, b"GET ", 1)
                sink.sendall(data)
        for link in (source, sink):
            _close(link)
            with self._lock:
                self._links.discard(link)


def _close(link: socket.socket) -> None:
    with suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    link.close()
