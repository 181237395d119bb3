"""Files that are written as a whole: nobody reads half of one, and no draft is left behind."""

import os
from pathlib import Path

__all__ = ["replace_file", "write_private"]


def write_private(path: Path, data: bytes, *, is_synced: bool = False) -> None:
    """Write a new file that its owner alone may read; one that is there, or a link, is removed.

    Args:
        path: Where.
        data: What it holds.
        is_synced: Whether it is on the disk when this returns.

    Raises:
        OSError: It cannot be written; there is none then.
    """
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(data)
            out.flush()
            if is_synced:
                os.fsync(file)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def replace_file(path: Path, data: bytes, *, mode: int = 0o600, is_synced: bool = False) -> None:
    """Have a file hold this; whoever reads it sees the old or the new.

    Args:
        path: Which file; one thread of a process writes it at a time.
        data: What it holds.
        mode: Who may read it.
        is_synced: Whether it is on the disk before it takes the place of the old one.

    Raises:
        OSError: It cannot be written; the old one stays.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    write_private(draft, data, is_synced=is_synced)
    try:
        draft.chmod(mode)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
