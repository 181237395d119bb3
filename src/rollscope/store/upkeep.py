"""Looking after the files of a run: sealing, merging, removing what is old, dropping logs.

Readers and other caretakers may be at work on the same run. New files are written first and then
published with one manifest; if another was faster, what still fits its manifest is published once
more and the rest thrown away. Either way every row is in exactly one segment.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from rollscope.errors import StoreError
from rollscope.model.frames import scan_frames
from rollscope.model.rundir import LOG_DIR, LOG_SUFFIX
from rollscope.store.followedlog import LogState
from rollscope.store.ledgerstate import LedgerState
from rollscope.store.manifest import Shelf
from rollscope.store.schema import SEGMENT_SCHEMA
from rollscope.store.sealer import SEAL_ROWS, Progress, Sealer
from rollscope.store.segments import SEGMENT_SUFFIX, Segment, is_sound, read_segment, write_segment

__all__ = [
    "Removal",
    "Sizes",
    "drop_logs",
    "finished_logs",
    "is_over",
    "merge_segments",
    "plan_removal",
    "remove_segments",
    "seal_all",
    "sizes_of",
    "tidy",
]

_TRIES: Final = 3
_GRACE_S: Final = 600.0
_SURELY_OVER_NS: Final = 3_600_000_000_000
"""How long a process that did not close its log has to be silent before its log is dropped: one
that was only stopped, or cut off from the file system, may write again."""


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


class Removal(msgspec.Struct, kw_only=True):
    """What retention takes away."""

    segments: list[Segment] = []

    @property
    def size(self) -> int:
        """Bytes of the segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def spans(self) -> int:
        """Spans in the segments."""
        return sum(segment.rows for segment in self.segments if segment.table == "spans")


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


def seal_all(sealer: Sealer, progress: Progress | None = None) -> None:
    """Take in the logs and seal all that is final.

    Raises:
        StoreError: Segments cannot be written.
    """
    if sealer.shelf is None:
        raise StoreError(
            f"neither {sealer.run} nor your cache directory can be written to, so nothing can be "
            "sealed; set XDG_CACHE_HOME to a directory of yours"
        )
    for _ in range(_TRIES):
        sealer.poll(progress)
        # Heart-beats and ends make no rows, but belong to what is known of the logs.
        is_tail_empty = not any(sealer.tail.values())
        if is_tail_empty and sealer.intake.to_state() == sealer.sealed_state():
            return
        if not sealer.seal():
            raise StoreError("; ".join(sealer.problems) or "segments cannot be written")
    # A sealer that reads its run anew must not publish anything before that is sealed.
    if sealer.shelf.load().manifest.segments != sealer.manifest.segments:
        raise StoreError("other readers keep sealing the run; nothing was changed, try again")


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


def is_over(sealer: Sealer) -> bool:
    """Say whether all processes of a run have ended or died."""
    now_ns = time.time_ns()
    intake = sealer.intake
    return not any(intake.is_alive(ledger, now_ns) for ledger in intake.ledgers.values())


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
    if not is_over(sealer) or sealer.manifest.made_ns > before * 1e9:
        return
    named = {segment.file for segment in sealer.manifest.segments}
    for path in shelf.folder.glob(f"*{SEGMENT_SUFFIX}"):
        if path.name not in named and path.stat().st_mtime < before:
            path.unlink(missing_ok=True)


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
    for _ in range(_TRIES):
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


def plan_removal(
    sealer: Sealer,
    *,
    older_than_ns: int | None = None,
    excess_bytes: int = 0,
) -> Removal:
    """Choose segments to remove, the oldest first.

    What else was recorded, facts above all, stays as long as any span that it may belong to.

    Args:
        sealer: The run.
        older_than_ns: Remove what had ended by then.
        excess_bytes: Remove until about as much is gone, however young it is.
    """
    spans = sorted(_of_spans(sealer.manifest.segments), key=lambda segment: segment.high_ns)
    chosen = Removal()
    for number, segment in enumerate(spans):
        is_old = older_than_ns is not None and segment.high_ns < older_than_ns
        if not is_old and chosen.size >= excess_bytes:
            break
        chosen.segments.append(segment)
        kept_ns = min((each.low_ns for each in spans[number + 1 :]), default=None)
        chosen.segments += _orphans(sealer.manifest.segments, chosen, kept_ns, older_than_ns)
    return chosen


