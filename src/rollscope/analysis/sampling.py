"""Choosing which of many points a picture shows: evenly, and never without the flagged ones."""

from collections.abc import Sequence

__all__ = ["sample_evenly"]


def sample_evenly(flagged: Sequence[bool], most: int) -> list[int]:
    """Give the places of at most `most` points, in order.

    Flagged points are all kept; the rest is thinned out evenly. Only where there are more flagged
    points than may be shown, these are thinned out too.

    Args:
        flagged: One for each point, in the order in which they are thinned out.
        most: How many may be shown.
    """
    if len(flagged) <= most:
        return list(range(len(flagged)))
    kept = _every(([place for place, is_flagged in enumerate(flagged) if is_flagged]), most)
    plain = [place for place, is_flagged in enumerate(flagged) if not is_flagged]
    return sorted([*kept, *_every(plain, most - len(kept))])


def _every(places: Sequence[int], most: int) -> list[int]:
    """Give `most` of them, evenly spread."""
    if len(places) <= most:
        return list(places)
    return [places[turn * len(places) // most] for turn in range(most)]
