"""The server under fire: started, killed, started again on the same port, and looked at."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.links import Link

__all__ = ["TOKEN", "Looker", "Server", "host_environment"]

TOKEN: Final = "chaos-0123456789-chaos"  # noqa: S105  (of servers that live for one test)
_UP_S: Final = 60.0
_ANSWER_S: Final = 30.0
_LOOK_EVERY_S: Final = 1.0
_TRANSIENT: Final = frozenset({404, 503})
"""What may be answered by a server that is about to know the run, or about to go."""


def host_environment(**ours: str) -> dict[str, str]:
    """Give an environment without settings of whoever runs the test."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")}
    return env | ours


class Server:
    """`rollscope view` over a directory of runs."""

    def __init__(self, folder: Path, link: Link) -> None:
        self._link = link
        self.runs = folder / "runs"
        self.log = folder / "server.log"
        self._token_file = folder / "token"
        self._token_file.write_text(TOKEN)
        self._token_file.chmod(0o600)
        self.process: subprocess.Popen[bytes] | None = None
        self.peak_mb = 0.0
        self.starts = 0

    def start(self) -> None:
        """Start it; `wait_until_up` tells when it answers."""
        command = [sys.executable, "-m", "rollscope", "view", "--dir", str(self.runs)]
        command += ["--host", self._link.server_host, "--port", str(self._link.server_port)]
        command += ["--token-file", str(self._token_file), "--quiet"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=host_environment()
            )
        self.starts += 1

    def wait_until_up(self) -> None:
        """Wait until it answers."""
        ends_at = time.monotonic() + _UP_S
        while True:
            with suppress(OSError, http.client.HTTPException):
                if self.ask("/v1/ingest")[0] == 200:
                    return
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > ends_at:
                raise RuntimeError(f"the server did not come up: {self.log.read_text()}")
            time.sleep(0.02)

    def ask(self, path: str) -> tuple[int, bytes]:
        """Ask for something, past the link."""
        connection = http.client.HTTPConnection(
            self._link.server_host, self._link.server_port, timeout=_ANSWER_S
        )
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def kill(self) -> None:
        """Kill it as the kernel would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """Ask it to end; gives its exit code."""
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(_UP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL


class Looker:
    """Somebody who has the page open: asks for the overview once a second."""

    def __init__(self, server: Server, run: str) -> None:
        self._server = server
        self._run = run
        self.answers = 0
        self.faults: list[str] = []
        """Answers that no server may give, whatever happens to it."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look, name="looker", daemon=True)
        self._thread.start()

    def overview(self) -> dict[str, Any] | None:
        """Give what the page's head shows; None if there is no answer now."""
        try:
            status, body = self._server.ask(f"/api/v1/run/{self._run}")
        except (OSError, http.client.HTTPException):
            return None  # killed at this moment
        if status != 200:
            if status not in _TRANSIENT:
                self.faults.append(f"{status} {body[:200].decode(errors='replace')}")
            return None
        self.answers += 1
        found: dict[str, Any] = msgspec.json.decode(body)
        return found

    def close(self) -> None:
        """Look no more."""
        self._stopping.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY_S):
            self.overview()
