"""Talking to a Prometheus that is not ours: it reads its configuration again, says where it is."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request

from rollscope.stack.directhttp import direct_opener

__all__ = ["Peer", "Reload", "ask_config_file", "reload_prometheus"]

_MOST_BYTES: Final = 1024 * 1024
_SHOWN: Final = 500


class Peer(NamedTuple):
    """A Prometheus, and how it is spoken to."""

    url: str = "http://127.0.0.1:9090"
    timeout_s: float = 10.0
    headers: Mapping[str, str] = {}
    """Sent along, as Authorization."""


class Reload(NamedTuple):
    """How a reload went."""

    problem: str = ""
    is_refused: bool = False
    """It is there, and cannot use its configuration."""


_opener: Final = direct_opener()


def reload_prometheus(peer: Peer) -> Reload:
    """Have it read its configuration again; trouble is returned, never raised."""
    try:
        _ask(peer, "/-/reload", "POST")
    except HTTPError as error:
        with error:
            said = error.read(_SHOWN).decode(errors="replace").strip()
        if error.code == 403 and "ifecycle" in said:
            advice = "start it with --web.enable-lifecycle, or send it SIGHUP"
            return Reload(f"{peer.url} may not be told to reload: {advice}")
        return Reload(f"{peer.url} answers {error.code}: {said}", error.code == 500)
    except (OSError, HTTPException, ValueError) as error:
        return Reload(f"{peer.url} cannot be reached: {_why(error)}")
    return Reload()


def ask_config_file(peer: Peer) -> str | None:
    """Ask which configuration it was started with; None if it does not say."""
    try:
        flags = json.loads(_ask(peer, "/api/v1/status/flags", "GET"))["data"]
        return str(flags["config.file"])
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return None


def _ask(peer: Peer, path: str, method: str) -> bytes:
    url = f"{peer.url.rstrip('/')}{path}"
    if not url.startswith(("http://", "https://")):
        raise ValueError("it is no http:// or https:// address")
    request = Request(url, method=method, headers=dict(peer.headers))  # noqa: S310  (just checked)
    with _opener.open(request, timeout=peer.timeout_s) as answer:
        return bytes(answer.read(_MOST_BYTES))


def _why(error: Exception) -> str:
    reason = error.reason if isinstance(error, URLError) else error
    said = reason.strerror if isinstance(reason, OSError) else None
    return said or str(reason) or type(error).__name__
