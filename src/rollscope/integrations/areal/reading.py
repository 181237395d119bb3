"""Finding AReaL's files and reading their lines, whatever state they are in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollscope.importing.reading import Reader
from rollscope.importing.sources import Source
from rollscope.importing.values import decode_object

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Skipped", "find_files", "read_objects"]


@dataclass
class Skipped:
    """Lines that were left out."""

    bad: int = 0
    """No JSON object, or cut off."""
    other: int = 0
    """Of the other kind of file."""

    def __str__(self) -> str:
        return f"{self.bad} bad lines and {self.other} of another kind left out"


def find_files(source: str | os.PathLike[str]) -> list[Path]:
    """Give the file, the `*.jsonl` of a folder and its folders, or what a pattern matches.

    Raises:
        FileNotFoundError: There is none.
    """
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(path.rglob("*.jsonl"))
    else:
        found = sorted(Path(name) for name in glob(os.fspath(source), recursive=True))
    files = [each for each in found if each.is_file()]
    if not files:
        raise FileNotFoundError(f"no file of AReaL's tracer is at {source}")
    return files


def read_objects(path: Path, skipped: Skipped) -> Iterator[dict[str, Any]]:
    """Give the JSON objects of a file, line by line; what is none is counted."""
    about = path.stat()
    reader = Reader(Source(path, about.st_size, about.st_mtime_ns))
    try:
        for line in reader.lines():
            found = None if line.trouble else decode_object(line.raw)
            if found is None:
                skipped.bad += 1
            else:
                yield found[0]
    finally:
        reader.close()
