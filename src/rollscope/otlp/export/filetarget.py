"""OTLP into a file: one request in JSON on each line, as collectors write them."""

import sys
from pathlib import Path
from typing import IO

from rollscope.errors import CommandError
from rollscope.otlp.answering import Signal
from rollscope.otlp.export.sending import Delivered

__all__ = ["FileTarget"]


class FileTarget:
    """A file, or the output for `-`."""

    def __init__(self, path: str, *, is_added_to: bool = False) -> None:
        """Open the file.

        Args:
            path: The file.
            is_added_to: Whether what is there stays; else it is replaced.

        Raises:
            CommandError: It cannot be written.
        """
        self._is_own = path != "-"
        try:
            self._file: IO[bytes] = sys.stdout.buffer
            if self._is_own:
                self._file = Path(path).open("ab" if is_added_to else "wb")  # noqa: SIM115
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}") from None

    def send(self, signal: Signal, body: bytes) -> Delivered:
        """Write a line, which is in the kernel's hands when this returns."""
        del signal  # lines of both kinds stand side by side; each says what it is
        self._file.write(body + b"\n")
        self._file.flush()
        return Delivered()

    def close(self) -> None:
        """Close the file."""
        if self._is_own:
            self._file.close()
