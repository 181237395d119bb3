"""Starts and ends that stand on lines of their own, made into the spans they were.

Everything stands in columns, some 60 bytes an event. Events count in the order of their times;
where a clock was set back between start and end, the order of the lines of their file does.
"""

from array import array
from collections.abc import Callable
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rollscope.importing.values import WALL_NS

__all__ = [
    "DUPLICATE",
    "INSTANT",
    "LONELY",
    "MOST_NS",
    "OPEN",
    "PART",
    "WHOLE",
    "Pairs",
    "Stage",
    "What",
]

MOST_NS: Final = 2**62
WHOLE, OPEN, PART, LONELY, INSTANT, DUPLICATE = range(6)
"""What an event comes to: a span that it ends; one that has not ended; the start of one that
another event ends; an end of nobody knows what; an instant; nothing new."""
_FILE_BITS: Final = 40
_MOST_TRIED: Final = 64
_MOST_LENGTH_NS: Final = 10**17
"""Three years."""


class What:
    """What an event says."""

    START, END, ERROR, INSTANT = range(4)


class Stage(NamedTuple):
    """What a name of spans means."""

    level: int
    """Spans lie in those of lower levels only, however they overlap."""
    phase: str = ""
    """The phase of a session that it is; empty if none."""
    is_shared: bool = False
    """Whether it is of a whole group; what is of one sample does not lie in it."""


class Pairs:
    """Takes all events, then knows what each of them comes to."""

    def __init__(self, stage_of: Callable[[str], Stage]) -> None:
        """Take nothing yet.

        Args:
            stage_of: Says what a name of spans means.
        """
        self._stage_of = stage_of
        self.places = array("q")
        self.times = array("q")
        self.lengths = array("q")
        """-1: not told."""
        self.owners = array("i")
        """By number: the session of each event."""
        self.whats = array("b")
        self.errors: dict[int, int] = {}
        """By event, a hash of the message of those that failed."""
        self._hashes = array("I")
        self._names = array("i")
        self._numbers: dict[str, int] = {}
        self.stages: list[Stage] = []
        self.sessions: dict[str, int] = {}
        self.fate = array("b")
        self.begin = array("q")
        """Of what is a span: when it began."""
        self.number = array("i")
        """Of what is a span: its number in its session, the same however often it is read."""
        self.above = array("i")
        """The number of the span that it lies in; -1 if in none."""
        self.is_phase = array("b")
        self.is_set_back = array("b")
        self.is_copied = array("b")
        """Whether its error is that of a span inside of it."""
        self._next = 0

    def add(
        self,
        place: int,
        raw: bytes,
        session: str,
        name: str,
        what: int,
        at_ns: int,
        length_ns: int | None,
    ) -> int:
        """Take an event and give its number; a length that no span has counts as not told."""
        is_told = length_ns is not None and 0 <= length_ns <= _MOST_LENGTH_NS
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == len(self.stages):
            self.stages.append(self._stage_of(name))
        self.places.append(place)
        self.times.append(at_ns)
        self.lengths.append(length_ns if length_ns is not None and is_told else -1)
        self.owners.append(self.sessions.setdefault(session, len(self.sessions)))
        self.whats.append(what)
        self._hashes.append(crc32(raw))
        self._names.append(number)
        return len(self.places) - 1

    def note_error(self, at: int, message: object) -> None:
        """Learn with which message an event failed."""
        self.errors[at] = crc32(str(message).encode("utf-8", "replace"))

    def stage(self, at: int) -> Stage:
        """Say what the name of an event means."""
        return self.stages[self._names[at]]

    def is_named(self, at: int, name: str) -> bool:
        """Say whether an event is of a span of that name."""
        return self._numbers.get(name) == self._names[at]

    def end(self, at: int) -> int:
        """Give when the span that an event ends was over."""
        length = self.lengths[at]
        return self.begin[at] + length if length >= 0 else max(self.times[at], 1)

    def find(self, place: int) -> int:
        """Find the event of a place, asked for in rising order; -1 if there is none."""
        places = self.places
        while self._next < len(places) and places[self._next] < place:
            self._next += 1
        is_there = self._next < len(places) and places[self._next] == place
        return self._next if is_there else -1

    def settle(self, judge: Callable[[int, list[int]], None]) -> None:
        """Make spans of events.

        Args:
            judge: Is told of every session: its number, and its events in the order of time.
        """
        count = len(self.places)
        self.fate, self.begin = array("b", bytes([DUPLICATE]) * count), self.times[:]
        self.number, self.above = array("i", bytes(4 * count)), array("i", b"\xff" * 4 * count)
        for name in ("is_phase", "is_set_back", "is_copied"):
            setattr(self, name, array("b", bytes(count)))
        if not count:
            return
        order = self._distinct()
        owners = np.frombuffer(self.owners, np.int32)
        edges = np.searchsorted(owners[order], np.arange(len(self.sessions) + 1)).tolist()
        for session in range(len(self.sessions)):
            events = order[edges[session] : edges[session + 1]].tolist()
            if events:
                self._pair(events)
                judge(session, events)

    def _distinct(self) -> npt.NDArray[np.int64]:
        """Give what was not written before, session by session in the order of time."""
        times, owners = np.frombuffer(self.times, np.int64), np.frombuffer(self.owners, np.int32)
        hashes, at = np.frombuffer(self._hashes, np.uint32), np.arange(len(times))
        order = np.lexsort((at, hashes, times, owners))
        same = np.ones(len(order), bool)
        same[:1] = False
        for column in (owners, times, hashes):
            same[1:] &= column[order[1:]] == column[order[:-1]]
        first = order[~same]
        return first[np.lexsort((first, times[first], owners[first]))]

    def _pair(self, events: list[int]) -> None:
        running = _Running(self)
        lonely = []
        for number, at in enumerate(events):
            self.number[at] = number
            what = self.whats[at]
            if what == What.INSTANT:
                self.fate[at] = INSTANT
                running.lay(at)
            elif what == What.START:
                running.lay(at)
                running.begin(at)
            else:
                start = running.last(self._names[at])
                if start is None:
                    lonely.append(at)
                else:
                    self._join(start, at)
        for at in lonely:
            self._settle_lonely(at, running)
        self._mark_copies(events)

    def _settle_lonely(self, at: int, running: "_Running") -> None:
        """Settle an end that no start came before: by its length, unless a clock was set back."""
        start = running.earlier_line(self._names[at], self.places[at])
        if start is not None:
            self._join(start, at)
            self.is_set_back[at] = True
        elif self.lengths[at] < 0:
            self.fate[at] = LONELY
        else:
            self.fate[at] = WHOLE
            self.begin[at] = self.times[at] - self.lengths[at]
            if self.begin[at] < (WALL_NS if self.times[at] >= WALL_NS else 1):
                # No clock can have shown such a length.
                self.begin[at], self.lengths[at], self.is_set_back[at] = self.times[at], -1, True
            running.lay(at)

    def _join(self, start: int, at: int) -> None:
        self.fate[start], self.fate[at] = PART, WHOLE
        self.begin[at] = self.begin[start]
        self.number[at], self.above[at] = self.number[start], self.above[start]
        self.is_phase[at] = self.is_phase[start]

    def _mark_copies(self, events: list[int]) -> None:
        """Mark errors that were handed up: the innermost span with a message is to blame."""
        failed = [at for at in events if at in self.errors and self.fate[at] == WHOLE]
        by_number = {self.number[at]: at for at in failed}
        for at in failed:
            upper = by_number.get(self.above[at])
            if upper is not None and self.errors[upper] == self.errors[at]:
                self.is_copied[upper] = True


