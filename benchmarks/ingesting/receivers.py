"""Receivers to measure, each a process of its own on a core of its own."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Receiver", "clean_environment", "cores", "on_core", "rollscope", "rotel"]

_UP_S: Final = 30.0
_ANSWER_S: Final = 60.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Receiver:
    """A process that listens on a port of loopback."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.port = port

    def cpu_s(self) -> float:
        """Give the CPU time it has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def peak_mb(self) -> float:
        """Give the most memory it has held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024

    def ask(self, path: str) -> tuple[int, bytes]:
        """Ask for something over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def overview(self, run: str) -> dict[str, Any] | None:
        """Give the overview of a run; None while it is not there."""
        status, body = self.ask(f"/api/v1/run/{run}")
        if status != 200:
            return None
        found: dict[str, Any] = msgspec.json.decode(body)
        return found


def cores() -> tuple[int, int]:
    """Give a core for receivers and one for senders; the same where there is but one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Keep this process on a core while the block runs."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def clean_environment(**ours: str) -> dict[str, str]:
    """Give an environment in which settings of whoever runs the benchmark change nothing."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")}
    return env | ours


@contextmanager
def rollscope(runs: Path) -> Iterator[Receiver]:
    """Run `rollscope view` over a directory of runs."""
    command = [sys.executable, "-m", "rollscope", "view", "--dir", str(runs)]
    port = _free_port()
    with _launch([*command, "--no-token", "--quiet", "--port", str(port)], port) as receiver:
        yield receiver


@contextmanager
def rotel() -> Iterator[Receiver]:
    """Run rotel, a collector written in Rust, which throws away what it takes."""
    import rotel as package

    agent = Path(package.__file__).parent / "rotel-agent"
    ports = _free_port(), _free_port()
    command = [str(agent), "start", "--exporter=blackhole"]
    command += [f"--otlp-http-endpoint=127.0.0.1:{ports[0]}"]
    command += [f"--otlp-grpc-endpoint=127.0.0.1:{ports[1]}"]
    with _launch(command, ports[0]) as receiver:
        yield receiver


@contextmanager
def _launch(command: Sequence[str], port: int) -> Iterator[Receiver]:
    core = cores()[0]
    process = subprocess.Popen(
        command,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    try:
        _wait_until_up(process, port)
        yield Receiver(process.pid, port)
    finally:
        process.terminate()
        try:
            process.wait(_UP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], port: int) -> None:
    ends_at = time.monotonic() + _UP_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None or time.monotonic() > ends_at:
            raise RuntimeError(f"{process.args!r} did not come up")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
