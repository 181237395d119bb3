"""The dice of a simulated run: the same seed always throws the same."""

from itertools import count
from random import Random

__all__ = ["MS", "Chance"]

MS = 1_000_000
"""A millisecond, in the nanoseconds that everything is simulated in."""


class Chance:
    """Draws all that is left to chance.

    What most runs have little of is drawn apart, so that it changes nothing else about a run.
    """

    def __init__(self, seed: int) -> None:
        self.usual = Random(seed)  # noqa: S311  (wants repetition, not secrecy)
        self.odd = Random(seed)  # noqa: S311  (apart, as said above)
        self._traces = count(1)

    def happens(self, share: float) -> bool:
        """Say whether something odd happens that does so in a share of all cases."""
        return share > 0 and self.odd.random() < share

    def trace(self) -> bytes:
        """Give a fresh trace id."""
        return self.usual.randbytes(8) + next(self._traces).to_bytes(8)

    def odd_trace(self) -> bytes:
        """Give a fresh trace id for something odd."""
        return self.odd.randbytes(8) + bytes(8)

    def heavy(self, median_ms: float, spread: float = 0.8) -> int:
        """Draw a duration with a heavy tail."""
        value = self.usual.lognormvariate(0.0, spread) * median_ms
        if self.usual.random() < 0.01:
            value *= self.usual.uniform(4, 12)
        return max(int(value * MS), 20_000)
