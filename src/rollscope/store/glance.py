"""How the process behind a log is, by the first and the last frames of it: no run is opened."""

from pathlib import Path
from typing import Final, Literal, NamedTuple

from rollscope.model.batch import FROM_FILES, decode_batch
from rollscope.model.frames import scan_frames
from rollscope.store.liveness import is_alive

__all__ = ["LogGlance", "glance_at"]

_PEEK_BYTES: Final = 65_536


class LogGlance(NamedTuple):
    """What can be told of a process from outside."""

    seen_ns: int
    """When it was last seen."""
    status: Literal["alive", "ended", "imported", "dead", "begun"]
    """`begun`: it has not written enough to tell."""


def glance_at(log: Path, now_ns: int) -> LogGlance:
    """Look at a log."""
    with log.open("rb") as file:
        first = scan_frames(file.read(_PEEK_BYTES)).bodies
        file.seek(max(file.seek(0, 2) - _PEEK_BYTES, 0))
        last = scan_frames(file.read(), final=True).bodies
    header = decode_batch(first[0]).header if first else None
    if header is None or not last:
        return LogGlance(log.stat().st_mtime_ns, "begun")
    batch = decode_batch(last[-1])
    seen_ns = batch.clock.wall_at(batch.mono_ns)
    if batch.end is not None:
        return LogGlance(seen_ns, "imported" if batch.end in FROM_FILES else "ended")
    lives = is_alive(header, seen_ns + batch.clock.jumped_ns, now_ns)
    return LogGlance(seen_ns, "alive" if lives else "dead")
