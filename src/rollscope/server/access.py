"""Who may ask: the token, the names this server goes by, and which site a request comes from.

Pure decisions over headers; `gate` puts them between the network and the routes. A browser on a
shared machine is the danger: other users can reach the port, and other sites can make the browser
send requests. The first is what the token is for, the second what the origin is checked for, and
names are checked because a hostile site can let its own name point at this machine.
"""

import hmac
import ipaddress
from collections.abc import Mapping
from enum import Enum
from http.cookies import CookieError, SimpleCookie
from typing import Final, NamedTuple
from urllib.parse import urlsplit

__all__ = ["Access", "Caller", "is_loopback", "split_host"]

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_BEARER: Final = "bearer "
_FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class Caller(Enum):
    """How a request has shown that it may ask."""

    NOBODY = "nobody"
    COOKIE = "cookie"
    BEARER = "bearer"
    """Sent on purpose: a browser never adds it by itself to another site's request."""
    OPEN = "open"
    """There is no token."""


class Access(NamedTuple):
    """Who may ask this server."""

    token: str | None
    """None lets everybody in who reaches the port."""
    port: int
    hosts: frozenset[str] = frozenset()
    """Names it goes by beside the loopback ones, in lower case."""
    is_local: bool = False
    """Whether it listens where only this machine reaches it."""

    def knows_host(self, header: str | None) -> bool:
        """Say whether a Host header names this server."""
        name, _ = split_host(header or "")
        return name in _LOOPBACK_NAMES or name in self.hosts

    def is_token(self, given: str) -> bool:
        """Say whether this is the token, in a time that tells nothing."""
        if self.token is None:
            return False
        return hmac.compare_digest(given.encode(errors="replace"), self.token.encode())

    def cookie_name(self, host_header: str | None) -> str:
        """Name the cookie by the port the browser sees: cookies of one host share all ports."""
        _, port = split_host(host_header or "")
        return f"rollscope-{port or self.port}"

    def caller(self, headers: Mapping[str, str]) -> Caller:
        """Say how a request has shown that it may ask."""
        if self.token is None:
            return Caller.OPEN
        given = headers.get("authorization", "")
        if given.lower().startswith(_BEARER) and self.is_token(given[len(_BEARER) :].strip()):
            return Caller.BEARER
        if self.is_token(_cookie(headers, self.cookie_name(headers.get("host")))):
            return Caller.COOKIE
        return Caller.NOBODY

    def is_neighbour(self, peer: str | None, headers: Mapping[str, str]) -> bool:
        """Say whether a program of this machine asks, of a server that no other machine reaches.

        A proxy on this machine may ask for somebody else, and says so.
        """
        is_forwarded = any(name in headers for name in _FORWARDED)
        return self.is_local and peer is not None and is_loopback(peer) and not is_forwarded

    @staticmethod
    def is_foreign(headers: Mapping[str, str]) -> bool:
        """Say whether another site made the browser send this."""
        site = headers.get("sec-fetch-site")
        if site is not None and site not in ("same-origin", "none"):
            return True
        origin = headers.get("origin")
        return origin is not None and not _is_own_origin(origin, headers.get("host", ""))

    @staticmethod
    def is_own(headers: Mapping[str, str]) -> bool:
        """Say whether the browser vouches that our own page sent this."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        return site == "same-origin" or (
            origin is not None and _is_own_origin(origin, headers.get("host", ""))
        )

    @staticmethod
    def is_navigation(headers: Mapping[str, str]) -> bool:
        """Say whether a person follows a link or types an address, outside of any frame."""
        return (
            headers.get("sec-fetch-mode") == "navigate"
            and headers.get("sec-fetch-dest") == "document"
        )


def is_loopback(host: str) -> bool:
    """Say whether a host to listen on can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def split_host(header: str) -> tuple[str, int | None]:
    """Split a Host header into the name, in lower case and without brackets, and the port."""
    try:
        parts = urlsplit(f"//{header.strip()}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return "", None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return "", None
    return (name or "").removesuffix("."), port


def _is_own_origin(origin: str, host_header: str) -> bool:
    scheme, _, rest = origin.partition("://")
    # A proxy may add TLS, so the scheme is not ours to compare.
    return scheme in ("http", "https") and bool(rest) and rest.lower() == host_header.lower()


def _cookie(headers: Mapping[str, str], name: str) -> str:
    try:
        jar = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return jar[name].value if name in jar else ""
