"""Families as requests of OTLP: what a scrape would have found, for whoever speaks OpenTelemetry.

Names stay as they are, their endings included. A label that is empty is left out, as in Prometheus
it is the same as none. A point that is not there any more is told once, as one without a value.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from rollscope._version import __version__
from rollscope.metrics.families import Distribution, Exemplar, Exposed, Family, FamilyKind
from rollscope.otlp.export.spans import SCOPE_NAME
from rollscope.otlp.export.wire import CUMULATIVE, metrics_request, put_attrs

__all__ = ["FamilyWriter"]

_UNITS: Final = {"seconds": "s", "bytes": "By", "ratio": "1"}
_NO_VALUE: Final = 1
"""The flag of a point that has ended."""
_TRACE_ID: Final = ("trace_id", 16)
_SPAN_ID: Final = ("span_id", 8)
_RUN: Final = "run"


class _Told(NamedTuple):
    """One point on its way; without a value if it has ended."""

    family: Family
    labels: tuple[str, ...]
    value: float | Distribution | None


class FamilyWriter:
    """Writes requests, one look after the other."""

    def __init__(
        self,
        resource: Mapping[str, Any],
        *,
        as_json: bool,
        batch: int,
        began_ns: Callable[[str], int],
    ) -> None:
        """Make ready.

        Args:
            resource: Attributes of who tells.
            as_json: Whether requests are written in JSON.
            batch: Points in a request.
            began_ns: When a run began, which is what its sums count from; 0 if nobody knows. An
                empty name stands for the server.
        """
        self._resource = resource
        self._as_json = as_json
        self._batch = batch
        self._began_ns = began_ns
        self._known: dict[str, tuple[Family, set[tuple[str, ...]]]] = {}

    def encode(self, exposed: Sequence[Exposed], at_ns: int) -> list[bytes]:
        """Write what families stand at."""
        before, self._known = self._known, {}
        told = [*self._fresh(exposed), *self._gone(before)]
        return self._requests(told, at_ns)

    def encode_ending(self, at_ns: int) -> list[bytes]:
        """Write that all points have ended."""
        before, self._known = self._known, {}
        return self._requests(list(self._gone(before)), at_ns)

    def _fresh(self, exposed: Sequence[Exposed]) -> Iterator[_Told]:
        for family, points in exposed:
            _, fresh = self._known.setdefault(family.name, (family, set()))
            for point in points:
                if point.labels not in fresh:
                    fresh.add(point.labels)
                    yield _Told(family, *point)

    def _gone(self, before: dict[str, tuple[Family, set[tuple[str, ...]]]]) -> Iterator[_Told]:
        for name, (family, known) in before.items():
            now, left = self._known.get(name, (family, set[tuple[str, ...]]()))
            # With other labels than before, none of its points is what it was.
            gone = known - left if now.labels == family.labels else known
            yield from (_Told(family, labels, None) for labels in sorted(gone))

    def _requests(self, told: list[_Told], at_ns: int) -> list[bytes]:
        told.sort(key=_metric_of)  # what ended stands beside what goes on
        rest, began, requests = iter(told), dict[str, int](), []
        while batch := list(islice(rest, self._batch)):
            request = metrics_request()
            part = request.resource_metrics.add()
            put_attrs(part.resource.attributes, self._resource)
            held = part.scope_metrics.add()
            held.scope.name, held.scope.version = SCOPE_NAME, __version__
            for _, same in groupby(batch, key=_metric_of):
                self._put(held.metrics.add(), list(same), at_ns, began)
            requests.append(_as_json(request) if self._as_json else request.SerializeToString())
        return requests

    def _put(self, metric: Any, told: list[_Told], at_ns: int, began: dict[str, int]) -> None:  # noqa: ANN401
        family = told[0].family
        metric.name, metric.description = family.name, family.help
        metric.unit = _UNITS.get(family.unit, "")
        holder = _holder(metric, family.kind)
        for each in told:
            labels = dict(zip(each.family.labels, each.labels, strict=True))
            put = holder.data_points.add()
            put.time_unix_nano = at_ns
            put_attrs(
                put.attributes, {name: _clean(value) for name, value in labels.items() if value}
            )
            if family.kind in (FamilyKind.COUNTER, FamilyKind.HISTOGRAM):
                run = labels.get(_RUN, "")
                if run not in began:
                    began[run] = self._began_ns(run)
                put.start_time_unix_nano = began[run] if began[run] < at_ns else 0
            _put_value(put, each.family, each.value)


def _metric_of(told: _Told) -> tuple[str, str]:
    return told.family.name, told.family.kind


def _clean(text: str) -> str:
    """Replace what is no character, as half of a pair, which protobuf would refuse."""
    return text.encode("utf-8", "replace").decode()


def _holder(metric: Any, kind: FamilyKind) -> Any:  # noqa: ANN401
    if kind is FamilyKind.HISTOGRAM:
        metric.histogram.aggregation_temporality = CUMULATIVE
        return metric.histogram
    if kind is FamilyKind.COUNTER:
        metric.sum.aggregation_temporality, metric.sum.is_monotonic = CUMULATIVE, True
        return metric.sum
    return metric.gauge


def _put_value(put: Any, family: Family, value: float | Distribution | None) -> None:  # noqa: ANN401
    if value is None:
        put.flags = _NO_VALUE
    elif isinstance(value, Distribution):
        put.count, put.sum = sum(value.counts), value.total
        put.explicit_bounds.extend(family.bounds)
        put.bucket_counts.extend(value.counts)
        for exemplar in value.exemplars.values():
            _put_exemplar(put.exemplars.add(), exemplar)
    else:
        put.as_double = value


def _put_exemplar(put: Any, exemplar: Exemplar) -> None:  # noqa: ANN401
    labels = dict(exemplar.labels)
    put.as_double, put.time_unix_nano = exemplar.value, round(exemplar.at_s * 1e9)
    put.trace_id, put.span_id = _take_id(labels, *_TRACE_ID), _take_id(labels, *_SPAN_ID)
    put_attrs(put.filtered_attributes, {name: _clean(value) for name, value in labels.items()})


def _take_id(labels: dict[str, str], name: str, size: int) -> bytes:
    """Take an id out of labels; one that is none stays there."""
    try:
        found = bytes.fromhex(labels.get(name, ""))
    except ValueError:
        return b""
    if len(found) != size:
        return b""
    del labels[name]
    return found


def _as_json(request: Any) -> bytes:  # noqa: ANN401
    """Write a request in OTLP's JSON: as protobuf's own, but for ids, which are in hex."""
    from base64 import b64decode

    import msgspec
    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]

    written: dict[str, Any] = MessageToDict(request, use_integers_for_enums=True)
    for part in written["resourceMetrics"]:
        for metric in part["scopeMetrics"][0]["metrics"]:
            for point in metric.get("histogram", {}).get("dataPoints", ()):
                for exemplar in point.get("exemplars", ()):
                    for name in exemplar.keys() & {"traceId", "spanId"}:
                        exemplar[name] = b64decode(exemplar[name]).hex()
    return msgspec.json.encode(written)
