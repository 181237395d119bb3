"""The page that the demo is watched on: `rollscope view`, started beside it."""

import contextlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from rollscope.errors import CommandError

__all__ = ["Page"]

_ADDRESS: Final = re.compile(r"http://\S+")
_PATIENCE_S: Final = 5.0


class Page:
    """A server of all runs in a directory, until it is closed."""

    def __init__(self, directory: Path, port: int | None) -> None:
        """Start it; nothing is waited for."""
        self._private = tempfile.TemporaryDirectory(prefix="rollscope-demo-")
        self.token_file = Path(self._private.name, "token")
        command = [sys.executable, "-m", "rollscope", "view", "--dir", str(directory)]
        command += ["--token-file", str(self.token_file), "--until", "input"]
        if port is not None:
            command += ["--port", str(port)]
        # Of its own session: Ctrl+C ends the demo, and the end of the demo closes the page's input.
        self._process = subprocess.Popen(  # noqa: S603  (our own command)
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.address = ""
        self.lines: list[str] = []

    def wait_ready(self) -> None:
        """Wait until it tells its address.

        Raises:
            CommandError: It ended instead.
        """
        for line in self._process.stdout or ():
            self.lines.append(line.rstrip())
            found = _ADDRESS.search(line)
            if found is not None:
                self.address = found[0]
                return
        raise CommandError("the page did not start; it said why above")

    def address_of(self, run: str) -> str:
        """Give the address of a run."""
        return f"{self.address}#/{quote(run, safe='')}/now"

    @property
    def sink(self) -> str:
        """Where processes without the same files send what they record."""
        return f"http://{urlsplit(self.address).netloc}"

    @property
    def token(self) -> str:
        """What they have to say there."""
        return self.token_file.read_text().strip()

    def close(self) -> None:
        """End it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE_S)
        self._process.kill()
        self._process.wait()
        self._private.cleanup()
