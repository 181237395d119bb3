"""Starting and ending the demo's other processes: replicas, reward service, page."""

import contextlib
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

import rollscope as rs
from rollscope.errors import CommandError

__all__ = ["Child"]

_PATIENCE_S: Final = 5.0


class Child:
    """A process that serves on a port of its own, which it tells first, and that ends with us."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        role: str,
        rank: int = 0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Start it; `wait_ready` waits until it serves."""
        joined = rs.child_env() | {"ROLLSCOPE_ROLE": role, "ROLLSCOPE_RANK": str(rank)}
        # Only this process starts the page, and a Ctrl+C at the terminal is this process's to take.
        self._process = subprocess.Popen(  # noqa: S603  (our own modules)
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**joined, "ROLLSCOPE_VIEWER": "", **(environ or {})},
            start_new_session=True,
        )
        self.name = f"{role} {rank}"
        self.port = 0

    def wait_ready(self) -> None:
        """Wait until it has told its port.

        Raises:
            CommandError: It ended instead.
        """
        told = self._process.stdout.readline() if self._process.stdout else b""
        if not told.strip().isdigit():
            raise CommandError(f"{self.name} of the demo did not start; it said why above")
        self.port = int(told)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as the kernel does when memory is short."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Let it end by itself, or else make it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