class _Running:
    """The spans of one session that have begun and not ended."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._by_name: dict[int, list[int]] = {}
        self._by_stage: dict[Stage, list[int]] = {}

    def begin(self, at: int) -> None:
        """Take a start; it is open until its end is found."""
        self._pairs.fate[at] = OPEN
        self._by_name.setdefault(self._pairs._names[at], []).append(at)
        self._by_stage.setdefault(self._pairs.stage(at), []).append(at)

    def last(self, name: int) -> int | None:
        """Take out the last start of a name."""
        starts = self._by_name.get(name)
        return starts.pop() if starts else None

    def earlier_line(self, name: int, place: int) -> int | None:
        """Take out the last start of a name that stands before a line of the same file."""
        starts = self._by_name.get(name, [])
        places, file = self._pairs.places, place >> _FILE_BITS
        before = [
            one
            for one in starts[-_MOST_TRIED:]
            if places[one] < place and places[one] >> _FILE_BITS == file
        ]
        if not before:
            return None
        found = max(before, key=lambda one: places[one])
        starts.remove(found)
        return found

    def lay(self, at: int) -> None:
        """Find what a span lies in, and whether that makes it a phase of its own."""
        pairs = self._pairs
        level, phase, is_shared = pairs.stage(at)
        is_phase, innermost = bool(phase), -1
        for stage, starts in self._by_stage.items():
            if stage.level >= level or stage.is_shared != is_shared:
                continue
            while starts and pairs.fate[starts[-1]] != OPEN:
                starts.pop()
            if starts and pairs.begin[starts[-1]] <= pairs.begin[at]:
                # Of phases inside each other that are called the same, the outermost counts.
                is_phase = is_phase and stage.phase != phase
                if innermost < 0 or pairs.number[starts[-1]] > pairs.number[innermost]:
                    innermost = starts[-1]
        pairs.is_phase[at] = is_phase
        pairs.above[at] = pairs.number[innermost] if innermost >= 0 else -1
