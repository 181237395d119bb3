"""Servers, programs and browsers to measure with, each a process of its own."""

from __future__ import annotations

import os
import selectors
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["DESKTOP", "Served", "Wire", "launch", "launch_browser", "serve", "wait_for", "wire_to"]

DESKTOP: Final[ViewportSize] = {"width": 1280, "height": 1000}
_PATIENCE_S: Final = 120.0
_PIECE: Final = 1 << 16


class Served(msgspec.Struct):
    """A server that is up."""

    url: str
    began_s: float
    """When its process was started, on the clock of `time.time`."""

    def page(self, run: str, page: str = "") -> str:
        """Give the address of a page of a run."""
        return f"{self.url}#/{run}/{page}"


@contextmanager
def launch(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a program while the block runs; it ends when its input does, or by a signal."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSCOPE")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=env, **{**pipes, **options})
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@contextmanager
def serve(place: Path) -> Iterator[Served]:
    """Serve a run, or a directory of runs."""
    began_s = time.time()
    command = [sys.executable, "-m", "rollscope", "view", str(place), "--no-token", "--port", "0"]
    with launch(command) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if " at http://" not in line:
            raise RuntimeError(f"the server did not start: {line}")
        yield Served(line.split(" at ")[1].strip(), began_s)


@contextmanager
def launch_browser() -> Iterator[Browser]:
    """Start Chromium without a screen or a GPU."""
    found = shutil.which("chromium")
    if found is None:
        raise SystemExit("bench_page needs chromium (Debian: apt-get install chromium)")
    with sync_playwright() as driver:
        # The sandbox cannot be had by root in a container.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


def wait_for(page: Page, script: str, *, within_s: float = _PATIENCE_S) -> float:
    """Ask a page again and again until it answers with something true; give that.

    The page's policy forbids the evaluation that playwright's own waiting is made of.
    """
    ends_at = time.monotonic() + within_s
    while not (found := page.evaluate(script)):
        if time.monotonic() > ends_at:
            raise RuntimeError(f"the page never came to: {script}")
        page.wait_for_timeout(20)
    return float(found)


class Wire:
    """A way to a server on which every byte is counted, in both directions."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.sent = 0
        """Bytes from the server to the page."""
        self.asked = 0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._stopping = threading.Event()
        self._thread.start()

    def close(self) -> None:
        """Let go of the port."""
        self._stopping.set()
        self._thread.join()

    def _work(self) -> None:
        with selectors.DefaultSelector() as ready, self._listening:
            ready.register(self._listening, selectors.EVENT_READ)
            while not self._stopping.is_set():
                for key, _ in ready.select(0.2):
                    if key.fileobj is self._listening:
                        self._join(ready)
                    else:
                        self._pass_on(ready, key)
            for key in list(ready.get_map().values()):
                with suppress(OSError):
                    key.fileobj.close()  # type: ignore[union-attr]

    def _join(self, ready: selectors.BaseSelector) -> None:
        page, _ = self._listening.accept()
        server = socket.create_connection(("127.0.0.1", self._target_port))
        ready.register(page, selectors.EVENT_READ, (server, False))
        ready.register(server, selectors.EVENT_READ, (page, True))

    def _pass_on(self, ready: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        here, (there, is_answer) = key.fileobj, key.data
        assert isinstance(here, socket.socket)
        try:
            data = here.recv(_PIECE)
            there.sendall(data)
        except OSError:
            data = b""
        if not data:
            for one in (here, there):
                with suppress(KeyError, ValueError):
                    ready.unregister(one)
                one.close()
        elif is_answer:
            self.sent += len(data)
        else:
            self.asked += len(data)


@contextmanager
def wire_to(served: Served) -> Iterator[tuple[Wire, Served]]:
    """Put a counter before a server; give it, and the server as pages reach it through it."""
    port = int(served.url.rstrip("/").rsplit(":", 1)[1])
    wire = Wire(port)
    try:
        yield wire, Served(served.url.replace(f":{port}", f":{wire.port}"), served.began_s)
    finally:
        wire.close()
