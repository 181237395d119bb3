"""Where each span of an import belongs, once all are known, in whatever order they came."""

from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from rollscope.importing.otlp_sketch import Sketches
from rollscope.otlp.forms import Sender
from rollscope.otlp.pairs import LOOP
from rollscope.otlp.placing import Known, Place, Placer, Session

__all__ = ["DOUBLED", "KEPT", "REPLACED", "MadeUp", "Settled", "settle_spans"]

KEPT, DOUBLED, REPLACED = 0, 1, 2
"""What becomes of a span: written; the same as another one; less than another one of its id."""
_NO_PHASE: Final = ""
_LOOPS, _NONE = -1, -2
"""Traces that are settled as one: those of agents' loops; and no trace at all."""


class MadeUp(msgspec.Struct):
    """A session that no span stands for."""

    session: Session
    sender: Sender
    is_loop: bool
    """Whether it is an agent's loop, all parts of which are told of when they have ended."""
    last_ns: int = 0


class Settled:
    """What was found out, span by span."""

    def __init__(self, size: int) -> None:
        self.fate = bytearray(size)
        self.is_orphan = bytearray(size)
        """Whether its parent is nowhere."""
        self.is_copied = bytearray(size)
        """Whether a span below it failed for the same reason."""
        self.differing = 0
        """Final spans that were given up for a longer one of their id."""
        self.runs: set[str] = set()
        """Names of runs, as the spans give them."""
        self.made: dict[int, MadeUp] = {}
        """Sessions that no span stands for, by their ids."""
        self.callers: dict[int, int] = {}
        """Of requests that engines tell of, the spans that made them."""
        self.made_roots: dict[int, Session] = {}
        """Spans that are all of a made session."""
        self._place_at = array("i", bytes(4 * size))
        self._phase_at = array("i", bytes(4 * size))
        self._places: list[Place] = []
        self._phases: list[str] = [_NO_PHASE]
        self._phase_numbers = {_NO_PHASE: 0}

    def note(self, at: int, place: Place, phase_above: str) -> None:
        """Keep where a span belongs."""
        if not self._places or self._places[-1] is not place:
            self._places.append(place)
            self.runs.add(place.run)
        self._place_at[at] = len(self._places) - 1
        number = self._phase_numbers.get(phase_above)
        if number is None:
            number = self._phase_numbers[phase_above] = len(self._phases)
            self._phases.append(phase_above)
        self._phase_at[at] = number

    def place(self, at: int) -> Place:
        """Give where a span belongs."""
        return self._places[self._place_at[at]]

    def phase_above(self, at: int) -> str:
        """Give the phase that a span lies in; empty if in none."""
        return self._phases[self._phase_at[at]]


def settle_spans(sketches: Sketches, only_run: str) -> Settled:
    """Place all spans.

    Args:
        sketches: What was seen.
        only_run: The run of what names none.
    """
    settled = Settled(len(sketches))
    groups = np.frombuffer(sketches.trace, np.int32).copy()
    if sketches.loops:
        groups[np.isin(groups, list(sketches.loops))] = _LOOPS
    order = np.argsort(groups, kind="stable")
    traces = groups[order]
    bounds = np.flatnonzero(np.diff(traces, prepend=_NONE, append=_NONE)).tolist()
    members = order.tolist()
    for first, last in pairwise(bounds):
        _Trace(sketches, settled, Placer(only_run, len(sketches) * 4 + 4)).settle(
            members[first:last]
        )
    _attach_requests(sketches, settled)
    return settled


def _attach_requests(sketches: Sketches, settled: Settled) -> None:
    """Put what engines tell of requests below the spans that made them, by the requests' ids."""
    named = np.flatnonzero(np.frombuffer(sketches.request, np.int64)).tolist()
    callers: dict[int, int] = {}
    engines: list[int] = []
    for at in named:
        is_inside = settled.fate[at] == KEPT and settled.place(at).session_id is not None
        if is_inside and not sketches.is_engine(at):
            callers.setdefault(sketches.request[at], at)
        elif not is_inside and sketches.is_engine(at) and not sketches.parent_id[at]:
            engines.append(at)
    found = {at: callers[one] for at in engines if (one := sketches.request[at]) in callers}
    settled.callers = {at: sketches.span_id[caller] for at, caller in found.items()}
    whole = {sketches.trace[at]: caller for at, caller in found.items()}
    held = np.isin(np.frombuffer(sketches.trace, np.int32), list(whole)) if whole else ()
    for at in np.flatnonzero(held).tolist():
        if settled.place(at).session_id is None:
            caller = whole[sketches.trace[at]]
            settled.note(at, settled.place(caller), settled.phase_above(at))


