"""Choosing which of many points a picture shows: evenly, and the flagged ones first."""

from collections.abc import Sequence

__all__ = ["sample_evenly"]


def sample_evenly(flagged: Sequence[bool], most: int) -> list[int]:
    """Give the places of at most `most` points, in order.

    Flagged points are all kept, up to half of what may be shown, or more where there are few
    others; the rest is thinned out evenly. A picture of nothing but failures would be false.

    Args:
        flagged: One for each point, in the order in which they are thinned out.
        most: How many may be shown.
    """
    if len(flagged) <= most:
        return list(range(len(flagged)))
    marked = [place for place, is_flagged in enumerate(flagged) if is_flagged]
    plain = [place for place, is_flagged in enumerate(flagged) if not is_flagged]
    kept = _every(marked, max(most // 2, most - len(plain)))
    return sorted([*kept, *_every(plain, most - len(kept))])


def _every(places: Sequence[int], most: int) -> list[int]:
    """Give `most` of them, evenly spread."""
    if len(places) <= most:
        return list(places)
    return [places[turn * len(places) // most] for turn in range(most)]
