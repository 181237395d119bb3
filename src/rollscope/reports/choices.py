"""What a reader of a report gets to see, and what is left out to keep it small."""

from typing import Final

import msgspec

__all__ = [
    "MANY_SPANS",
    "MOST_SPANS",
    "ROUNDED_NS",
    "ReportChoices",
]

MANY_SPANS: Final = 250_000
"""From here on times are rounded."""
ROUNDED_NS: Final = 100_000
MOST_SPANS: Final = 1_200_000
"""A million and some; beyond it the timeline is drawn from tiles."""


class ReportChoices(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a report."""

    scope: str = "all"
    """Which steps: latest, all, 37 or 30-40."""
    payloads: bool = False
    """Whether recorded text goes in."""
    ids: bool = False
    """Whether sessions keep their whole ids; four bytes name them else."""
