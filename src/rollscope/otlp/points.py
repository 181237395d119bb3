"""Points of metrics: what changed since the last one, with few enough series to keep.

Counters and histograms that tell how they stand are turned into what they grew by, as our own
metrics are written. A sender that began before we did has counted things that are not of this time:
its first point only says where to count from.
"""

from typing import Final

import msgspec

from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType
from rollscope.otlp.forms import PointForm, Request
from rollscope.otlp.placing import Placer
from rollscope.otlp.remembering import Recent
from rollscope.otlp.traces import EARLIEST_NS, LATEST_AHEAD_NS
from rollscope.otlp.writing import Book, Books

__all__ = ["MOST_SERIES", "Points"]

MOST_SERIES: Final = 2_000
"""Of one metric and sender; what goes beyond it is told apart no more."""
_FOLDED: Final = {"series": "other"}
_MOST_ALL_SERIES: Final = 50_000
"""Of all metrics and senders."""
_MOST_STATES: Final = 100_000
_MOST_METRICS: Final = 5_000
"""Names of one sender; more are left out."""
_SAME_TIME_NS: Final = 1_000_000
_MOST_COUNT: Final = 2**62

SeriesKey = tuple[str, str, str, str, tuple[tuple[str, str], ...]]
"""Run, sender, metric, type, labels."""


class _State(msgspec.Struct):
    """How a series stood."""

    start_ns: int
    value: float
    count: int
    buckets: dict[int, int]


class Points:
    """Takes points of metrics, request by request."""

    def __init__(
        self,
        placer: Placer,
        books: Books,
        started_ns: int,
        *,
        same_time_ns: int = _SAME_TIME_NS,
    ) -> None:
        """Know no series yet.

        Args:
            placer: Knows the runs of senders.
            books: Where points go.
            started_ns: What a total says that began before that is not of this time.
            same_time_ns: How far apart points of one moment may be.
        """
        self._placer = placer
        self._same_time_ns = same_time_ns
        self._books = books
        self._started_ns = started_ns
        self._states: Recent[SeriesKey, _State] = Recent(_MOST_STATES)
        self._series: dict[tuple[str, str], dict[str, set[int]]] = {}
        self._kept_series = 0

    def take(self, request: Request, now_ns: int) -> None:
        """Put the points of a request into the books."""
        folded: dict[tuple[int, str, str, str], Metric] = {}
        for point in request.points:
            if not point.name:
                request.reject("has no name")
                continue
            if not point.time_ns:
                point.time_ns = now_ns
            if not EARLIEST_NS <= point.time_ns <= now_ns + LATEST_AHEAD_NS:
                request.reject("has a time that cannot be right")
                continue
            book = self._books.book(self._placer.run_of(point.sender), point.sender)
            if not self._has_room(book, point):
                request.reject(f"is of more than {_MOST_METRICS} metrics")
                continue
            metric = self._change(book, point)
            if metric is None:
                continue
            time_ns = min(point.time_ns, now_ns) // self._same_time_ns * self._same_time_ns
            if metric.labels is not _FOLDED:
                book.metrics.setdefault(time_ns, []).append(metric)
                continue
            self._books.fold_series(book, 1)
            key = (time_ns, book.run, book.key, f"{point.type} {point.name}")
            if key in folded:
                _add(folded[key], metric)
            else:
                folded[key] = metric
                book.metrics.setdefault(time_ns, []).append(metric)

    def _has_room(self, book: Book, point: PointForm) -> bool:
        names = self._series.setdefault((book.run, book.key), {})
        return point.name in names or len(names) < _MOST_METRICS

    def _labels(self, book: Book, point: PointForm) -> tuple[dict[str, str], bool]:
        """Give the labels under which a point is kept, and whether they are new."""
        names = self._series.setdefault((book.run, book.key), {})
        series = names.setdefault(point.name, set())
        number = hash((point.type, tuple(point.labels.items())))
        if number in series:
            return point.labels, False
        if len(series) >= MOST_SERIES or self._kept_series >= _MOST_ALL_SERIES:
            return _FOLDED, False
        self._kept_series += 1
        series.add(number)
        return point.labels, True

    def _change(self, book: Book, point: PointForm) -> Metric | None:
        labels, is_new = self._labels(book, point)
        is_level = point.type is MetricType.GAUGE
        metric = Metric(
            point.type,
            point.name,
            labels,
            point.value,
            min(point.count, _MOST_COUNT),
            point.min,
            point.max,
            {bucket: min(count, _MOST_COUNT) for bucket, count in point.buckets.items()},
        )
        if is_level is not point.is_difference:
            return metric  # a level that is told, or a growth that is told
        texts = tuple(point.labels.items())
        key = (book.run, book.key, point.name, str(point.type), texts)
        before = self._states.get(key)
        if is_level:
            metric.value += before.value if before else 0.0
            self._states.put(key, _State(0, metric.value, 0, {}))
            return metric
        state = _State(point.start_ns, metric.value, metric.count, metric.buckets)
        self._states.put(key, state)
        if before is None:
            # One that was forgotten must not be counted twice.
            return metric if is_new and point.start_ns >= self._started_ns else None
        return _grown(metric, before, state)


def _grown(metric: Metric, before: _State, now: _State) -> Metric | None:
    """Give what a series grew by; one that fell has begun anew."""
    is_new = now.start_ns > before.start_ns > 0 or now.count < before.count
    if is_new or (metric.type is MetricType.COUNTER and now.value < before.value):
        return metric
    metric.value = now.value - before.value
    if metric.type is MetricType.COUNTER:
        return metric if metric.value else None
    metric.count = now.count - before.count
    buckets = {
        bucket: count - before.buckets.get(bucket, 0) for bucket, count in now.buckets.items()
    }
    metric.buckets = _fitted(buckets, metric.count)
    metric.min = metric.max = None  # those are of all time
    return metric if metric.count else None


def _fitted(buckets: dict[int, int], count: int) -> dict[int, int]:
    """Drop what is too much: a histogram that became coarser has moved its old values too."""
    fitted: dict[int, int] = {}
    for bucket, number in sorted(buckets.items()):
        if number > 0 and count > 0:
            fitted[bucket] = min(number, count)
            count -= fitted[bucket]
    return fitted


def _add(metric: Metric, other: Metric) -> None:
    """Add a series to those that are kept as one."""
    metric.count = min(metric.count + other.count, _MOST_COUNT)
    if metric.type is MetricType.GAUGE:
        metric.value = other.value
        return
    metric.value += other.value
    for bucket, count in other.buckets.items():
        metric.buckets[bucket] = min(metric.buckets.get(bucket, 0) + count, _MOST_COUNT)
    both = [value for value in (metric.min, other.min) if value is not None]
    metric.min = min(both, default=None)
    both = [value for value in (metric.max, other.max) if value is not None]
    metric.max = max(both, default=None)
