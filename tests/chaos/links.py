"""The way between writers and their server, which can be cut and mended.

With the rights for it, writers live in a network namespace of their own, behind a pair of virtual
interfaces whose far end is taken down. Without, everything goes through a proxy that stops passing
bytes, and resets every connection when it goes on.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading
from contextlib import suppress
from typing import Final, Protocol

__all__ = ["Link", "NamespaceLink", "ProxyLink", "free_port", "make_link"]

_LOOPBACK: Final = "127.0.0.1"
_PIECE: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)
"""To close without a farewell: linger on, for no time."""


class Link(Protocol):
    """A way to a server."""

    server_host: str
    """Where the server is to listen."""
    server_port: int
    address: str
    """Where writers find it."""
    prefix: list[str]
    """What a writer is started with."""

    def cut(self) -> None:
        """Let nothing through."""

    def mend(self) -> None:
        """Let everything through."""

    def close(self) -> None:
        """Take the way down."""


def free_port(host: str = _LOOPBACK) -> int:
    """Give a port that nobody listens on."""
    with socket.create_server((host, 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def make_link(kind: str) -> Link:
    """Make a link: `namespace`, `proxy`, or `auto` for the first of them that can be had."""
    if kind != "proxy":
        try:
            return NamespaceLink()
        except (OSError, subprocess.CalledProcessError):
            if kind == "namespace":
                raise
    return ProxyLink()


class NamespaceLink:
    """A pair of virtual interfaces between this network and one that the writers are alone in."""

    def __init__(self) -> None:
        pid = os.getpid()
        self._name = f"rollscope-{pid}"
        self._near, self._far = f"rs{pid}n", f"rs{pid}f"
        net = f"10.231.{pid % 250}"
        self.server_host = f"{net}.1"
        self.prefix = ["ip", "netns", "exec", self._name]
        _ip("netns", "add", self._name)
        try:
            _ip("link", "add", self._near, "type", "veth", "peer", "name", self._far)
            _ip("link", "set", self._far, "netns", self._name)
            _ip("addr", "add", f"{net}.1/30", "dev", self._near)
            _ip("link", "set", self._near, "up")
            self._inside("addr", "add", f"{net}.2/30", "dev", self._far)
            self._inside("link", "set", "lo", "up")
            self.mend()
            self.server_port = free_port(self.server_host)
        except BaseException:
            self.close()
            raise
        self.address = f"http://{self.server_host}:{self.server_port}"

    def _inside(self, *words: str) -> None:
        _ip("-n", self._name, *words)

    def cut(self) -> None:
        """Take the writers' interface down."""
        self._inside("link", "set", self._far, "down")

    def mend(self) -> None:
        """Take it up again."""
        self._inside("link", "set", self._far, "up")

    def close(self) -> None:
        """Remove the interfaces, both with the one, and the namespace."""
        for words in (("link", "del", self._near), ("netns", "del", self._name)):
            with suppress(subprocess.CalledProcessError):  # it was never made
                _ip(*words)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class ProxyLink:
    """A proxy on loopback."""

    def __init__(self) -> None:
        self.server_host = _LOOPBACK
        self.server_port = free_port()
        self.prefix: list[str] = []
        self._listening = socket.create_server((_LOOPBACK, 0))
        self.address = f"http://{_LOOPBACK}:{self._listening.getsockname()[1]}"
        self._passing = threading.Event()
        self._passing.set()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_closed = False
        threading.Thread(target=self._accept, name="link", daemon=True).start()

    def cut(self) -> None:
        """Pass no bytes on; nobody is told."""
        self._passing.clear()

    def mend(self) -> None:
        """Reset what was connected, then pass bytes on."""
        self._reset_all()
        self._passing.set()

    def close(self) -> None:
        """Listen no more."""
        self._is_closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._reset_all()
        self._passing.set()

    def _reset_all(self) -> None:
        with self._lock:
            for each in self._open:
                _reset(each)

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                writer, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(writer,), daemon=True).start()

    def _join(self, writer: socket.socket) -> None:
        """Pass bytes both ways until either side is gone."""
        self._passing.wait()
        try:
            server = socket.create_connection((self.server_host, self.server_port))
        except OSError:
            _reset(writer)
            writer.close()
            return
        both = {writer, server}
        with self._lock:
            self._open |= both
        back = threading.Thread(target=self._pass, args=(server, writer), daemon=True)
        back.start()
        self._pass(writer, server)
        back.join()
        with self._lock:
            self._open -= both
        for each in both:
            each.close()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                self._passing.wait()
                target.sendall(piece)
        for each in (source, target):
            _reset(each)


def _reset(connection: socket.socket) -> None:
    """Break a connection off; whoever waits on it wakes up."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.shutdown(socket.SHUT_RDWR)
