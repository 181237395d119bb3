"""Where Grafana and Tempo are, if somebody said so, and the links that lead there.

Addresses come from whoever started the server, never from a request or a record; what is recorded
goes into them as a quoted value only.
"""

import json
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from rollscope.instrument.sinks.httpaddress import split_http

__all__ = ["Link", "Monitors", "dashboard_links", "read_base_url", "trace_links"]

_DASHBOARDS: Final = {
    "rollscope-overview": "Overview",
    "rollscope-rollout": "Rollouts",
    "rollscope-staleness": "Staleness",
    "rollscope-engines": "Engines",
    "rollscope-tracer": "Tracer",
}
"""By uid, as they are provisioned."""
_TRACES: Final = {"type": "tempo", "uid": "rollscope-tempo"}


class Link(msgspec.Struct):
    """A way to another program."""

    title: str
    url: str


class Monitors(NamedTuple):
    """What stands beside this server."""

    grafana_url: str | None = None
    tempo_url: str | None = None
    token_file: Path | None = None
    """Where the token is kept, for those who have to send it."""


def read_base_url(text: str) -> str:
    """Read the address of a program, and give it without a slash at its end.

    Raises:
        ValueError: It is none that a browser may be sent to; the text says why.
    """
    parts = split_http(text)
    if parts is None or not text.isprintable() or " " in text:
        raise ValueError(f"{text[:200]!r} is no http:// or https:// address")
    if parts.username is not None:  # not repeated: a password stands there
        raise ValueError("an address that pages link to must hold no credentials")
    if parts.query or parts.fragment:
        raise ValueError(f"{text[:200]!r} has to end with its path")
    return text.rstrip("/")


def dashboard_links(monitors: Monitors, run: str) -> list[Link]:
    """Give the ways to the dashboards, opened for one run."""
    if monitors.grafana_url is None:
        return []
    asked = urlencode({"var-run": run})
    return [
        Link(title, f"{monitors.grafana_url}/d/{uid}?{asked}") for uid, title in _DASHBOARDS.items()
    ]


def trace_links(monitors: Monitors, trace_id: bytes) -> list[Link]:
    """Give the ways to a trace: Grafana's Explore over Tempo, or else Tempo itself."""
    if monitors.grafana_url is not None:
        query = {"refId": "A", "datasource": _TRACES, "queryType": "traceql"}
        shown = {"datasource": _TRACES["uid"], "queries": [{**query, "query": trace_id.hex()}]}
        left = quote(json.dumps(shown, separators=(",", ":")), safe="")
        return [Link("Open in Grafana", f"{monitors.grafana_url}/explore?left={left}")]
    if monitors.tempo_url is not None:
        return [Link("Open in Tempo", f"{monitors.tempo_url}/api/traces/{trace_id.hex()}")]
    return []