def _of_spans(segments: Sequence[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment.table == "spans"]


def _orphans(
    segments: Sequence[Segment], chosen: Removal, kept_ns: int | None, older_than_ns: int | None
) -> list[Segment]:
    """Give what was recorded before every span that stays; if none stays, all that is old."""
    before = kept_ns if kept_ns is not None else older_than_ns
    known = {segment.file for segment in chosen.segments}
    return [
        segment
        for segment in segments
        if segment.table != "spans"
        and segment.file not in known
        and (before is None or segment.high_ns < before)
    ]


def remove_segments(sealer: Sealer, removal: Removal) -> Removal:
    """Remove segments at once, their files included; give what was really removed.

    Raises:
        StoreError: Others kept changing the run.
    """
    wanted = {segment.file for segment in removal.segments}
    shelf = sealer.shelf
    for _ in range(_TRIES):
        found = Removal(segments=[s for s in sealer.manifest.segments if s.file in wanted])
        if not found.segments or shelf is None:
            return Removal()
        kept = [segment for segment in sealer.manifest.segments if segment.file not in wanted]
        if sealer.replace(kept, removed_rows=found.spans):
            # A reader that still uses them finds them missing and takes the new manifest over.
            shelf.discard(found.segments)
            shelf.discard_indexes(kept)  # they hold what was removed
            return found
        sealer.poll()
    raise StoreError("other readers keep changing the run; nothing was removed, try again")


def finished_logs(sealer: Sealer, now_ns: int | None = None) -> list[Path]:
    """Give the logs that hold nothing but what is sealed, of processes that are over."""
    now = time.time_ns() if now_ns is None else now_ns
    state = sealer.sealed_state()
    ledgers = {ledger.process: ledger for ledger in state.ledgers}
    folder = sealer.run / LOG_DIR
    return [
        folder / name
        for name, log in sorted(state.logs.items())
        if _is_finished(folder / name, log, ledgers.get(log.process or b""), now)
    ]


def _is_finished(path: Path, log: LogState, ledger: LedgerState | None, now_ns: int) -> bool:
    if ledger is None or log.problems or log.damaged_bytes:
        return False  # what could not be read may be worth another look
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    if ledger.end is not None:
        return status.st_size == log.offset
    # A frame that was never finished may follow what is sealed; a dead process left it.
    is_silent = now_ns - max(ledger.last_seen_ns, status.st_mtime_ns) > _SURELY_OVER_NS
    return is_silent and not _has_frames(path, log.offset)


def _has_frames(path: Path, offset: int) -> bool:
    with path.open("rb") as file:
        file.seek(offset)
        return bool(scan_frames(file.read(), final=True).bodies)


def drop_logs(sealer: Sealer, now_ns: int | None = None) -> list[Path]:
    """Delete the logs that `finished_logs` names; what is in them stays in the segments.

    How far they were read stays in the state, so that a damaged segment is not taken for one that
    the logs could bring back.

    Raises:
        StoreError: Segments are damaged, so the logs are still needed.
    """
    logs = finished_logs(sealer, now_ns)
    folder = sealer.shelf.folder if sealer.shelf is not None else sealer.run
    for segment in sealer.manifest.segments if logs else ():
        if not is_sound(folder, segment, deep=True):
            raise StoreError(
                f"the segment {segment.file} is damaged, so the logs are still needed; run "
                "`rollscope compact` without --drop-logs first, which reads them again"
            )
    for path in logs:
        path.unlink(missing_ok=True)
    return logs
