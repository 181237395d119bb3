"""Files that are never read, and what makes one of them that can be."""

from pathlib import Path
from typing import Final

__all__ = ["why_refused"]

_SLIME_DUMP: Final = (
    "a pickled file is never loaded, since that could run anything; if it is a dump of slime's, "
    "its own `python tools/trace_timeline_viewer.py {name} --no-serve` writes "
    "{stem}.trace_timeline_cache.json beside it, and that can be imported"
)
_PERFETTO: Final = (
    "this is Perfetto's binary form, which is not read; export it as JSON: "
    "`traceconv json {name} {stem}.json`, or Perfetto's page under `Convert to .json`"
)
_PACKET: Final = b"\n"
"""How every packet of such a file begins, before its length."""


def why_refused(path: Path) -> str | None:
    """Say why a file of no known format is not read, if there is more to say than that."""
    if path.suffix in (".pt", ".pth", ".pkl"):
        return _SLIME_DUMP.format(name=path.name, stem=path.stem)
    if path.suffix in (".pftrace", ".perfetto-trace") or _is_perfetto(path):
        return _PERFETTO.format(name=path.name, stem=path.stem)
    return None


def _is_perfetto(path: Path) -> bool:
    """Look whether a file begins with two packets, one right behind the other."""
    try:
        with path.open("rb") as file:
            head = file.read(1 << 20)
    except OSError:
        return False
    if not head.startswith(_PACKET):
        return False
    size = shift = 0
    for at, byte in enumerate(head[1:6], 2):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size > 0 and head[at + size : at + size + 1] == _PACKET
    return False
