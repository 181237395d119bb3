"""Merging small segments into full ones, and deleting the files that were replaced."""

import time
from collections.abc import Sequence
from typing import Final

import msgspec
import pyarrow as pa

from rollscope.store.manifest import Shelf
from rollscope.store.schema import SEGMENT_SCHEMA
from rollscope.store.sealer import SEAL_ROWS, Progress, Sealer
from rollscope.store.segments import SEGMENT_SUFFIX, Segment, read_segment, write_segment
from rollscope.store.upkeep import TRIES

__all__ = ["merge_segments", "tidy"]

_GRACE_S: Final = 600.0


class _Group(msgspec.Struct):
    """Segments that become one."""

    old: list[Segment]
    new: Segment | None = None


def merge_segments(sealer: Sealer, progress: Progress | None = None) -> int:
    """Merge small neighbours, rewrite what an older version wrote; say how many files it saves.

    Raises:
        OSError: They cannot be read or written; the run is as it was.
    """
    shelf = sealer.shelf
    if shelf is None:
        return 0
    try:
        return _merge_once(sealer, shelf, progress)
    except FileNotFoundError:
        if shelf.newest() == sealer.manifest.number:
            raise
        sealer.poll()  # others were faster, and have deleted what they replaced or removed
        return _merge_once(sealer, shelf, progress)


def _merge_once(sealer: Sealer, shelf: Shelf, progress: Progress | None) -> int:
    groups = _plan_merges(sealer.manifest.segments)
    total = sum(segment.size for group in groups for segment in group.old)
    done = 0
    written: list[Segment] = []
    published: list[_Group] = []
    try:
        for group in groups:
            tables = [read_segment(shelf.folder, segment) for segment in group.old]
            group.new = write_segment(shelf.folder, group.old[0].table, [pa.concat_tables(tables)])
            written.append(group.new)
            done += sum(segment.size for segment in group.old)
            if progress is not None:
                progress(done, total)
        published = _publish_merges(sealer, groups)
    finally:
        used = {group.new.file for group in published if group.new is not None}
        shelf.discard([segment for segment in written if segment.file not in used])
    return sum(len(group.old) - 1 for group in published)


def _plan_merges(segments: Sequence[Segment]) -> list[_Group]:
    groups: list[_Group] = []
    for table in dict.fromkeys(segment.table for segment in segments):
        group: list[Segment] = []
        for segment in (each for each in segments if each.table == table):
            if group and sum(each.rows for each in group) + segment.rows > SEAL_ROWS:
                groups.append(_Group(group))
                group = []
            group.append(segment)
        groups.append(_Group(group))
    return [group for group in groups if len(group.old) > 1 or _is_older(group.old[0])]


def _is_older(segment: Segment) -> bool:
    return segment.schema < SEGMENT_SCHEMA


def _publish_merges(sealer: Sealer, groups: list[_Group]) -> list[_Group]:
    """Publish what was merged, or the part of it that others have left as it was."""
    for _ in range(TRIES):
        there = {segment.file for segment in sealer.manifest.segments}
        groups = [group for group in groups if all(old.file in there for old in group.old)]
        if not groups:
            return []
        if sealer.replace(_replaced(sealer.manifest.segments, groups)):
            return groups
        sealer.poll()  # takes the winner's manifest over
    return []


def _replaced(segments: Sequence[Segment], groups: Sequence[_Group]) -> list[Segment]:
    """Put each new segment where the first of its old ones was."""
    heads = {group.old[0].file: group.new for group in groups}
    gone = {segment.file for group in groups for segment in group.old}
    result: list[Segment] = []
    for segment in segments:
        new = heads.get(segment.file)
        if new is not None:
            result.append(new)
        elif segment.file not in gone:
            result.append(segment)
    return result


def tidy(sealer: Sealer) -> None:
    """Delete what no reader can need any more.

    While a run goes on, its readers do that with time. When it is over, nobody publishes the
    manifests by which they count; then what the newest one does not name goes once that one is ten
    minutes old. Sooner, a reader that has just read the one before would miss its files.
    """
    shelf = sealer.shelf
    if shelf is None:
        return
    shelf.sweep()
    before = time.time() - _GRACE_S
    if not sealer.intake.is_over() or sealer.manifest.made_ns > before * 1e9:
        return
    named = {segment.file for segment in sealer.manifest.segments}
    for path in shelf.folder.glob(f"*{SEGMENT_SUFFIX}"):
        if path.name not in named and path.stat().st_mtime < before:
            path.unlink(missing_ok=True)
