from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from rollscope.metrics.families import Exposed, Family, FamilyKind, Point
from rollscope.otlp import jsonmetrics, protometrics
from rollscope.otlp.answering import Signal
from rollscope.otlp.export.families import FamilyWriter
from rollscope.otlp.export.settings import read_settings
from tests.monitoring.looks import DURATIONS, FINISHED, QUEUED, TRACE_ID, look_at

if TYPE_CHECKING:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

AT_NS = 1_800_000_000_123_456_789
BEGAN_NS = 1_700_000_000_000_000_000


def writer(*, as_json: bool = False, batch: int = 512) -> FamilyWriter:
    return FamilyWriter(
        {"service.name": "rollscope"},
        as_json=as_json,
        batch=batch,
        began_ns=lambda run: BEGAN_NS if run else 0,
    )


def metrics_of(bodies: list[bytes]) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for body in bodies:
        (part,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
        assert attrs_of(part.resource) == {"service.name": "rollscope"}
        for metric in part.scope_metrics[0].metrics:
            assert metric.name not in found
            found[metric.name] = metric
    return found


def attrs_of(held: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in held.attributes}


def test_a_counter_is_a_sum_of_all_time_since_its_run_began() -> None:
    metric = metrics_of(writer().encode(look_at("a"), AT_NS))[FINISHED.name]
    assert metric.description == FINISHED.help
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == 2
    first, second = metric.sum.data_points
    assert (first.as_double, first.time_unix_nano) == (7.0, AT_NS)
    assert first.start_time_unix_nano == BEGAN_NS
    assert attrs_of(first) == {"run": "a", "outcome": "accepted"}
    assert attrs_of(second) == {"run": "a"}


def test_a_histogram_has_its_bounds_and_exemplars_with_their_traces() -> None:
    metric = metrics_of(writer().encode(look_at("a", at_s=1.5), AT_NS))[DURATIONS.name]
    assert metric.unit == "s"
    assert metric.histogram.aggregation_temporality == 2
    (point,) = metric.histogram.data_points
    assert list(point.explicit_bounds) == [0.5, 1.0, 30.0]
    assert list(point.bucket_counts) == [1, 2, 3, 4]
    assert (point.count, point.sum) == (10, 99.5)
    (exemplar,) = point.exemplars
    assert exemplar.trace_id.hex() == TRACE_ID
    assert (exemplar.as_double, exemplar.time_unix_nano) == (12.5, 1_500_000_000)
    labels = {pair.key: pair.value.string_value for pair in exemplar.filtered_attributes}
    assert labels == {"session": "math/1#0"}


def test_gauges_and_infos_are_gauges_without_a_start() -> None:
    metrics = metrics_of(writer().encode(look_at("a"), AT_NS))
    for name, value in ((QUEUED.name, 3.0), ("rollscope_run_info", 1.0)):
        (point,) = metrics[name].gauge.data_points
        assert (point.as_double, point.start_time_unix_nano) == (value, 0)


def test_a_point_that_vanished_is_told_once_as_one_without_a_value() -> None:
    pushing = writer()
    pushing.encode([*look_at("one"), *look_at("two")], AT_NS)
    metric = metrics_of(pushing.encode([Exposed(QUEUED, [Point(("two",), 1.0)])], AT_NS))
    ended = {
        (name, point.attributes[0].value.string_value)
        for name, each in metric.items()
        for point in getattr(each, each.WhichOneof("data") or "").data_points
        if point.flags & 1
    }
    assert (QUEUED.name, "one") in ended
    assert (QUEUED.name, "two") not in ended
    assert {
        (name, run) for name in (FINISHED.name, DURATIONS.name) for run in ("one", "two")
    } < ended
    again = metrics_of(pushing.encode([Exposed(QUEUED, [Point(("two",), 1.0)])], AT_NS))
    assert list(again) == [QUEUED.name]
    assert metrics_of(pushing.encode_ending(AT_NS))[QUEUED.name].gauge.data_points[0].flags == 1


def test_json_says_the_same_with_ids_in_hex() -> None:
    (body,) = writer(as_json=True).encode(look_at("a", at_s=1.5), AT_NS)
    (part,) = json.loads(body)["resourceMetrics"]
    metrics = {metric["name"]: metric for metric in part["scopeMetrics"][0]["metrics"]}
    (point,) = metrics[DURATIONS.name]["histogram"]["dataPoints"]
    assert point["exemplars"][0]["traceId"] == TRACE_ID
    assert point["bucketCounts"] == ["1", "2", "3", "4"]
    assert metrics[FINISHED.name]["sum"]["aggregationTemporality"] == 2
    ours = jsonmetrics.read_metrics(body)
    theirs = protometrics.read_metrics(writer().encode(look_at("a", at_s=1.5), AT_NS)[0])
    assert [(p.name, p.labels, p.value, p.count) for p in ours.points] == [
        (p.name, p.labels, p.value, p.count) for p in theirs.points
    ]
    assert len(ours.points) == 5


def test_many_points_go_in_several_requests() -> None:
    points = [Point((f"run-{number}",), 1.0) for number in range(25)]
    bodies = writer(batch=10).encode([Exposed(QUEUED, points)], AT_NS)
    requests = [ExportMetricsServiceRequest.FromString(body) for body in bodies]
    held = [one.resource_metrics[0].scope_metrics[0].metrics[0] for one in requests]
    assert [len(metric.gauge.data_points) for metric in held] == [10, 10, 5]


def test_text_that_is_none_and_a_start_in_the_future_do_no_harm() -> None:
    family = Family(name="x_total", kind=FamilyKind.COUNTER, help="", labels=("run", "a"))
    look = [Exposed(family, [Point(("r", "\ud800"), 1.0)])]
    (point,) = metrics_of(writer().encode(look, BEGAN_NS - 1))["x_total"].sum.data_points
    assert attrs_of(point) == {"run": "r", "a": "?"}
    assert point.start_time_unix_nano == 0


@pytest.mark.parametrize(
    ("signal", "headers", "timeout_s"),
    [(Signal.TRACES, {"a": "t"}, 1.0), (Signal.METRICS, {"a": "m"}, 3.0)],
)
def test_variables_of_the_signal_come_before_those_for_all(
    signal: Signal, headers: dict[str, str], timeout_s: float
) -> None:
    env = {
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=t",
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a=m",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "3000",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "1000",
    }
    settings = read_settings(env, signal=signal, endpoint="http://c:4318")
    assert (settings.headers, settings.timeout_s) == (headers, timeout_s)
