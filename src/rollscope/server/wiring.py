"""How other programs are wired to this server: text to copy, by the address it is reached at."""

import json
import shlex
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from rollscope.server.monitors import Monitors

__all__ = ["Reached", "Wire", "Wiring", "wires"]

_PORTS: Final = {"http": 80, "https": 443}
_SOME_FILE: Final = "/path/to/a/file/with/the/token"


class Reached(NamedTuple):
    """How the page reaches this server, which is how others may."""

    scheme: str
    host: str
    """As the browser names it, with the port."""
    has_token: bool


class Wire(msgspec.Struct):
    """One way to connect something."""

    title: str
    text: str
    """To be copied; may have several lines."""
    test: str = ""
    """Which test there is for it, if there is one."""


class Wiring(msgspec.Struct):
    """All of them."""

    wires: list[Wire]


def wires(run: str, reached: Reached, monitors: Monitors) -> list[Wire]:
    """Give everything that can be connected."""
    given = [
        Wire(
            "Prometheus: a job for its scrape_configs", _scrape_job(reached, monitors), "prometheus"
        ),
        Wire(
            "OpenTelemetry: variables of the program that sends",
            _otlp(run, reached, monitors),
            "otlp",
        ),
        Wire(
            "Grafana: data sources, dashboards and alert rules as files",
            "rollscope server config --out monitoring",
        ),
    ]
    if monitors.grafana_url is not None:
        given.append(Wire("Grafana, as given by --grafana-url", monitors.grafana_url, "grafana"))
    if monitors.tempo_url is not None:
        given.append(Wire("Tempo, as given by --tempo-url", monitors.tempo_url, "tempo"))
    return given


def _scrape_job(reached: Reached, monitors: Monitors) -> str:
    host = reached.host
    if host.endswith("]") or ":" not in host:  # Prometheus wants the port
        host += f":{_PORTS[reached.scheme]}"
    lines = [
        "- job_name: rollscope",
        "  scrape_interval: 5s",
        *(["  scheme: https"] if reached.scheme == "https" else []),
        "  static_configs:",
        f'    - targets: ["{host}"]',
    ]
    if reached.has_token:
        lines += [
            "  authorization:  # on the server's own machine it does without",
            f"    credentials_file: {json.dumps(str(monitors.token_file or _SOME_FILE))}",
        ]
    return "\n".join(lines)


def _otlp(run: str, reached: Reached, monitors: Monitors) -> str:
    lines = [f"export OTEL_EXPORTER_OTLP_ENDPOINT={reached.scheme}://{reached.host}"]
    if reached.has_token:
        path = monitors.token_file
        token = "TOKEN" if path is None else f"$(cat {shlex.quote(str(path))})"
        lines.append(f'export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20{token}"')
    name = quote(run, safe="/:@!$*()")
    lines.append(f"export OTEL_RESOURCE_ATTRIBUTES='rollscope.run={name}'")
    return "\n".join(lines)
