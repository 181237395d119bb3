"""Families of metrics as monitoring systems see them: what they are called, and what they stand at.

A family is declared once, with its labels and bounds; each look at it gives points. Whoever writes
them for a system (text for Prometheus, remote write, OTLP) needs to know nothing else.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

__all__ = ["Distribution", "Exemplar", "Exposed", "Family", "FamilyKind", "Point"]


class FamilyKind(StrEnum):
    """What a family counts."""

    COUNTER = "counter"
    """Rises only; its name ends with `_total`."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"
    """Always 1: the labels say it all. Its name ends with `_info`."""


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One name, and what stands behind it."""

    name: str
    """With its prefix and, of a counter, its `_total`."""
    kind: FamilyKind
    help: str
    """One sentence."""
    labels: tuple[str, ...] = ()
    """The labels that each point has, in this order."""
    bounds: tuple[float, ...] = ()
    """Of a histogram: the upper bounds, rising, without the last, which is infinite."""

    @property
    def stem(self) -> str:
        """The name without the end that its kind demands, as OpenMetrics calls a family."""
        ends = {FamilyKind.COUNTER: "_total", FamilyKind.INFO: "_info"}
        return self.name.removesuffix(ends.get(self.kind, ""))

    @property
    def unit(self) -> str:
        """The unit that the name ends with, if it has one."""
        last = self.stem.rpartition("_")[2]
        return last if last in ("seconds", "bytes", "ratio") else ""


class Exemplar(NamedTuple):
    """One of the values that a bucket counts, and whose it is."""

    labels: tuple[tuple[str, str], ...]
    """At most 128 characters in all."""
    value: float
    at_s: float
    """Seconds since the epoch."""


class Distribution(NamedTuple):
    """What a histogram stands at."""

    counts: Sequence[int]
    """One for each bound and one above all of them; not added up."""
    total: float
    """The sum of all values."""
    exemplars: Mapping[int, Exemplar] = {}
    """By the number of the bucket."""


class Point(NamedTuple):
    """What a family stands at for one set of labels."""

    labels: tuple[str, ...]
    """Values, in the order of the family's labels; empty text where one does not apply."""
    value: float | Distribution


class Exposed(NamedTuple):
    """A family and its points at one moment."""

    family: Family
    points: Sequence[Point]
