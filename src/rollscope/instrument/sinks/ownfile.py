"""Files that a sink holds open in a program which may close any descriptor under it.

A program that becomes a daemon closes every number it finds, and gets some of them again for files
of its own. So a descriptor is looked at before it is used: is it still the file it was? But no more
than once for a frame: every look lets go of the interpreter, and to get it back stops the program.
"""

import os

__all__ = ["OwnFile", "append_whole"]


class OwnFile:
    """A file that is opened again when the program has closed it."""

    def __init__(self, path: str, flags: int, mode: int = 0o600) -> None:
        """Open a file, to be made with `mode` if `flags` say so."""
        self.path = path
        self._flags = flags | os.O_CLOEXEC
        self._mode = mode
        self._open()

    def _open(self) -> None:
        self._descriptor = os.open(self.path, self._flags, self._mode)
        status = os.fstat(self._descriptor)
        self._identity = (status.st_dev, status.st_ino)

    @property
    def is_open(self) -> bool:
        """Whether the descriptor is still the file it was."""
        return self._status() is not None

    @property
    def is_in_place(self) -> bool:
        """Whether the descriptor is still the file it was, and a name leads to it."""
        status = self._status()
        return status is not None and status.st_nlink > 0

    @property
    def is_removed(self) -> bool:
        """Whether the file is open, and no name leads to it any more."""
        status = self._status()
        return status is not None and status.st_nlink == 0

    def _status(self) -> os.stat_result | None:
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return None
        return status if (status.st_dev, status.st_ino) == self._identity else None

    def descriptor(self) -> int:
        """Give the descriptor, of the file opened again if need be."""
        if not self.is_open:
            self._open()
        return self._descriptor

    def fileno(self) -> int:
        """Give the descriptor as it is, to whoever has just looked at it."""
        return self._descriptor

    def close(self) -> None:
        """Close the file, unless somebody else has."""
        if self.is_open:
            os.close(self._descriptor)
        self._descriptor = -1


def append_whole(descriptor: int, data: bytes) -> None:
    """Append to a file, everything or nothing: what was cut short is taken back."""
    written = 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:] if written else data)
    except OSError:
        if written:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
        raise
