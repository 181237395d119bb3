"""Ports: which are free, and who holds those that are not."""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from rollscope.errors import CommandError

__all__ = ["PortTable", "holder_of", "is_free"]

_TRIES: Final = 100
_LISTENING: Final = "0A"
"""As /proc/net/tcp writes the state of a socket that takes connections."""


def is_free(host: str, port: int) -> bool:
    """Say whether a port can be listened on."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise CommandError(f"cannot listen on {host!r}: {error.strerror}", 2) from error
    with socket.socket(family, kind, protocol) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(address)
        except OSError:
            return False
    return True


class PortTable:
    """Gives out the ports of one stack, none of them twice."""

    def __init__(self) -> None:
        self._given: set[int] = set()
        self.notes: list[str] = []
        """A sentence for each port that is not the usual one."""

    def take(self, what: str, asked: int | None, usual: int, host: str, option: str) -> int:
        """Give the port that was asked for; else the usual one, or the next that is free.

        Raises:
            CommandError: The one that was asked for is taken; the message says by whom.
        """
        if asked is not None:
            return self._take_exactly(what, asked, host, option)
        for port in range(usual, min(usual + _TRIES, 65_536)):
            if port not in self._given and is_free(host, port):
                if port != usual:
                    whose = "given away already" if usual in self._given else _taken(usual)
                    self.notes.append(f"Port {usual} is {whose}; {what} listens on {port}.")
                self._given.add(port)
                return port
        raise CommandError(f"no port from {usual} on is free for {what}; name one with {option}")

    def _take_exactly(self, what: str, port: int, host: str, option: str) -> int:
        if port in self._given:
            raise CommandError(f"{option} {port}: another member of the stack has that port", 2)
        if not is_free(host, port):
            raise CommandError(
                f"{option} {port}: {what} cannot listen there, the port is {_taken(port)}", 2
            )
        self._given.add(port)
        return port


def _taken(port: int) -> str:
    holder = holder_of(port)
    return "taken" if holder is None else f"taken by {holder}"


def holder_of(port: int) -> str | None:
    """Name the process that listens on a port; None where the kernel does not tell us."""
    nodes = {node for name in ("tcp", "tcp6") for node in _listeners(name, port)}
    if not nodes:
        return None
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if _has_socket(f"/proc/{pid}", nodes):
            return f"{_name_of(f'/proc/{pid}')} (pid {pid})"
    return None


def _listeners(table: str, port: int) -> list[str]:
    """Give the inode of each socket of a table that listens on the port."""
    try:
        lines = Path("/proc/net", table).read_text().splitlines()[1:]
    except OSError:
        return []
    rows = [line.split() for line in lines]
    return [
        row[9]
        for row in rows
        if row[3] == _LISTENING and int(row[1].rpartition(":")[2], 16) == port
    ]


def _has_socket(process: str, nodes: set[str]) -> bool:
    """Say whether a process has one of the sockets; false for those that are not ours to see."""
    with suppress(OSError):
        for number in os.listdir(f"{process}/fd"):
            with suppress(OSError):
                if os.readlink(f"{process}/fd/{number}")[8:-1] in nodes:  # socket:[12345]
                    return True
    return False


def _name_of(process: str) -> str:
    try:
        return Path(process, "comm").read_text().strip()
    except OSError:
        return "a process"
