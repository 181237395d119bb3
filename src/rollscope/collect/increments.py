"""What an exposition says as metrics of a run: counters and histograms by what was added since.

Whoever is asked counts from its own start, the run from one reading to the next. A count that went
down began anew, with a restart of its process; what it shows then is all new.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.exposition import Exposition, Point
from rollscope.metrics.explicit import explicit_buckets
from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType

__all__ = ["MOST_METRICS", "Increments", "Reading"]

MOST_METRICS: Final = 2_000
"""Of one target; engines have about twenty for each model."""
_MOST_LABELS: Final = 16
_LABEL_CHARACTERS: Final = 200
_MOST_BUCKETS: Final = 512
_BOUND: Final = "le"

Labels = tuple[tuple[str, str], ...]
Key = tuple[str, Labels]


class _Histogram:
    """What a histogram shows: how many values were no greater than each bound."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.count = 0.0
        self.up_to: dict[float, float] = {}

    def add(self, part: str, bound: float, value: float) -> None:
        match part:
            case "_sum":
                self.sum = value
            case "_count":
                self.count = value
            case _ if len(self.up_to) < _MOST_BUCKETS and not math.isnan(bound):
                self.up_to[bound] = value

    def since(self, before: "_Histogram") -> "_Histogram":
        if self.count < before.count:
            return self
        rest = _Histogram()
        rest.sum, rest.count = self.sum - before.sum, self.count - before.count
        rest.up_to = {
            bound: count - before.up_to.get(bound, 0.0) for bound, count in self.up_to.items()
        }
        return rest

    def metric(self, name: str, labels: dict[str, str]) -> Metric | None:
        if self.count < 1:
            return None
        bounds = sorted(self.up_to)
        steps = [0.0, *(self.up_to[bound] for bound in bounds)]
        counts = [max(round(high - low), 0) for low, high in pairwise(steps)]
        finite = [bound for bound in bounds if math.isfinite(bound)]
        buckets = explicit_buckets(finite, counts, None, None)
        return Metric(
            MetricType.HISTOGRAM, name, labels, self.sum, round(self.count), buckets=buckets
        )


class _State:
    """What a target showed."""

    def __init__(self) -> None:
        self.counters: dict[Key, float] = {}
        self.histograms: dict[Key, _Histogram] = {}


class Reading(NamedTuple):
    """What there is to write, and what is remembered once it is written."""

    metrics: list[Metric]
    left_out: int
    """Series beyond the most that are taken."""
    state: _State


class Increments:
    """Remembers what one target showed last."""

    def __init__(
        self,
        choice: SeriesChoice,
        own_labels: Callable[[Mapping[str, str]], dict[str, str]],
        *,
        from_start: bool = False,
        most: int = MOST_METRICS,
    ) -> None:
        """Remember nothing yet.

        Args:
            choice: What is kept.
            own_labels: Gives what to add to the labels of a line.
            from_start: Whether all that the first reading shows counts as new.
            most: How many series are taken.
        """
        self._choice = choice
        self._own_labels = own_labels
        self._most = most
        self._before = _State() if from_start else None

    def read(self, exposition: Exposition) -> Reading:
        """Make metrics of an exposition; the first one gives gauges only, unless told otherwise."""
        state, gauges, left_out = _State(), dict[Key, float](), 0
        for point in exposition.points:
            chosen = self._choice.choose(point.name, exposition.types)
            if chosen is None or not math.isfinite(point.value):
                continue
            key = (chosen.name, self._labels(point, is_part=bool(chosen.part)))
            if len(gauges) + len(state.counters) + len(state.histograms) >= self._most and not (
                key in gauges or key in state.counters or key in state.histograms
            ):
                left_out += 1
            elif chosen.type is MetricType.GAUGE:
                gauges[key] = point.value
            elif chosen.type is MetricType.COUNTER:
                state.counters[key] = point.value
            else:
                histogram = state.histograms.setdefault(key, _Histogram())
                histogram.add(chosen.part, _bound_of(point), point.value)
        metrics = [
            Metric(MetricType.GAUGE, name, dict(labels), value, 1)
            for (name, labels), value in gauges.items()
        ]
        return Reading(metrics + self._added(state), left_out, state)

    def accept(self, reading: Reading) -> None:
        """Count from that reading on: it has been written."""
        self._before = reading.state

    def forget(self) -> None:
        """Count anew: what comes next belongs to another run."""
        self._before = None

    def _labels(self, point: Point, *, is_part: bool) -> Labels:
        given = {
            name[:_LABEL_CHARACTERS]: value[:_LABEL_CHARACTERS]
            for name, value in list(point.labels.items())[:_MOST_LABELS]
            if not (is_part and name == _BOUND)
        }
        return tuple(sorted({**given, **self._own_labels(point.labels)}.items()))

    def _added(self, state: _State) -> list[Metric]:
        """Give what was added since the last reading, where anything was."""
        before = self._before
        if before is None:
            return []
        added: list[Metric | None] = []
        for (name, labels), value in state.counters.items():
            last = before.counters.get((name, labels), 0.0)
            more = value - last if value >= last else value
            if more > 0:
                added.append(Metric(MetricType.COUNTER, name, dict(labels), more, 1))
        for key, histogram in state.histograms.items():
            known = before.histograms.get(key)
            rest = histogram if known is None else histogram.since(known)
            added.append(rest.metric(key[0], dict(key[1])))
        return [metric for metric in added if metric is not None]


def _bound_of(point: Point) -> float:
    try:
        return float(point.labels.get(_BOUND, "nan"))
    except ValueError:
        return math.nan
