"""Which frames of a process have come: numbers in any order, kept as unbroken stretches."""

from bisect import bisect_right

__all__ = ["FrameNumbers"]


class FrameNumbers:
    """Which frames of a process have been taken, whatever the order they came in."""

    def __init__(self, ranges: list[list[int]] | None = None) -> None:
        self.ranges: list[list[int]] = ranges or []
        """First and last number of each unbroken stretch, in order."""

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self.ranges, number, key=_first)
        return at > 0 and number <= self.ranges[at - 1][1]

    def take(self, number: int) -> bool:
        """Say whether a frame is new, and remember it."""
        ranges = self.ranges
        if ranges and ranges[-1][1] == number - 1:  # the next one, nearly always
            ranges[-1][1] = number
            return True
        at = bisect_right(ranges, number, key=_first)
        if at and number <= ranges[at - 1][1]:
            return False
        joins_left = at > 0 and ranges[at - 1][1] == number - 1
        joins_right = at < len(ranges) and ranges[at][0] == number + 1
        if joins_left and joins_right:
            ranges[at - 1][1] = ranges.pop(at)[1]
        elif joins_left:
            ranges[at - 1][1] = number
        elif joins_right:
            ranges[at][0] = number
        else:
            ranges.insert(at, [number, number])
        return True

    @property
    def last(self) -> int:
        """The highest number taken; -1 if none was."""
        return self.ranges[-1][1] if self.ranges else -1

    @property
    def missing(self) -> int:
        """How many frames from 0 up to the last one have not come."""
        taken = sum(high - max(low, 0) + 1 for low, high in self.ranges if high >= 0)
        return max(self.last + 1, 0) - taken


def _first(stretch: list[int]) -> int:
    return stretch[0]
