"""Finding the files that are to be read."""

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rollscope.errors import CommandError
from rollscope.model.rundir import RUN_FILE

__all__ = ["Source", "find_sources"]

_SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".txt", ".log", ".trace", ".prom")
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
    found: dict[tuple[int, int] | Path, Source] = {}
    for place in places:
        before = len(found)
        paths = list(_expand(str(place)))
        for path in paths:
            try:
                about = path.stat()
            except OSError:  # a link that leads nowhere, or gone by now: told when it is read
                found.setdefault(path, Source(path, 0, 0))
                continue
            if stat.S_ISREG(about.st_mode):
                source = Source(path, about.st_size, about.st_mtime_ns)
                found.setdefault((about.st_dev, about.st_ino), source)
        if len(found) == before and not paths:
            raise CommandError(_nothing_at(str(place)))
    return list(found.values())


def _nothing_at(place: str) -> str:
    if os.path.isdir(place):
        return (
            f"there is nothing to import in {place}: no file ends in {', '.join(_SUFFIXES)}, "
            f"packed ({', '.join(_PACKED)}) or not; name the files if theirs end otherwise"
        )
    return f"there is nothing to import at {place}: no such file or folder, and no match"


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
    """Give the files of a folder that may hold records, in a fixed order; our own runs apart."""
    seen: set[tuple[int, int]] = set()
    for top, folders, files in os.walk(folder, followlinks=True):
        about = os.stat(top)
        # A link may lead to a folder above it.
        if RUN_FILE in files or (about.st_dev, about.st_ino) in seen:
            folders.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and _may_hold_records(name):
                yield Path(top, name)


def _may_hold_records(name: str) -> bool:
    for ending in _PACKED:
        name = name.removesuffix(ending)
    # A rotated file has a number behind its name.
    stem = name.rstrip("0123456789").removesuffix(".")
    return name.endswith(_SUFFIXES) or stem.endswith(_SUFFIXES)
