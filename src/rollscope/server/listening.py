"""Where a server listens: ports, a certificate, and the lines that say so."""

import getpass
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rollscope.errors import CommandError
from rollscope.server.access import Access, is_loopback

__all__ = ["DEFAULT_PORT", "Listening", "address_lines", "bind", "bind_near", "check_certificate"]

DEFAULT_PORT: Final = 7077
_BACKLOG: Final = 128
_NEAR: Final = 16


@dataclass(frozen=True)
class Listening:
    """What a server listens on, and how."""

    sockets: list[socket.socket]
    certfile: str | None = None
    """Given, everything that comes in is TLS."""
    keyfile: str | None = None
    host: str = "127.0.0.1"
    grpc_port: int | None = None
    """Where OTLP is taken over gRPC, if it is; another one if that is taken, any if 0."""

    def certificate(self) -> tuple[bytes, bytes] | None:
        """Give the key and the certificates as they stand in their files."""
        if self.certfile is None:
            return None
        key = Path(self.keyfile or self.certfile).read_bytes()
        return key, Path(self.certfile).read_bytes()

    def close(self) -> None:
        """Let go of the ports."""
        for each in self.sockets:
            each.close()


def bind(host: str, port: int | None) -> socket.socket:
    """Take a port: the one that was asked for, else the usual one if it is free, else any.

    Raises:
        CommandError: It cannot be had.
    """
    return _bind_first(host, (DEFAULT_PORT, 0) if port is None else (port,))


def bind_near(host: str, port: int) -> socket.socket:
    """Take a port, or one of the next, or any.

    Raises:
        CommandError: None can be had.
    """
    following = range(port, min(port + _NEAR, 65_536)) if port else ()
    return _bind_first(host, (*following, 0))


def _bind_first(host: str, ports: tuple[int, ...]) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise CommandError(f"cannot listen on {host!r}: {error.strerror}") from error
    for number in ports:
        # Named as TCP, or asyncio would leave Nagle's algorithm on: 40 ms for every answer.
        taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((address[0], number))
            taken.listen(_BACKLOG)
        except OSError as error:
            taken.close()
            if number == ports[-1]:
                why = error.strerror or str(error)
                raise CommandError(
                    f"cannot listen on port {number} of {host}: {why}; --port 0 takes a free one"
                ) from error
        else:
            return taken
    raise AssertionError  # the last port was taken, or an error raised


def check_certificate(certfile: str, keyfile: str | None) -> None:
    """Make sure that a certificate and its key can be used, before anything listens.

    Raises:
        CommandError: They cannot; the message says why.
    """

    def no_password() -> str:
        raise CommandError(f"the key of {certfile} has a password; give one without")

    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certfile, keyfile, no_password)
    except OSError as error:  # also what ssl raises
        why = error.strerror or str(error)
        files = certfile if keyfile is None else f"{certfile} with the key {keyfile}"
        raise CommandError(f"cannot use the certificate {files}: {why}") from error


def address_lines(access: Access, host: str, *, is_secure: bool = False) -> list[str]:
    """Say where the page is, and how to get there from another machine."""
    shown = host
    if host in ("0.0.0.0", "::"):  # noqa: S104  (only compared)
        shown = socket.gethostname()
    if ":" in shown:
        shown = f"[{shown}]"
    query = "" if access.token is None else f"?token={quote(access.token, safe='')}"
    scheme = "https" if is_secure else "http"
    lines = [f"{scheme}://{shown}:{access.port}/{query}"]
    if is_loopback(host):
        there = f"{_user()}@{socket.gethostname()}"
        lines.append(f"From another machine: ssh -L {access.port}:localhost:{access.port} {there}")
    return lines


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may know its user by number only
        return "user"