class _Trace:
    """One trace, all of it known."""

    def __init__(self, sketches: Sketches, settled: Settled, placer: Placer) -> None:
        self._sketches, self._settled, self._placer = sketches, settled, placer

    def settle(self, members: list[int]) -> None:
        kept = self._pick(members)
        below: dict[int, list[int]] = {}
        roots, orphans = [], []
        for at in kept.values():
            parent = self._sketches.parent_key(at)
            if not self._sketches.parent_id[at]:
                roots.append(at)
            elif parent in kept:
                below.setdefault(parent, []).append(at)
            else:
                orphans.append(at)
        sketches = self._sketches
        says = sketches.opens_session
        tops = {*roots, *orphans}
        inner = [at for at in kept.values() if says(at) and at not in tops]
        if inner:
            self._placer.expect_sessions(sketches.rebuild(inner[0])[0])
        # Orphans last: what they belong to may have a root. Those that can be one go first.
        roots.sort(key=lambda at: (not sketches.is_loop_root(at), self._rank(at)))
        orphans.sort(key=lambda at: (says(at), self._rank(at)))
        for held in below.values():
            held.sort(key=self._rank)
        for at in orphans:
            self._settled.is_orphan[at] = 1
        left = dict.fromkeys(kept.values())
        for at in self._down([*roots, *orphans], below):
            left.pop(at)
        while left:  # spans that are each other's parents
            top = min(left, key=self._rank)
            self._settled.is_orphan[top] = 1
            for at in self._down([top], below):
                left.pop(at, None)

    def _pick(self, members: list[int]) -> dict[int, int]:
        """Choose one of those that have the same id: an ended one, and the longest of these."""
        sketches, settled = self._sketches, self._settled
        kept: dict[int, int] = {}
        for at in members:
            key = sketches.key(at)
            before = kept.setdefault(key, at)
            if before == at:
                continue
            if sketches.content[at] == sketches.content[before]:
                settled.fate[at] = DOUBLED
                continue
            worse = min(at, before, key=self._length)
            settled.fate[worse] = REPLACED
            settled.differing += bool(sketches.end_ns[at] and sketches.end_ns[before])
            kept[key] = at if worse == before else before
        return kept

    def _rank(self, at: int) -> tuple[int, int]:
        """Give the order of spans side by side, whichever came first."""
        return self._sketches.start_ns[at], self._sketches.span_id[at]

    def _length(self, at: int) -> tuple[int, int]:
        """Give how long a span is, and which of two equals is meant."""
        end_ns = self._sketches.end_ns[at]
        length = end_ns - self._sketches.start_ns[at] if end_ns else -(2**63)
        return length, self._sketches.content[at]

    def _down(self, tops: list[int], below: dict[int, list[int]]) -> Iterator[int]:
        """Place spans and all that is below them, parents first."""
        for top in tops:
            waiting: list[tuple[int, Known | None, int]] = [(top, None, 0)]
            while waiting:
                at, parent, number = waiting.pop()
                known = self._place(at, parent, number)
                yield at
                held = below.pop(self._sketches.key(at), ())
                for one in held:
                    is_same = self._sketches.error[one] == self._sketches.error[at]
                    self._settled.is_copied[at] |= is_same and self._sketches.error[at] != 0
                waiting += [(one, known, at + 1) for one in reversed(held)]

    def _place(self, at: int, parent: Known | None, parent_number: int) -> Known:
        sketches, settled = self._sketches, self._settled
        above = parent.place if parent is not None else None
        is_inside = above is not None and above.session_id is not None
        is_alike = parent_number and sketches.said[at] == sketches.said[parent_number - 1]
        if above is not None and is_inside and (is_alike or sketches.is_empty_handed(at)):
            place = above
        else:
            form, meaning = sketches.rebuild(at)
            place = self._placer.place(form, meaning, parent)
            for made in self._placer.made:
                session = made.session
                if made.root is None:
                    sender, is_loop = sketches.sender(at), LOOP in meaning.place
                    settled.made[session.session_id] = MadeUp(session, sender, is_loop)
                else:
                    settled.made_roots[at] = session
            self._placer.made.clear()
        if settled.made and place.session_id in settled.made:
            whole = settled.made[place.session_id]
            whole.last_ns = max(whole.last_ns, sketches.end_ns[at], sketches.start_ns[at])
        phase_above = parent.phase if parent is not None else _NO_PHASE
        settled.note(at, place, phase_above)
        return Known(place, sketches.phase(at, phase_above, place.session_id), 0, 0)
