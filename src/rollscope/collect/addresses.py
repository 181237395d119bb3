"""Addresses of what exposes metrics; pure, and light enough for a trainer."""

from typing import Final, NamedTuple
from urllib.parse import urlsplit

__all__ = ["TargetAddress", "parse_address"]

_URL_CHARACTERS: Final = 2_000
_PORTS: Final = {"http": 80, "https": 443}


class TargetAddress(NamedTuple):
    """Where a target is."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def instance(self) -> str:
        """The host and port, as Prometheus writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole of it."""
        return f"{self.scheme}://{self.instance}{self.path}"


def parse_address(text: str) -> TargetAddress:
    """Read `http://host:port/metrics`; scheme and path may be left out.

    Raises:
        ValueError: It is no such address; the text says why.
    """
    whole = text if "://" in text else f"http://{text}"
    if len(whole) > _URL_CHARACTERS or not whole.isascii() or not whole.isprintable():
        raise ValueError("an address is at most 2,000 plain characters")
    parts = urlsplit(whole)
    if parts.scheme not in _PORTS:
        raise ValueError(f"{text!r} is no http:// or https:// address")
    if parts.username is not None:  # not repeated: a password stands there
        raise ValueError("an address has to name a host, and nothing before it")
    if not parts.hostname or " " in whole:
        raise ValueError(f"{text!r} has to name a host")
    try:
        port = parts.port or _PORTS[parts.scheme]
    except ValueError:
        raise ValueError(f"{text!r} has no port from 1 to 65535") from None
    path = parts.path if parts.path not in ("", "/") else "/metrics"
    query = f"?{parts.query}" if parts.query else ""
    return TargetAddress(parts.scheme, parts.hostname, port, f"{path}{query}")
