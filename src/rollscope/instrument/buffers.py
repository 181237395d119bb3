"""What the host's threads append to and the writer takes from.

Rows lie flat, `ROW` entries each, in one list that all threads extend. `list.extend` of a tuple is
one indivisible act with the interpreter lock and without it, so no lock is needed; and because no
row is an object of its own, the garbage collector has nothing to walk. One tuple per row instead
costs three times as much (see docs/adr/0001).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rollscope.instrument.calls import CALL
from rollscope.model.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rollscope.instrument.spans import Span
    from rollscope.model.batch import Fact, SpanColumns

__all__ = [
    "ATTRS",
    "END",
    "FIELDS",
    "HOSTED",
    "NAME",
    "PARENT",
    "ROW",
    "SCOPE",
    "SPAN",
    "START",
    "STATUS",
    "WHAT",
    "Buffers",
    "Host",
    "take_all",
]

WHAT, NAME, SCOPE, SPAN, PARENT, START, END, STATUS, ATTRS, FIELDS = range(10)
ROW: Final = 10
"""Entries of a row, in the order of the names above."""

HOSTED: Final = 13
"""Entries that a runner leaves of each session, in an order of its own."""

_KINDS: Final = (*Kind, "event", "fact", "metric", "payload", "start")
_FIRST_LOOK: Final = 64
_OPENED_AT_ONCE: Final = 500
"""Sessions that get their ids under one lock, which their own code may wait for."""
_BUSY_ROWS: Final = 200
_BUSY_CALLS: Final = 1_000
_EARLY_ROWS: Final = 10_000
_EARLY_PAYLOADS: Final = 100
"""Few, since each may be as long as a conversation."""


class Host(NamedTuple):
    """What a runner does in the writer's time: the records of its sessions, ready to be written."""

    record: Callable[[list[Any]], SpanColumns | None]
    """Gives those of sessions that have ended; makes rows of those it cannot give so."""
    announce: Callable[[list[Any]], tuple[SpanColumns | None, list[Any]]]
    """Gives those of open sessions, and with them the sessions of which it gives none."""
    learn: Callable[[list[Any], int], list[Fact]]
    """Gives what is to be added to the records of sessions at this time, from `Buffers.late`."""


