"""Parcels: frames on their way out, with what is needed to drop them honestly."""

from collections import Counter
from enum import IntEnum
from typing import Final, NamedTuple

from rollscope.instrument.sinks import Frame
from rollscope.model.kinds import KIND_CODES, STATUS_CODES, WHAT_OF_CODE, Kind, Status

__all__ = ["Held", "Importance", "Parcel", "count_held", "importance_of"]

_OPEN: Final = STATUS_CODES[Status.OPEN]
_PHASE: Final = KIND_CODES[Kind.PHASE]
_OWNERS: Final = frozenset(KIND_CODES[kind] for kind in (Kind.STEP, Kind.TASK, Kind.SESSION))


class Importance(IntEnum):
    """What is dropped first when a sink is too slow."""

    ORDINARY = 0
    """Spans, states, events, payloads."""
    PHASE = 1
    OWNER = 2
    """Steps, tasks, sessions and facts about them; metrics, which are few and make sums."""
    VITAL = 3
    """Headers, heart-beats, drop counts, the end."""


Held = dict[str, int] | tuple[bytes, bytes]
"""What a parcel holds: counts, or the codes of kind and status of each row, counted when asked."""


class Parcel(NamedTuple):
    """A frame with what is needed to drop it honestly."""

    frame: Frame
    importance: Importance
    held: Held

    @property
    def contents(self) -> dict[str, int]:
        """How many records of what it holds."""
        return count_held(self.held)


def count_held(held: Held) -> dict[str, int]:
    """Count records by kind; start records apart, since a span without one is not lost."""
    if isinstance(held, dict):
        return held
    kinds, statuses = held
    ended = [what for what, status in zip(kinds, statuses, strict=True) if status != _OPEN]
    contents: Counter[str] = Counter()
    if len(ended) < len(kinds):
        contents["start"] = len(kinds) - len(ended)
    for code, number in Counter(ended).items():
        contents[WHAT_OF_CODE[code].kind or "event"] += number
    return dict(contents)


def importance_of(what: int) -> Importance:
    """Say how important a row with this code is."""
    if what in _OWNERS:
        return Importance.OWNER
    return Importance.PHASE if what == _PHASE else Importance.ORDINARY
