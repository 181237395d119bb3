"""Real Prometheus and Alertmanager processes, and clients that talk to them."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "Alertmanager",
    "Prometheus",
    "free_port",
    "running_alertmanager",
    "running_prometheus",
    "wait_until",
]

T = TypeVar("T")

_PATIENCE_S = 30.0
_LOOK_EVERY_S = 0.05
_ATTEMPTS = 3
_opener = build_opener(ProxyHandler({}))


def free_port() -> int:
    """Give a port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(look: Callable[[], T], timeout_s: float = _PATIENCE_S, what: str = "it") -> T:
    """Look until there is something to see, and give that; raises TimeoutError with the last."""
    give_up_s = time.monotonic() + timeout_s
    while True:
        if seen := look():
            return seen
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"waited {timeout_s:g} s for {what}; last seen: {seen!r}")
        time.sleep(_LOOK_EVERY_S)


class _Peer:
    """A process that answers HTTP."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"
        self.log = log

    def ask(self, path: str, *, body: bytes | None = None, method: str | None = None) -> bytes:
        """Send a request; an answer that is no 2xx raises urllib's HTTPError."""
        request = Request(f"{self.url}{path}", data=body, method=method)  # noqa: S310  (loopback)
        if body is not None:
            request.add_header("Content-Type", "application/json")
        with _opener.open(request, timeout=10) as answer:
            return bytes(answer.read())

    def is_ready(self) -> bool:
        """Say whether it answers; its log tells why it has ended, if it has."""
        if self.process.poll() is not None:
            raise RuntimeError(f"it has ended ({self.process.returncode}):\n{self.said()}")
        try:
            self.ask("/-/ready")
        except (HTTPError, URLError, OSError):
            return False
        return True

    def reload(self) -> None:
        """Let it read its configuration again; HTTPError if it refuses it."""
        self.ask("/-/reload", method="POST")

    def said(self) -> str:
        """Give its log."""
        return self.log.read_text(errors="replace")

    def wait_until(
        self, look: Callable[[], T], timeout_s: float = _PATIENCE_S, what: str = "it"
    ) -> T:
        """Wait as the function does, and show the log if that was in vain."""
        try:
            return wait_until(look, timeout_s, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.said()[-2_000:]}") from None


class Prometheus(_Peer):
    """A running Prometheus."""

    def api(self, path: str, **parameters: str) -> Any:
        """Give the data of an answer of its API, such as `api("rules")`."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return json.loads(self.ask(f"/api/v1/{path}{query}"))["data"]

    def query(self, expression: str, at_s: float | None = None) -> list[dict[str, Any]]:
        """Give the series of an instant query: `metric` and `value` each."""
        given = {"query": expression} if at_s is None else {"query": expression, "time": str(at_s)}
        result: list[dict[str, Any]] = self.api("query", **given)["result"]
        return result

    def value(self, expression: str) -> float | None:
        """Give the number that a query of one series gives; None if there is none."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def exemplars(self, expression: str, last_s: float = 3_600) -> list[dict[str, Any]]:
        """Give the exemplars of series: `seriesLabels` and `exemplars` each."""
        now_s = time.time()
        given = {"query": expression, "start": str(now_s - last_s), "end": str(now_s + 60)}
        result: list[dict[str, Any]] = self.api("query_exemplars", **given)
        return result

    def targets(self, job: str | None = None) -> list[dict[str, Any]]:
        """Give what it scrapes: `labels`, `discoveredLabels`, `scrapeUrl`, `health` each."""
        found = self.api("targets", state="active")["activeTargets"]
        return [one for one in found if job is None or one["labels"]["job"] == job]

    def config(self) -> str:
        """Give the configuration that it has taken."""
        return str(self.api("status/config")["yaml"])

    def alerts(self) -> list[dict[str, Any]]:
        """Give its alerts, those that are pending too."""
        found: list[dict[str, Any]] = self.api("alerts")["alerts"]
        return found


class Alertmanager(_Peer):
    """A running Alertmanager."""

    def alerts(self) -> list[dict[str, Any]]:
        """Give the alerts that it has: `labels`, `annotations`, `status` each."""
        found: list[dict[str, Any]] = json.loads(self.ask("/api/v2/alerts"))
        return found


@contextmanager
def running_prometheus(
    config: str | Path, directory: Path, *, port: int | None = None, flags: Sequence[str] = ()
) -> Iterator[Prometheus]:
    """Run Prometheus while the block runs: exemplars, reload and the remote-write receiver on.

    Args:
        config: The text of a configuration, which is written to `directory/prometheus.yml`, or
            the file of one, which is used where it is.
        directory: For its data and its log; made if it is not there.
        port: Where it listens; a free one if not given.
        flags: More of its flags.
    """
    directory.mkdir(parents=True, exist_ok=True)
    command = [
        "prometheus",
        f"--config.file={_written(config, directory / 'prometheus.yml')}",
        f"--storage.tsdb.path={directory / 'data'}",
        "--web.enable-lifecycle",
        "--web.enable-remote-write-receiver",
        "--enable-feature=exemplar-storage",
        *flags,
    ]
    with _running(Prometheus, command, directory / "prometheus.log", port) as prometheus:
        yield prometheus


@contextmanager
def running_alertmanager(
    config: str | Path, directory: Path, *, port: int | None = None, flags: Sequence[str] = ()
) -> Iterator[Alertmanager]:
    """Run Alertmanager, without a cluster, while the block runs; as `running_prometheus`."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [
        "prometheus-alertmanager",
        f"--config.file={_written(config, directory / 'alertmanager.yml')}",
        f"--storage.path={directory / 'data'}",
        "--cluster.listen-address=",
        *flags,
    ]
    with _running(Alertmanager, command, directory / "alertmanager.log", port) as alertmanager:
        yield alertmanager


def _written(config: str | Path, place: Path) -> Path:
    if isinstance(config, Path):
        return config
    place.write_text(config)
    return place


P = TypeVar("P", bound=_Peer)


@contextmanager
def _running(kind: type[P], command: list[str], log: Path, port: int | None) -> Iterator[P]:
    peer = _started(kind, command, log, port)
    try:
        yield peer
    finally:
        peer.process.terminate()
        try:
            peer.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            peer.process.kill()
            peer.process.wait()


def _started(kind: type[P], command: list[str], log: Path, port: int | None) -> P:
    """Start it; where the port was free a moment ago and is not now, on another one."""
    for attempt in range(1, _ATTEMPTS + 1):
        chosen = port or free_port()
        listening = f"--web.listen-address=127.0.0.1:{chosen}"
        with log.open("wb") as file:
            process = subprocess.Popen([*command, listening], stdout=file, stderr=file)
        peer = kind(process, chosen, log)
        try:
            peer.wait_until(peer.is_ready, what="it to answer")
        except (RuntimeError, TimeoutError):
            process.kill()
            process.wait()
            if port or attempt == _ATTEMPTS or "address already in use" not in peer.said():
                raise
        else:
            return peer
    raise AssertionError("unreachable")