class Buffers:
    """Everything recorded and not yet taken by the writer."""

    def __init__(self) -> None:
        """Begin empty."""
        self.rows: list[Any] = []
        self.open: dict[int, Span] = {}
        """Spans entered and not left, in order of entering."""
        self.started: list[Any] = []
        """Sessions that a runner has begun since the last look; most of them are over by then."""
        self.open_all: Callable[[Sequence[Any]], None]
        """Puts such sessions among the open ones."""
        self.ending: dict[Any, Any] = {}
        """Sessions that a runner has seen end and will record in a moment, with what it knows."""
        self.hosted: list[Any] = []
        """What `host` makes records of, in the writer's time; flat too, `HOSTED` entries each."""
        self.late: list[Any] = []
        """What `host` adds to records it has made, of outcomes fetched since; flat as `hosted`."""
        self.host: Host | None = None
        self.facts: list[tuple[bytes, int, int, dict[str, Any]]] = []
        """trace id, span id, monotonic time, facts."""
        self.samples: list[Any] = []
        """Calls of metrics, flat too; see `calls`."""
        self.payloads: list[tuple[bytes, int, int, str, Any]] = []
        """trace id, span id, monotonic time, name, value."""
        self.unrecorded = dict.fromkeys(_KINDS, 0)
        """How many of each kind were lost because there was no memory for them. Made whole now,
        since then there is none for this either."""

    def count_unrecorded(self, kind: str, number: int = 1) -> None:
        """Count records for which there was no memory; raises nothing then either."""
        try:  # noqa: SIM105  (`suppress` would make an object)
            self.unrecorded[kind] += number
        except MemoryError:
            pass

    def take_unrecorded(self) -> dict[str, int]:
        """Take the counts of what was lost so."""
        taken = {kind: number for kind, number in self.unrecorded.items() if number}
        for kind, number in taken.items():
            self.unrecorded[kind] -= number
        return taken

    def take_hosted(self, sessions: int) -> list[Any]:
        """Take up to so many of the sessions that a runner has left to the writer."""
        taken = self.hosted[: sessions * HOSTED]
        del self.hosted[: len(taken)]
        return taken

    def open_started(self) -> None:
        """Put the sessions among the open ones that a runner has begun and not ended."""
        started = take_all(self.started)
        for at in range(0, len(started), _OPENED_AT_ONCE):
            piece = started[at : at + _OPENED_AT_ONCE]
            self.open_all([span for span in piece if not span.is_over])

    def ending_ids(self) -> set[int]:
        """Give the ids of sessions that are about to be recorded, if they have any yet."""
        return {span.id for span in list(self.ending) if span.has_id}

    def opened_since(self, is_known: Callable[[int], bool]) -> list[Span]:
        """Give the open spans that were entered after the last one that is known.

        Few among many: thousands may be open for minutes, and this is asked several times a second.
        """
        self.open_started()
        wanted = _FIRST_LOOK
        while True:
            try:
                newest = list(islice(reversed(self.open.values()), wanted))
            except RuntimeError:  # another thread came between the making of it and its use
                newest = list(self.open.values())[: -wanted - 1 : -1]  # one call, which none parts
            fresh = next((at for at, span in enumerate(newest) if is_known(span.id)), len(newest))
            if fresh < wanted:
                del newest[fresh:]
                newest.reverse()  # in its place: it may be long
                return newest
            wanted *= 8

    def is_empty(self) -> bool:
        """Whether nothing waits and nothing is open."""
        recorded = self.rows or self.hosted or self.facts or self.late
        waiting = recorded or self.samples or self.payloads or self.open or self.started
        return not waiting

    def count_waiting(self) -> int:
        """Say how many records and calls of metrics wait."""
        flat = len(self.rows) // ROW + len(self.hosted) // HOSTED + len(self.samples) // CALL
        return flat + len(self.facts) + len(self.late) // HOSTED + len(self.payloads)

    def count_living(self) -> tuple[int, int]:
        """Say how many spans are open, and how many have ended and are not recorded yet."""
        return len(self.open), len(self.ending)

    def is_untouched(self, seen: tuple[int, int]) -> bool:
        """Whether nothing but metrics waits, and as many spans live as were seen before."""
        recorded = self.rows or self.hosted or self.facts or self.late or self.payloads
        return not recorded and not self.started and self.count_living() == seen

    def is_busy(self) -> bool:
        """Whether enough rows wait at a tick to write them without waiting for the drain."""
        return (
            len(self.rows) > _BUSY_ROWS * ROW
            or len(self.hosted) > _BUSY_ROWS * HOSTED
            or len(self.samples) > _BUSY_CALLS * CALL
        )

    def is_filling(self) -> bool:
        """Whether so much waits that the writer should not wait for the drain to be due."""
        return (
            len(self.rows) > _EARLY_ROWS * ROW
            or len(self.hosted) > _EARLY_ROWS * HOSTED
            or len(self.started) > _EARLY_ROWS
            or len(self.facts) > _EARLY_ROWS
            or len(self.late) > _EARLY_ROWS * HOSTED
            or len(self.payloads) > _EARLY_PAYLOADS
        )

    def clear(self) -> None:
        """Forget everything; a forked child leaves its parent's records to the parent."""
        self.rows.clear()
        self.open.clear()
        self.started.clear()
        self.ending.clear()
        self.hosted.clear()
        self.facts.clear()
        self.late.clear()
        self.samples.clear()
        self.payloads.clear()
        self.unrecorded = dict.fromkeys(_KINDS, 0)


def take_all(items: list[Any]) -> list[Any]:
    """Take what a list holds now; what other threads append meanwhile stays for the next time."""
    taken = items[:]
    del items[: len(taken)]
    return taken
