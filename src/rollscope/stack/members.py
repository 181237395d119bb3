"""The members of the stack: command lines, where they listen, how they say that they are ready."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollscope._version import __version__
from rollscope.stack.programs import Found

__all__ = [
    "LOOPBACK",
    "Member",
    "alertmanager_member",
    "forwarder_member",
    "grafana_member",
    "prometheus_member",
    "rollscope_member",
    "tempo_member",
]

LOOPBACK: Final = "127.0.0.1"
_GRAFANA_HOMES: Final = (
    "/usr/share/grafana",
    "/usr/local/share/grafana",
    "/opt/grafana",
    "/opt/homebrew/share/grafana",
)
_OURS: Final = (sys.executable, "-P", "-m", "rollscope")
"""`-P`: whatever lies where the command was given must not be taken for a module of ours."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A program to run."""

    name: str
    command: tuple[str, ...]
    version: str
    address: str = ""
    """Where a browser finds it; empty if it listens nowhere."""
    health: str = ""
    """The address that answers when it is ready; empty: it is ready if it does not end at once."""


def rollscope_member(
    runs: Path, page: str, reached: str, token_file: Path | None, options: tuple[str, ...]
) -> Member:
    """Describe our own server.

    Args:
        runs: The directory that it shows.
        page: Its address for a browser.
        reached: Its address for this machine, as HOST:PORT.
        token_file: Where its token is kept; None: it has none.
        options: What else it is told.
    """
    token = ("--no-token",) if token_file is None else ("--token-file", str(token_file))
    return Member(
        name="rollscope",
        command=(*_OURS, "view", "--dir", str(runs), *token, *options),
        version=__version__,
        address=page,
        health=f"http://{reached}/healthz",
    )


def forwarder_member(runs: Path, endpoint: str, state: Path) -> Member:
    """Describe what sends the traces of all runs to Tempo."""
    where = ("--dir", str(runs), "--endpoint", endpoint, "--state-dir", str(state))
    return Member(
        name="forwarder",
        command=(*_OURS, "export", "--every-run", *where, "--follow"),
        version=__version__,
    )


def prometheus_member(found: Found, home: Path, port: int, retention: str) -> Member:
    """Describe Prometheus."""
    address = f"http://{LOOPBACK}:{port}/"
    return Member(
        name="prometheus",
        command=(
            *found.command,
            f"--config.file={home}/prometheus.yml",
            f"--storage.tsdb.path={home}/data",
            f"--storage.tsdb.retention.time={retention}",
            f"--web.listen-address={LOOPBACK}:{port}",
            f"--web.external-url={address}",
            "--web.enable-lifecycle",
            "--enable-feature=exemplar-storage",
        ),
        version=found.version,
        address=address,
        health=f"{address}-/ready",
    )


def alertmanager_member(found: Found, home: Path, config: Path, port: int) -> Member:
    """Describe Alertmanager, alone: without the port by which several would talk."""
    address = f"http://{LOOPBACK}:{port}/"
    return Member(
        name="alertmanager",
        command=(
            *found.command,
            f"--config.file={config}",
            f"--storage.path={home}/data",
            f"--web.listen-address={LOOPBACK}:{port}",
            f"--web.external-url={address}",
            "--cluster.listen-address=",
        ),
        version=found.version,
        address=address,
        health=f"{address}-/ready",
    )


def tempo_member(found: Found, home: Path, port: int) -> Member:
    """Describe Tempo, which has no page of its own."""
    return Member(
        name="tempo",
        command=(*found.command, f"-config.file={home}/tempo.yaml"),
        version=found.version,
        address=f"http://{LOOPBACK}:{port}/",
        health=f"http://{LOOPBACK}:{port}/ready",
    )


def grafana_member(found: Found, home: Path, port: int) -> Member:
    """Describe Grafana."""
    own = _grafana_home(found.command[0])
    where = () if own is None else ("--homepath", own)
    return Member(
        name="grafana",
        command=(*found.command, "--config", f"{home}/grafana.ini", *where),
        version=found.version,
        address=f"http://{LOOPBACK}:{port}/",
        health=f"http://{LOOPBACK}:{port}/api/health",
    )


def _grafana_home(program: str) -> str | None:
    """Find the files that Grafana comes with; None where it has to find them itself."""
    beside = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    for home in (beside, *_GRAFANA_HOMES):
        if os.path.exists(os.path.join(home, "conf", "defaults.ini")):
            return home
    return None
