"""What a user may ask of the stack, and what follows from it alone."""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rollscope.errors import CommandError
from rollscope.stack.members import LOOPBACK
from rollscope.stack.programs import PROGRAMS
from rollscope.stack.statefile import StateDir

__all__ = [
    "PORTS",
    "StackOptions",
    "check_view_words",
    "page_address",
    "reachable",
    "read_wanted",
    "retention_hours",
]

PORTS: Final = {
    "rollscope": 7077,
    "prometheus": 9090,
    "alertmanager": 9093,
    "tempo": 3200,
    "grafana": 3000,
}
"""Where each listens if nobody says otherwise."""
_OURS: Final = ("--dir", "--host", "--port", "--token-file", "--no-token", "--sd-dir")
_SECURE: Final = ("--certfile", "--keyfile")
_HOURS: Final = {"h": 1, "d": 24, "w": 168, "y": 8760}


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """What the user asks for."""

    runs: Path
    where: StateDir
    wanted: tuple[str, ...] = ()
    """Programs to run beside our server, by the names of `PROGRAMS`."""
    host: str = LOOPBACK
    has_token: bool = True
    retention: str = "15d"
    ports: Mapping[str, int | None] = field(default_factory=dict)
    programs: Mapping[str, str | None] = field(default_factory=dict)
    alertmanager_config: Path | None = None
    dashboards: Path | None = None
    """More dashboards, beside ours."""
    view_words: tuple[str, ...] = ()
    """What else our server is told."""


def read_wanted(text: str) -> tuple[str, ...]:
    """Read a list of programs, as in `prometheus,grafana`.

    Raises:
        CommandError: One of them is none that the stack can run.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in PROGRAMS:
            known = ", ".join(PROGRAMS)
            raise CommandError(f"--with: {name!r} is none of {known}", 2)
    return names


def check_view_words(words: tuple[str, ...]) -> None:
    """Make sure that our server is told nothing that the stack has to decide.

    Raises:
        CommandError: It is.
    """
    if words and not words[0].startswith("-"):
        raise CommandError(f"{words[0]!r} is no option; name a directory of runs with --dir", 2)
    for word in words:
        name = word.partition("=")[0]
        if name in _OURS:
            raise CommandError(f"{name} belongs before the --, where rollscope server sees it", 2)
        if name in _SECURE:
            raise CommandError(
                f"{name}: the members of the stack speak to each other without TLS on this "
                "machine; put a proxy in front, or use rollscope view and rollscope server config",
                2,
            )


def retention_hours(text: str) -> int:
    """Read how long data are kept, as in `15d`.

    Raises:
        CommandError: It is no such time.
    """
    found = re.fullmatch(r"([1-9]\d{0,5})([hdwy])", text)
    if found is None:
        raise CommandError(f"--retention: {text!r} is no time such as 12h, 15d, 4w or 1y", 2)
    return int(found[1]) * _HOURS[found[2]]


def page_address(host: str, port: int) -> str:
    """Give the address of the page as a browser needs it."""
    if host in ("0.0.0.0", "::"):  # noqa: S104  (only compared)
        host = socket.gethostname()
    return f"http://{_bracketed(host)}:{port}/"


def reachable(host: str, port: int) -> str:
    """Say where this machine reaches what listens on a host, as HOST:PORT."""
    inside = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104  (only compared)
    return f"{_bracketed(inside.get(host, host))}:{port}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
