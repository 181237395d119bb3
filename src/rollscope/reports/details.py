"""Which sessions a report tells everything about: those that somebody would open first."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from rollscope.answers.sessions import SessionLine
from rollscope.model.kinds import Outcome, Status

__all__ = ["MOST_DETAILS", "choose_details"]

MOST_DETAILS: Final = 60
_SLOWEST_OF_STEP: Final = 5
_BAD_STATUSES: Final = frozenset({Status.ERROR, Status.LOST, Status.OPEN})
_BAD_OUTCOMES: Final = frozenset({Outcome.FAILED, Outcome.TIMEOUT})


def choose_details(
    lines: Sequence[SessionLine], named: Iterable[int] = (), most: int = MOST_DETAILS
) -> list[int]:
    """Give the sessions, the most telling first; all of them, if they are few.

    Args:
        lines: The sessions of the report.
        named: Those that other parts of it lead to.
        most: How many to give at most.
    """
    known = {line.row.span_id for line in lines}
    chosen: dict[int, None] = {}
    for session_id in _by_interest(lines, named):
        if session_id in known:
            chosen[session_id] = None
        if len(chosen) >= most:
            break
    return list(chosen)


def _by_interest(lines: Sequence[SessionLine], named: Iterable[int]) -> Iterator[int]:
    yield from named
    slow = sorted(lines, key=lambda line: (_step(line), -line.ran_ns))
    for _, of_step in groupby(slow, key=_step):
        for line, _ in zip(of_step, range(_SLOWEST_OF_STEP), strict=False):
            yield line.row.span_id
    latest = sorted(lines, key=lambda line: -line.row.start_ns)
    yield from (line.row.span_id for line in latest if _is_bad(line))
    yield from (line.row.span_id for line in latest)


def _step(line: SessionLine) -> int:
    step = line.row.charged_step
    return -1 if step is None else step


def _is_bad(line: SessionLine) -> bool:
    return line.row.status in _BAD_STATUSES or line.row.outcome in _BAD_OUTCOMES
