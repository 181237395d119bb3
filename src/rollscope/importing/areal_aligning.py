"""Bringing clocks of AReaL's processes together by what happens to all of them at once.

When the trainer updates the weights, every worker pauses or is called. The n-th time of each is
taken for the same moment; how well that holds is told by how far the pairs disagree.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, NamedTuple

from rollscope.importing.writing import Domain

__all__ = ["Alignment", "Pulses", "align", "estimate"]

_MASTER: Final = "train.update_weights"
_WORKER: Final = ("rpc.update_weights", "remote_inf_engine.pause_generation")
"""The first that a worker has counts."""
_MOST: Final = 100_000


class Alignment(NamedTuple):
    """What one clock lacks to another."""

    offset_ns: int
    spread_ns: int
    """By how much the pairs disagree."""
    pairs: int


class Pulses:
    """The times of the moments that processes have in common, by process."""

    def __init__(self) -> None:
        self._times: dict[str, dict[int, set[int]]] = {name: {} for name in (_MASTER, *_WORKER)}

    def note(self, name: str, process: int, start_ns: int) -> None:
        """Look at an event of a process."""
        times = self._times.get(name)
        if times is not None:
            known = times.setdefault(process, set())
            if len(known) < _MOST:
                known.add(start_ns)

    def of_master(self, processes: Iterable[int]) -> list[int]:
        """Give the times at which these, if they are a trainer, updated weights."""
        return self._sorted(_MASTER, processes)

    def of_worker(self, processes: Iterable[int]) -> list[int]:
        """Give the times at which these, if they are a worker, were told of it."""
        every = list(processes)
        return next((found for name in _WORKER if (found := self._sorted(name, every))), [])

    def _sorted(self, name: str, processes: Iterable[int]) -> list[int]:
        times = self._times[name]
        return sorted(set().union(*(times.get(process, ()) for process in processes)))


def estimate(reference: list[int], other: list[int]) -> Alignment | None:
    """Find what the other clock lacks to the reference; None if the pairs do not belong together.

    They do not if they disagree by more than half of what lies between two of them: then one
    process has seen one more, or one less.
    """
    gaps = [ours - theirs for ours, theirs in zip(reference, other, strict=False)]
    if not gaps:
        return None
    gaps.sort()
    spread_ns = gaps[-1] - gaps[0]
    apart = [after - before for before, after in pairwise(reference)]
    if spread_ns * 2 > min(apart[: len(gaps) - 1], default=spread_ns * 2):
        return None
    return Alignment(gaps[len(gaps) // 2], spread_ns, len(gaps))


def align(pulses: Pulses, lives: dict[str, tuple[Domain, list[int]]]) -> None:
    """Align workers without a clock of their own with the trainer.

    Args:
        pulses: What was seen.
        lives: By the name of a domain, the domain and the processes that were found to be it.
    """
    masters = {name: times for name, (_, own) in lives.items() if (times := pulses.of_master(own))}
    for name, (domain, own) in lives.items():
        if name in masters or domain.account.clock != "unanchored":
            continue
        if len(masters) != 1:
            domain.account.note = (
                f"not aligned: {_said(len(masters))} with {_MASTER}, where one is needed"
            )
            continue
        ((master, reference),) = masters.items()
        found = estimate(reference, pulses.of_worker(own))
        if found is None:
            domain.account.note = f"not aligned: no pairs that fit those of {master}"
        else:
            domain.follow(lives[master][0], found.offset_ns, found.spread_ns, found.pairs)


def _said(trainers: int) -> str:
    return f"{trainers} trainers" if trainers else "no trainer"
