"""How much a run takes up on disk, and by what."""

from pathlib import Path

import msgspec

from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
from rollscope.store.sealer import Sealer

__all__ = ["Sizes", "sizes_of"]


class Sizes(msgspec.Struct, kw_only=True):
    """How much a run takes up on disk."""

    segments: int = 0
    """How many there are."""
    spans: int = 0
    """How many of them are sealed."""
    segment_bytes: int = 0
    logs: int = 0
    log_bytes: int = 0
    payload_bytes: int = 0
    other_bytes: int = 0
    """Manifests, and segments that were replaced and will be deleted soon."""

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.segment_bytes + self.log_bytes + self.payload_bytes + self.other_bytes


def sizes_of(sealer: Sealer) -> Sizes:
    """Measure a run as it lies on disk."""
    segments = sealer.manifest.segments
    named = {segment.file for segment in segments}
    sizes = Sizes(
        segments=len(segments),
        spans=sum(segment.rows for segment in segments if segment.table == "spans"),
        segment_bytes=sum(segment.size for segment in segments),
    )
    files = set(_files_below(sealer.run))
    if sealer.shelf is not None:
        files |= set(_files_below(sealer.shelf.folder))
    for path in files:
        size = _size(path)
        if path.parent.name == LOG_DIR and path.suffix == LOG_SUFFIX:
            sizes.logs += 1
            sizes.log_bytes += size
        elif path.suffix == LOG_SUFFIX:
            sizes.payload_bytes += size
        elif path.name not in named:
            sizes.other_bytes += size
    return sizes


def _files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # swept away meanwhile
        return 0
