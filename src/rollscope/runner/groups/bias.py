"""How much settling groups early favours short answers: cut members are the slow ones."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from rollscope.runner.guard import quietly

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from rollscope.runner.outcome import Outcome

__all__ = ["GroupStats", "GroupTally", "Lengths", "bias_of", "measure"]

_LAST: Final = 1_000
"""Groups that the figures are taken over."""


class Lengths(msgspec.Struct, frozen=True):
    """Sums over the started members of one group, in one unit."""

    kept: int
    kept_sum: float
    started: int
    started_sum: float


class GroupStats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures over the last groups."""

    groups: int
    """How many groups; at most the last 1,000."""
    length_bias: float | None
    """Mean run time of kept members by that of all started ones; 1.0 is no bias."""
    length_bias_tokens: float | None
    """The same in tokens, over the groups whose tokens are known."""
    cut_share: float | None
    """Share of the started members that were cut off."""


def measure(
    members: Iterable[Outcome],
    kept: Collection[Outcome],
    length_of: Callable[[Outcome], float | None],
) -> Lengths | None:
    """Add up the lengths of members that were started; None if one is not known."""
    kept_ids = {one.id for one in kept}
    kept_sum = started_sum = 0.0
    started = 0
    for member in members:
        if member.started_ns is None:
            continue
        length: float | None = None
        with quietly("what tells the tokens of a member"):
            length = length_of(member)
        if length is None:
            return None
        started += 1
        started_sum += length
        if member.id in kept_ids:
            kept_sum += length
    return Lengths(len(kept_ids), kept_sum, started, started_sum)


def bias_of(lengths: Collection[Lengths]) -> float | None:
    """Divide the mean length of the kept by that of all; None where there is nothing to divide."""
    kept, started = sum(one.kept for one in lengths), sum(one.started for one in lengths)
    whole = sum(one.started_sum for one in lengths)
    if not kept or not whole:
        return None
    return sum(one.kept_sum for one in lengths) / kept / (whole / started)


class GroupTally:
    """Keeps the sums of the last groups; whoever uses it sees to locking."""

    def __init__(self) -> None:
        """Begin empty."""
        self._times: deque[Lengths] = deque(maxlen=_LAST)
        self._tokens: deque[Lengths | None] = deque(maxlen=_LAST)
        self._cut: deque[int] = deque(maxlen=_LAST)

    def add(self, times: Lengths, tokens: Lengths | None, cut: int) -> None:
        """Count a group that has ended."""
        self._times.append(times)
        self._tokens.append(tokens)
        self._cut.append(cut)

    def stats(self) -> GroupStats:
        """Give the figures."""
        started = sum(one.started for one in self._times)
        return GroupStats(
            groups=len(self._times),
            length_bias=bias_of(self._times),
            length_bias_tokens=bias_of([one for one in self._tokens if one is not None]),
            cut_share=sum(self._cut) / started if started else None,
        )
