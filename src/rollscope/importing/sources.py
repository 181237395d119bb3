"""Finding the files that are to be read."""

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rollscope.errors import CommandError
from rollscope.model.rundir import LOG_SUFFIX

__all__ = ["Source", "find_sources"]

_SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".txt", ".log", ".trace")
_PACKED: Final = (".gz", ".zst")


class Source(NamedTuple):
    """A file as it was when it was found; what is written to it later is not read."""

    path: Path
    size: int
    modified_ns: int


def find_sources(places: Iterable[str | Path]) -> list[Source]:
    """Find the files behind files, folders and patterns, each once.

    Raises:
        CommandError: There is nothing at one of the places.
    """
    found: dict[tuple[int, int], Source] = {}
    for place in places:
        paths = list(_expand(str(place)))
        if not paths:
            raise CommandError(f"there is nothing to import at {place}")
        for path in paths:
            about = path.stat()
            source = Source(path, about.st_size, about.st_mtime_ns)
            found.setdefault((about.st_dev, about.st_ino), source)
    return list(found.values())


def _expand(place: str) -> Iterator[Path]:
    path = Path(place)
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from _walk(path)
    else:
        for match in sorted(glob.glob(place, recursive=True)):
            hit = Path(match)
            if hit.is_file():
                yield hit
            elif not place.endswith("**"):
                yield from _walk(hit)


def _walk(folder: Path) -> Iterator[Path]:
    """Give the files of a folder that may hold records, in a fixed order."""
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            plain = name
            for ending in _PACKED:
                plain = plain.removesuffix(ending)
            # A rotated file has a number behind its name.
            stem = plain.rstrip("0123456789").removesuffix(".")
            is_data = plain.endswith(_SUFFIXES) or stem.endswith(_SUFFIXES)
            if is_data and not name.startswith(".") and not name.endswith(LOG_SUFFIX):
                yield Path(top, name)
