"""Where an export goes: a file that is there whole or not at all, packed or not, or the output."""

import gzip
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

__all__ = ["Counted", "inferred_path", "open_output", "written_whole"]

_PACKED: Final = ".gz"


class Counted:
    """Counts what is written."""

    def __init__(self, inner: BinaryIO) -> None:
        self._inner = inner
        self.bytes = 0

    def write(self, data: bytes, /) -> None:
        """Write some bytes."""
        self._inner.write(data)
        self.bytes += len(data)


def inferred_path(run: Path, ending: str) -> Path:
    """Give the file for a run: beside it, or in the working folder if nothing can be put there."""
    run = run.resolve()
    folder = run.parent if os.access(run.parent, os.W_OK) else Path.cwd()
    return folder / f"{run.name.removesuffix('.rsl')}{ending}"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give the file to write so that nobody ever finds half of one: it takes its name at the end.

    A device, a pipe or a link is not ours to replace: it is written to as it is.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        yield path
        return
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def open_output(path: Path | None) -> Iterator[Counted]:
    """Open a file, packed if its name ends with `.gz`; None for the output of the program."""
    if path is None:
        yield Counted(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with written_whole(path) as part, part.open("wb") as plain:
        if path.suffix == _PACKED:
            with gzip.GzipFile(path.stem, "wb", 6, plain, mtime=0) as packed:
                yield Counted(packed)  # type: ignore[arg-type]  # it is written to only
        else:
            yield Counted(plain)
