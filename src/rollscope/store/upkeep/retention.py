"""Removing the oldest segments of a run, with all that belongs to them alone."""

from collections.abc import Sequence

import msgspec

from rollscope.errors import StoreError
from rollscope.store.sealer import Sealer
from rollscope.store.segments import Segment
from rollscope.store.upkeep import TRIES

__all__ = ["Removal", "plan_removal", "remove_segments"]


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
    for _ in range(TRIES):
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
