"""The page: its built files, which lie in `static/`, and the loader that reads them.

What the page does is the business of its TypeScript; who may see it, of `server`.
"""

import gzip
import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from rollscope.errors import MissingExtra

__all__ = ["INDEX", "NEEDED", "Asset", "load_assets", "read_asset"]

INDEX: Final = "index.html"
NEEDED: Final = (INDEX, "app.js", "app.css", "report.js")
"""Without one of these there is no page."""

_MEDIA_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
}


class Asset(NamedTuple):
    """One file of the page, ready to be sent."""

    media_type: str
    body: bytes
    gzipped: bytes
    etag: str
    """Changes with the content, so that a browser notices an upgrade."""


def load_assets(folder: Traversable | None = None) -> dict[str, Asset]:
    """Read the files of the page by their names.

    Args:
        folder: Where they lie; in the package if not given.

    Raises:
        MissingExtra: The page was not built; the message says how to build it.
    """
    place = _static() if folder is None else folder
    found = {
        entry.name: _load(entry)
        for entry in (place.iterdir() if place.is_dir() else ())
        if entry.is_file() and _suffix(entry.name) in _MEDIA_TYPES
    }
    _check(set(found))
    return found


def read_asset(name: str) -> bytes:
    """Read one file of the page, for those who put it into a page of their own.

    Raises:
        MissingExtra: The page was not built.
    """
    place = _static() / name
    if not place.is_file():
        _check(set())
        raise MissingExtra(f"the page has no file {name!r}")
    return place.read_bytes()


def _static() -> Traversable:
    return files(__name__) / "static"


def _check(found: set[str]) -> None:
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise MissingExtra(
            f"the page is not complete, {', '.join(missing)} cannot be found: install Rollscope "
            "anew, or in a checkout run `make web`"
        )


def _load(entry: Traversable) -> Asset:
    body = entry.read_bytes()
    digest = hashlib.blake2b(body, digest_size=12).hexdigest()
    return Asset(
        media_type=_MEDIA_TYPES[_suffix(entry.name)],
        body=body,
        # No time in it: the same file is the same bytes.
        gzipped=gzip.compress(body, 9, mtime=0),
        etag=f'"{digest}"',
    )


def _suffix(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""
