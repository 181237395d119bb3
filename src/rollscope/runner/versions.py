"""The weight version as the runner knows it, and how old an outcome is against it."""

from collections.abc import Iterable

__all__ = ["Versions"]


class Versions:
    """Counts weight updates; None until the first one is told."""

    def __init__(self) -> None:
        """Know of none yet."""
        self.now: int | None = None

    def age_of(self, versions: Iterable[int]) -> int | None:
        """Give how many versions the oldest segment is behind; None where that is not known."""
        oldest = min(versions, default=None)
        return None if oldest is None or self.now is None else self.now - oldest
