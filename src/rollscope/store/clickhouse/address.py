"""Addresses of ClickHouse servers: `clickhouse://user@host:8123/database`, and of runs in them."""

import os
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from rollscope.errors import SettingError
from rollscope.store.clickhouse.store import ClickHouseStore
from rollscope.store.clickhouse.transport import HttpTransport

__all__ = ["PASSWORD_VARIABLE", "SCHEMES", "connect", "is_address", "open_address"]

SCHEMES: Final = {"clickhouse": ("http", 8123), "clickhouses": ("https", 8443)}
PASSWORD_VARIABLE: Final = "CLICKHOUSE_PASSWORD"  # noqa: S105  (the name of a variable)
_SHAPE: Final = "clickhouse://[USER@]HOST[:PORT]/DATABASE"


class _Parts(NamedTuple):
    url: str
    user: str
    database: str
    run: str


def is_address(text: str) -> bool:
    """Say whether a text means a server rather than a path."""
    return text.partition("://")[0] in SCHEMES


def connect(address: str) -> HttpTransport:
    """Give the way to a database.

    Raises:
        SettingError: The address cannot be understood.
    """
    parts = _split(address)
    if parts.run:
        raise SettingError(f"{address!r} names a run; write {_SHAPE}")
    return _transport(parts)


def open_address(address: str) -> ClickHouseStore:
    """Open a run: the address of its database, a slash, and its name.

    Raises:
        SettingError: The address cannot be understood.
        StoreError: The server cannot be reached, or has no such run.
    """
    parts = _split(address)
    if not parts.run:
        raise SettingError(f"{address!r} names no run; write {_SHAPE}/RUN")
    return ClickHouseStore(_transport(parts), parts.run)


def _transport(parts: _Parts) -> HttpTransport:
    password = os.environ.get(PASSWORD_VARIABLE, "")
    return HttpTransport(parts.url, database=parts.database, user=parts.user, password=password)


def _split(address: str) -> _Parts:
    split = urlsplit(address)
    try:
        scheme, port = SCHEMES[split.scheme]
        host, given = split.hostname, split.port
    except (KeyError, ValueError):
        raise SettingError(f"{address!r} is no address; write {_SHAPE}") from None
    database, _, run = split.path.removeprefix("/").partition("/")
    if not host or not database:
        raise SettingError(f"{address!r} is no address; write {_SHAPE}")
    if split.password is not None:
        raise SettingError(
            f"a password in an address can be read by others; put it into {PASSWORD_VARIABLE}"
        )
    shown = f"[{host}]" if ":" in host else host
    return _Parts(
        url=f"{scheme}://{shown}:{given or port}",
        user=unquote(split.username or ""),
        database=unquote(database),
        run=unquote(run),
    )
