"""Lines of the list of steps, kept for as long as their run is open.

A page that follows a run asks for the list again and again; a step that is long over is judged
once, and anew when more is heard of it.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from rollscope.analysis.rows import StepFacts
from rollscope.analysis.steps import StepSummary
from rollscope.analysis.verdict import Verdict
from rollscope.answers.source import Source
from rollscope.answers.waits import StepState, step_states

__all__ = ["KeptStep", "LineShelf", "StepLine"]

_SETTLED_NS: Final = 30_000_000_000
"""After so long nothing is expected of a step any more that its state would not show."""
_MOST: Final = 2_000
_APART_NS: Final = 5_000_000
"""By how much times have to be moved before verdicts are looked at anew."""


class StepLine(msgspec.Struct, kw_only=True):
    """One step of the list."""

    summary: StepSummary
    change: float | None
    """How much longer than the median of the previous ten it took, as a share."""
    verdict: Verdict


class KeptStep(msgspec.Struct):
    """What is kept of a step."""

    state: tuple[StepState | None, int]
    summary: StepSummary
    line: StepLine | None
    """None of a step that was only outlined."""


_shelves: WeakKeyDictionary[Source, dict[int, KeptStep]] = WeakKeyDictionary()


class LineShelf:
    """The kept steps of one run, held against what the run says now."""

    def __init__(self, source: Source, numbers: Sequence[int]) -> None:
        self.numbers = list(numbers)
        self._kept = _shelves.setdefault(source, {})
        self._states = step_states(source, self.numbers)
        # A process that died, dropped records or has its clock moved changes verdicts.
        sql = """
            SELECT process, status, dropped, offset_ns, started_ns, correction FROM processes
            ORDER BY process"""
        self._processes = hash(tuple(map(_state_of, source.query(sql).to_pylist())))

    def kept(self, first: int) -> Iterator[KeptStep]:
        """Give the steps, from the earliest on, up to the first that has to be judged.

        Args:
            first: From this step on a line is needed; before it an outline will do.
        """
        for number in itertools.takewhile(lambda one: self._is_good(one, first), self.numbers):
            yield self._kept[number]

    def _is_good(self, number: int, first: int) -> bool:
        kept = self._kept.get(number)
        if kept is None or kept.state != self._state(number):
            return False
        return number < first or kept.line is not None

    def put(self, facts: StepFacts, summary: StepSummary, line: StepLine | None) -> None:
        """Keep what was found of a step, if it is long enough over."""
        number, end_ns = facts.span.step, facts.span.end_ns
        if number is None or end_ns is None or facts.now_ns - end_ns < _SETTLED_NS:
            return
        if len(self._kept) >= _MOST:
            del self._kept[min(self._kept)]
        self._kept[number] = KeptStep(self._state(number), summary, line)

    def _state(self, number: int) -> tuple[StepState | None, int]:
        return self._states.get(number), self._processes


def _state_of(process: Mapping[str, Any]) -> tuple[object, ...]:
    """Give what verdicts depend on.

    A clock that drifts is read anew all the time, but what has been settled stays in its place, as
    the start of the process does.
    """
    moved = process["started_ns"] // _APART_NS if process["correction"] else process["offset_ns"]
    return process["process"], process["status"], process["dropped"], moved
