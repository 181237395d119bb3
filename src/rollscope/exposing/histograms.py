"""Histograms that are filled from columns: exact counts and sums, the latest value as exemplar."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from rollscope.exposing.catalogue import TIME_BOUNDS
from rollscope.exposing.columns import Codes, Numbers
from rollscope.exposing.labels import clean_value
from rollscope.metrics.families import Distribution, Exemplar

__all__ = [
    "LENGTHS",
    "Histogram",
    "Histograms",
    "Shown",
    "exact_sums",
    "session_exemplar",
    "shorten_middle",
]

Key = TypeVar("Key", bound=Hashable)

_SECOND: Final = 1e9
LENGTHS: Final = tuple(round(bound * _SECOND) for bound in TIME_BOUNDS)
"""The bounds of lengths in nanoseconds."""
_LOW_BITS: Final = 20
_MOST_CHARACTERS: Final = 128
"""Of the labels of an exemplar, names included; Prometheus refuses more."""


_PLAIN: Final = str.maketrans({'"': "'", "\\": "/"})
"""Not all readers know escapes in exemplars; Prometheus' own client in Python does not."""


class Shown(NamedTuple):
    """A value that stands for its bucket."""

    at_ns: int
    value_ns: int
    trace_id: bytes
    session: str


class Histogram:
    """Lengths of one kind, in nanoseconds, or other whole numbers."""

    __slots__ = ("counts", "shown", "total")

    def __init__(self, counts: Numbers, total: int = 0) -> None:
        self.counts = counts
        self.total = total
        self.shown: dict[int, Shown] = {}

    def copy(self) -> "Histogram":
        """Give one that can be added to apart."""
        copied = Histogram(self.counts.copy(), self.total)
        copied.shown = dict(self.shown)
        return copied

    def show(self, bucket: int, shown: Shown) -> None:
        """Let a value stand for its bucket, unless a later one does."""
        known = self.shown.get(bucket)
        if known is None or known.at_ns <= shown.at_ns:
            self.shown[bucket] = shown

    def stand(self, unit: float = _SECOND) -> Distribution:
        """Give what it stands at, in seconds, or in another unit."""
        exemplars = {bucket: session_exemplar(one) for bucket, one in self.shown.items()}
        return Distribution(self.counts.tolist(), self.total / unit, exemplars)


class Histograms(Generic[Key]):
    """Histograms with the same bounds, by key."""

    def __init__(self, bounds: Sequence[int]) -> None:
        """Have none yet.

        Args:
            bounds: Upper bounds, rising.
        """
        self._bounds = np.array(bounds, np.int64)
        self._width = len(bounds) + 1
        self.by_key: dict[Key, Histogram] = {}

    def copy(self) -> "Histograms[Key]":
        """Give them once more, to be added to apart."""
        copied = Histograms[Key](self._bounds.tolist())
        copied.by_key = {key: one.copy() for key, one in self.by_key.items()}
        return copied

    def add(self, keys: Sequence[Key], codes: Codes, values: Numbers) -> Codes:
        """Add values.

        Args:
            keys: Of the histograms that come into question.
            codes: For each value the place of its key.
            values: The values.

        Returns:
            For each value the place of its key times the number of buckets, and its bucket.
        """
        cells = codes * self._width + np.searchsorted(self._bounds, values, side="left")
        size = len(keys)
        counts = np.bincount(cells, minlength=size * self._width).reshape(size, self._width)
        totals = exact_sums(codes, values, size)
        for place in np.unique(codes).tolist():
            histogram = self.get(keys[place])
            histogram.counts += counts[place]
            histogram.total += totals[place]
        return cells

    def latest(self, cells: Codes, at_ns: Numbers) -> Iterable[tuple[int, int, int]]:
        """Give for each cell that `add` gave: the key's place, the bucket, the latest value's."""
        order = np.argsort(at_ns, kind="stable")
        last = np.full(int(cells.max(initial=-1)) + 1, -1)
        last[cells[order]] = order
        for cell in np.flatnonzero(last >= 0).tolist():
            yield cell // self._width, cell % self._width, int(last[cell])

    def add_one(self, key: Key, values: Numbers) -> None:
        """Add values to one histogram."""
        if len(values):
            self.add([key], np.zeros(len(values), np.int64), values)

    def get(self, key: Key) -> Histogram:
        """Give the histogram of a key, which may be empty."""
        known = self.by_key.get(key)
        if known is None:
            known = self.by_key[key] = Histogram(np.zeros(self._width, np.int64))
        return known


def exact_sums(codes: Codes, values: Numbers, size: int) -> list[int]:
    """Add whole numbers up by code. Floating point would lose nanoseconds after a hundred days."""
    high = np.bincount(codes, values >> _LOW_BITS, size)
    low = np.bincount(codes, values & ((1 << _LOW_BITS) - 1), size)
    return [(int(h) << _LOW_BITS) + int(one) for h, one in zip(high, low, strict=True)]


def session_exemplar(shown: Shown) -> Exemplar:
    """Say whose value it is: its trace, and the session in words, as far as there is room."""
    trace = shown.trace_id.hex()
    room = _MOST_CHARACTERS - len("trace_id") - len(trace) - len("session")
    session = shorten_middle(clean_value(shown.session).translate(_PLAIN), room)
    labels = (("trace_id", trace), ("session", session))
    return Exemplar(labels, shown.value_ns / _SECOND, shown.at_ns / _SECOND)


def shorten_middle(text: str, most: int) -> str:
    """Cut text in the middle: the sample at its end tells sessions of a task apart."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"
