"""What a program records by itself, as families: renamed to fit, added up over processes.

Whatever a program calls its metrics and labels, both survive: names that clash are told apart by
their kind, labels that clash with ours get another name, and labels that would have a value for
each session are left out.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from rollscope.exposing.catalogue import USER_PREFIX
from rollscope.exposing.labels import FORBIDDEN, Caps, clean_label, clean_name, clean_value
from rollscope.exposing.samples import USER_BOUNDS, GaugeReading, Recorded, Samples, Series
from rollscope.metrics.families import Distribution, Exposed, Family, FamilyKind, Point
from rollscope.model.loops import LAG_METRIC
from rollscope.model.undecodable import UNDECODABLE

__all__ = ["Teller", "UserMetrics", "is_internal"]

_log = logging.getLogger("rollscope.exposing")
_INTERNAL: Final = "rollscope."
_KINDS: Final = {
    "counter": FamilyKind.COUNTER,
    "gauge": FamilyKind.GAUGE,
    "histogram": FamilyKind.HISTOGRAM,
}
_ENDS: Final = {
    FamilyKind.COUNTER: ("_total",),
    FamilyKind.GAUGE: ("",),
    FamilyKind.HISTOGRAM: ("", "_bucket", "_count", "_sum"),
}
_GONE_NS: Final = 300 * 1_000_000_000
"""After so long nobody is told of the gauges of a process that has ended."""
_PROCESS_LABELS: Final = ("role", "rank")

Labels = tuple[tuple[str, str], ...]


class Teller(NamedTuple):
    """The process that a gauge is of."""

    role: str
    rank: str
    is_alive: bool
    last_seen_ns: int


def is_internal(name: str) -> bool:
    """Say whether a metric is one of our own."""
    return name.startswith(_INTERNAL) or name == LAG_METRIC


class _Known(NamedTuple):
    """How a series is shown."""

    family: str
    labels: Labels
    has_forbidden: bool


class UserMetrics:
    """The recorded metrics of one run."""

    def __init__(self, run: str, caps: Caps) -> None:
        self._run = run
        self._caps = caps
        self._known: dict[Series, _Known] = {}
        self._names: dict[tuple[str, FamilyKind], str] = {}
        self._taken: set[str] = set()
        self._labels: dict[str, list[str]] = {}
        self._kinds: dict[str, tuple[FamilyKind, str]] = {}
        self._told: set[str] = set()
        self.refused_labels = 0
        """Calls with labels that are not shown, as of the last look."""

    def look(self, samples: Samples, tellers: Mapping[int, Teller], now_ns: int) -> list[Exposed]:
        """Give what the metrics stand at."""
        self.refused_labels = 0
        shown: dict[str, dict[Labels, float | Recorded]] = {}
        for series, added in self._in_order(samples.added):
            known = self._resolve(series, added.calls)
            points = shown.setdefault(known.family, {})
            before = points.get(known.labels)
            points[known.labels] = (
                added if not isinstance(before, Recorded) else before.joined(added)
            )
        self._add_gauges(shown, samples, tellers, now_ns)
        return [self._family(name, points) for name, points in shown.items()]

    @staticmethod
    def _in_order(added: Mapping[Series, Recorded]) -> list[tuple[Series, Recorded]]:
        """Give series in the order in which they began, so that a restart names them alike."""
        chosen = [(key, one) for key, one in added.items() if not is_internal(key.name)]
        return sorted(chosen, key=lambda pair: (pair[1].first_ns, pair[0]))

    def _add_gauges(
        self,
        shown: dict[str, dict[Labels, float | Recorded]],
        samples: Samples,
        tellers: Mapping[int, Teller],
        now_ns: int,
    ) -> None:
        """Add the gauges, one for each role and rank: the latest process speaks for it."""
        readings = sorted(
            (
                (reading, process, series)
                for (process, series), reading in samples.gauges.items()
                if not is_internal(series.name) and process in tellers
            ),
            key=lambda one: (one[0].first_ns, one[2], one[1]),
        )
        latest: dict[tuple[str, Labels], GaugeReading] = {}
        for reading, process, series in readings:
            known = self._resolve(series, reading.calls)
            teller = tellers[process]
            if not teller.is_alive and now_ns - teller.last_seen_ns > _GONE_NS:
                continue
            labels = (*known.labels, ("role", teller.role), ("rank", teller.rank))
            key = known.family, labels
            if key not in latest or latest[key].at_ns <= reading.at_ns:
                latest[key] = reading
        for (family, labels), reading in latest.items():
            shown.setdefault(family, {})[labels] = reading.value

    def _resolve(self, series: Series, calls: int) -> _Known:
        known = self._known.get(series)
        if known is None:
            known = self._known[series] = self._make(series)
        if known.has_forbidden:
            self.refused_labels += calls
        labels = tuple(
            (name, self._caps.admit(known.family, name, value, lambda: calls))
            for name, value in known.labels
        )
        return known._replace(labels=labels)

    def _make(self, series: Series) -> _Known:
        kind = _KINDS[series.type]
        family = self._name(series.name, kind)
        given = _read_labels(series.labels)
        forbidden = [name for name in given if clean_label(name).lower() in FORBIDDEN]
        if forbidden:
            self._tell(series.name, forbidden)
        labels = {
            clean_label(name): value for name, value in given.items() if name not in forbidden
        }
        known = self._labels[family]
        known.extend(sorted(labels.keys() - set(known)))
        return _Known(family, tuple(sorted(labels.items())), bool(forbidden))

    def _tell(self, name: str, forbidden: Iterable[str]) -> None:
        for label in forbidden:
            text = f"{name}.{label}"
            if text not in self._told and len(self._told) < 1_000:
                self._told.add(text)
                _log.warning(
                    "The metric %r of %r is shown without its label %r, which has too many values "
                    "for a monitoring system; it is added up over them.",
                    name,
                    self._run,
                    label,
                )

    def _name(self, name: str, kind: FamilyKind) -> str:
        """Find a name for a family that clashes with no other."""
        cleaned = clean_name(name)
        if kind is FamilyKind.COUNTER:
            cleaned = cleaned.removesuffix("_total")
        known = self._names.get((cleaned, kind))
        if known is not None:
            return known
        stem = USER_PREFIX + cleaned
        if self._taken & _samples_of(stem, kind):
            stem = f"{stem}_{kind.value}"
            number = 2
            while self._taken & _samples_of(stem, kind):
                stem, number = f"{USER_PREFIX}{cleaned}_{kind.value}_{number}", number + 1
        self._taken |= _samples_of(stem, kind)
        family = f"{stem}_total" if kind is FamilyKind.COUNTER else stem
        self._names[cleaned, kind] = family
        self._labels[family], self._kinds[family] = [], (kind, name)
        return family

    def _family(self, name: str, points: Mapping[Labels, float | Recorded]) -> Exposed:
        kind, recorded_as = self._kinds[name]
        own = _PROCESS_LABELS if kind is FamilyKind.GAUGE else ()
        names = (*self._labels[name], *own)
        family = Family(
            name=name,
            kind=kind,
            help=f"Recorded by the program as {clean_value(recorded_as)}.",
            labels=("run", *names),
            bounds=USER_BOUNDS if kind is FamilyKind.HISTOGRAM else (),
        )
        return Exposed(
            family,
            [
                Point((self._run, *_filled(names, labels)), _value(kind, value))
                for labels, value in points.items()
            ],
        )


def _samples_of(stem: str, kind: FamilyKind) -> set[str]:
    """Give every name that a family takes, the family's own in OpenMetrics among them."""
    return {stem, *(stem + end for end in _ENDS[kind])}


def _filled(names: Iterable[str], labels: Labels) -> list[str]:
    values = dict(labels)
    return [values.get(name, "") for name in names]


def _value(kind: FamilyKind, value: float | Recorded) -> float | Distribution:
    if not isinstance(value, Recorded):
        return value
    if kind is FamilyKind.HISTOGRAM:
        return Distribution(value.counts, value.total)
    return value.total


def _read_labels(text: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str], strict=False)
    except UNDECODABLE:
        return {}
