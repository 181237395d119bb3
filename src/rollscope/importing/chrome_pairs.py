"""Beginnings and ends that stand apart, matched.

An end closes the newest open beginning of its name, else the newest of all. Everything takes the
same time however many are open, and what is held is bounded: beyond that, the oldest beginning is
given up and stays open.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

__all__ = ["MOST_HELD_BYTES", "Begun", "Pairs"]

MOST_HELD_BYTES: Final = 64 * 1024 * 1024
_OWN_BYTES: Final = 512
"""What a beginning takes beside its attributes, roughly."""
_What = TypeVar("_What")


class Begun(NamedTuple, Generic[_What]):
    """A beginning without an end."""

    name: str
    what: _What
    size: int
    """Of its attributes."""


class _Track(Generic[_What]):
    """What is open in one place."""

    def __init__(self) -> None:
        self.open: OrderedDict[int, Begun[_What]] = OrderedDict()
        self.by_name: dict[str, deque[int]] = {}


class Pairs(Generic[_What]):
    """What is open, by where it may be closed."""

    def __init__(self, most_bytes: int = MOST_HELD_BYTES) -> None:
        self._tracks: OrderedDict[Hashable, _Track[_What]] = OrderedDict()
        self._most, self._held = most_bytes, 0
        self._number = 0

    def begin(self, where: Hashable, begun: Begun[_What]) -> Begun[_What] | None:
        """Take a beginning; give the one that is given up for it, if there is too much."""
        track = self._tracks.get(where)
        if track is None:
            track = self._tracks[where] = _Track()
        self._number += 1
        track.open[self._number] = begun
        track.by_name.setdefault(begun.name, deque()).append(self._number)
        self._held += begun.size + _OWN_BYTES
        return self._give_up() if self._held > self._most else None

    def end(self, where: Hashable, name: str) -> Begun[_What] | None:
        """Give the beginning that an end closes; None if nothing is open there."""
        track = self._tracks.get(where)
        if track is None:
            return None
        same = track.by_name.get(name)
        number = same[-1] if same else next(reversed(track.open))
        return self._remove(where, track, number, is_newest=True)

    def newest(self, where: Hashable) -> Begun[_What] | None:
        """Give what was begun last in a place and is open."""
        track = self._tracks.get(where)
        return None if track is None else track.open[next(reversed(track.open))]

    def drain(self) -> Iterator[Begun[_What]]:
        """Give all that is still open, and forget it."""
        while self._tracks:
            _, track = self._tracks.popitem(last=False)
            yield from track.open.values()
        self._held = 0

    def _give_up(self) -> Begun[_What]:
        where, track = next(iter(self._tracks.items()))
        return self._remove(where, track, next(iter(track.open)), is_newest=False)

    def _remove(
        self, where: Hashable, track: _Track[_What], number: int, *, is_newest: bool
    ) -> Begun[_What]:
        begun = track.open.pop(number)
        same = track.by_name[begun.name]
        # The newest of all is the newest of its name, and so is the oldest the oldest.
        if is_newest:
            same.pop()
        else:
            same.popleft()
        if not same:
            del track.by_name[begun.name]
        if not track.open:
            del self._tracks[where]
        self._held -= begun.size + _OWN_BYTES
        return begun
