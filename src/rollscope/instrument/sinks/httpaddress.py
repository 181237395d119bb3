"""Addresses of servers: what they consist of, and how to reach them."""

import http.client
import os
import socket
import ssl
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit

__all__ = [
    "HttpAddress",
    "connect_http",
    "is_loopback",
    "is_same_machine",
    "parse_address",
    "split_http",
]

_CONNECT_TIMEOUT_S: Final = 5.0
_PORTS: Final = {"http": 80, "https": 443}
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy")


class HttpAddress(NamedTuple):
    """Where a server is."""

    scheme: str
    host: str
    port: int
    path: str
    """What stands before the server's own paths, without a slash at its end; mostly nothing."""
    token: str | None
    """As in the address that `rollscope view` prints."""

    @property
    def shown(self) -> str:
        """The address without its secret, in one spelling."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def split_http(text: str) -> SplitResult | None:
    """Split an address that begins with http:// or https://; None if nothing can be reached by it.

    What is wrong with it is left to the caller to say: it may hold a password.
    """
    try:
        parts = urlsplit(text)
        is_sound = parts.scheme in _PORTS and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if is_sound else None


def parse_address(text: str) -> HttpAddress:
    """Take an address apart.

    Raises:
        ValueError: It is none.
    """
    parts = split_http(text)
    if parts is None or parts.hostname is None:
        raise ValueError("an address looks like http://HOST:PORT")
    tokens = parse_qs(parts.query).get("token", [])
    return HttpAddress(
        parts.scheme,
        parts.hostname,
        parts.port or _PORTS[parts.scheme],
        parts.path.rstrip("/"),
        tokens[0] if tokens else None,
    )


def connect_http(
    address: HttpAddress, ca_file: str | None
) -> tuple[http.client.HTTPConnection, str]:
    """Connect; give the connection and what comes before the path in requests.

    Raises:
        OSError: It cannot be reached, or is not who it should be.
    """
    proxy = _proxy_for(address)
    place = (address.host, address.port) if proxy is None else (proxy.host, proxy.port)
    connection: http.client.HTTPConnection
    if address.scheme == "https":
        context = ssl.create_default_context(cafile=ca_file)
        connection = http.client.HTTPSConnection(
            *place, timeout=_CONNECT_TIMEOUT_S, context=context
        )
        if proxy is not None:
            connection.set_tunnel(address.host, address.port)
    else:
        connection = http.client.HTTPConnection(*place, timeout=_CONNECT_TIMEOUT_S)
    try:
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    is_plain_proxy = proxy is not None and address.scheme == "http"
    return connection, address.shown if is_plain_proxy else address.path


def _proxy_for(address: HttpAddress) -> HttpAddress | None:
    """Find the proxy that the environment names; none on this machine itself."""
    names = {name.lower() for name in os.environ}
    if names.isdisjoint(_PROXIES) or is_loopback(address.host):
        return None
    from urllib.request import getproxies, proxy_bypass  # takes a while to load

    if proxy_bypass(address.host):
        return None
    proxies = getproxies()
    found = proxies.get(address.scheme) or proxies.get("all")
    if not found:
        return None
    return parse_address(found if "://" in found else f"http://{found}")


def is_loopback(host: str) -> bool:
    """Say whether a host name or address means this machine."""
    return host in ("localhost", "::1") or host.startswith("127.")


def is_same_machine(connection: http.client.HTTPConnection) -> bool:
    """Say whether the other end of a connection is on this machine."""
    peer: str = connection.sock.getpeername()[0]
    own: str = connection.sock.getsockname()[0]
    return is_loopback(peer) or peer == own
