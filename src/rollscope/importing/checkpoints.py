"""Keeping the state of a long import, so that one that was stopped can go on.

The state is the import itself, pickled. Reading such a file runs what it says; so it lies in the
user's own cache, where nobody else can write, and never with the run, which may have come from
anywhere.
"""

import hashlib
import os
import pickle
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from rollscope._version import __version__

__all__ = ["Keeper", "Kept"]

_EVERY_S: Final = 5.0
_MOST_AGE_S: Final = 7 * 86_400
_SHARE: Final = 20
"""Keeping the state may take one part in so many of the time."""


class Kept(NamedTuple):
    """What was found of an import that did not end."""

    work: Any
    """The import."""
    share: float
    """How much of its work was done, of 1."""
    key: object
    """What it read, and how."""
    sizes: dict[str, int]
    """By its name below the draft, how much of each file had been written."""


class Keeper:
    """Keeps the state of the import into one run directory."""

    every_s = _EVERY_S

    def __init__(self, run: Path, draft: Path, key: object) -> None:
        """Keep nothing yet.

        Args:
            run: Where the run will be.
            draft: Where it is written.
            key: What has to be the same for an import to go on.
        """
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        name = hashlib.sha256(os.fsencode(run.resolve())).hexdigest()[:32]
        self._path = cache / "rollscope" / "importing" / name
        self._draft = draft
        self._key = (__version__, _code_age(), key)
        self._due = time.monotonic() + self.every_s
        self.share: float | None = None
        """How much of the work need not be done again; None if there is no state to go on from."""

    def is_due(self) -> bool:
        """Say whether the state should be kept again."""
        return time.monotonic() >= self._due

    def keep(self, work: object, share: float) -> None:
        """Keep the state, of which everything is written; where that cannot be, go on without."""
        began = time.monotonic()
        own = self._path.with_suffix(f".{os.getpid()}")
        try:
            sizes = {
                str(path.relative_to(self._draft)): path.stat().st_size for path in self._files()
            }
            own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(own, "wb", opener=_private) as file:
                pickle.dump(Kept(work, share, self._key, sizes), file, protocol=5)
            os.replace(own, self._path)
            self.share = share
        except Exception:  # no room, or something that cannot be pickled: it is only a shortcut
            with suppress(OSError):
                own.unlink()
        now = time.monotonic()
        self._due = now + max(self.every_s, _SHARE * (now - began))

    def find(self) -> Any | None:  # noqa: ANN401  (what was given to `keep`)
        """Give the import that can go on, with the draft as it was then; None if there is none."""
        try:
            about = self._path.stat()
            if about.st_uid != os.getuid() or about.st_mode & 0o022:
                return None
            with open(self._path, "rb") as file:
                kept = pickle.load(file)  # noqa: S301  (our own, in our own cache)
        except Exception:  # of another version, or damaged
            return None
        if not isinstance(kept, Kept) or kept.key != self._key or not self._take_back(kept.sizes):
            return None
        self.share = kept.share
        return kept.work

    def forget(self) -> None:
        """Remove the state, and what others have left that nobody came back to."""
        self.share = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
            too_old = time.time() - _MOST_AGE_S
            for path in self._path.parent.iterdir():
                if path.stat().st_mtime < too_old:
                    path.unlink()

    def _take_back(self, sizes: dict[str, int]) -> bool:
        """Remove what was written after the state was kept."""
        there = {str(path.relative_to(self._draft)): path for path in self._files()}
        if any(name not in there or there[name].stat().st_size < sizes[name] for name in sizes):
            return False
        for name, path in there.items():
            if name in sizes:
                os.truncate(path, sizes[name])
            else:
                path.unlink()
        return True

    def _files(self) -> list[Path]:
        return [path for path in self._draft.rglob("*") if path.is_file()]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _code_age() -> int:
    """Give a number that changes with the code that has to understand the state."""
    package = Path(__file__).parents[1]
    parts = ("importing", "otlp", "collect", "instrument/sinks", "model")
    return max(path.stat().st_mtime_ns for part in parts for path in (package / part).glob("*.py"))
