"""Spans on tracks: those of a track nest, and nothing is drawn inside what it is no part of.

Viewers draw what lies on one track as calls within calls. So a span joins a track only while the
track is empty, or right above its own parent or session; whatever else runs at the same time gets a
track of its own. States on a lane have no parents among themselves: there, lying inside is enough.
"""

import heapq
from typing import Final, NamedTuple

__all__ = ["NEVER_NS", "Group", "Spread"]

NEVER_NS: Final = 2**63 - 1
"""When a span ends that has not ended."""


class Spread(NamedTuple):
    """What packing has to know of a span; the names are those of the columns."""

    start_ns: int
    end_ns: int
    """Not before the start; `NEVER_NS` if the span is open."""
    span_id: int
    parent_id: int | None
    session_id: int | None


class Group:
    """Packs spans that belong together, such as those of a session, onto as few tracks as it can.

    They must come by start, and of those that start at once the longer ones first.
    """

    def __init__(self, *, nests_freely: bool = False) -> None:
        """Begin without tracks.

        Args:
            nests_freely: Whether a span may lie inside any other, not only inside its ancestors.
        """
        self._nests_freely = nests_freely
        self._tracks: list[list[Spread]] = []
        """What is open on each, the innermost last."""
        self._free: list[int] = []
        self._busy: list[tuple[int, int]] = []
        """When each of the others is free again, and which it is; the next one first."""
        self._track_of: dict[int, int] = {}
        """Where spans are that have not been seen to end."""

    def place(self, span: Spread) -> int:
        """Give the number of the track that a span lies on, the first being 0."""
        self._free_until(span.start_ns)
        found = self._free_place_inside(span) if self._nests_freely else self._ancestor_of(span)
        if found is None:
            found = self._empty_track(span)
        self._tracks[found].append(span)
        self._track_of[span.span_id] = found
        return found

    def _free_until(self, now_ns: int) -> None:
        while self._busy and self._busy[0][0] <= now_ns:
            _, number = heapq.heappop(self._busy)
            self._close_until(number, now_ns)
            heapq.heappush(self._free, number)

    def _close_until(self, number: int, now_ns: int) -> None:
        track = self._tracks[number]
        while track and track[-1].end_ns <= now_ns:
            span_id = track.pop().span_id
            if self._track_of.get(span_id) == number:
                del self._track_of[span_id]

    def _ancestor_of(self, span: Spread) -> int | None:
        for ancestor in (span.parent_id, span.session_id):
            number = None if ancestor is None else self._track_of.get(ancestor)
            if number is None:
                continue
            self._close_until(number, span.start_ns)
            track = self._tracks[number]
            # An empty one is among the free ones already, which must not be handed out twice.
            is_inside = track and _holds(track[-1], span)
            if is_inside and track[-1].span_id in (span.parent_id, span.session_id):
                return number
        return None

    def _free_place_inside(self, span: Spread) -> int | None:
        for number, track in enumerate(self._tracks):
            self._close_until(number, span.start_ns)
            if track and _holds(track[-1], span):
                return number
        return None

    def _empty_track(self, span: Spread) -> int:
        if self._free:
            number = heapq.heappop(self._free)
        else:
            number = len(self._tracks)
            self._tracks.append([])
        heapq.heappush(self._busy, (span.end_ns, number))
        return number


def _holds(outer: Spread, inner: Spread) -> bool:
    """Say whether a span that starts no earlier lies inside another that has not ended.

    A viewer cannot tell which of two is inside if both start at once and one of them has no end.
    """
    is_unclear = outer.start_ns == inner.start_ns and NEVER_NS == outer.end_ns != inner.end_ns
    return inner.end_ns <= outer.end_ns and not is_unclear
