from __future__ import annotations

import json
from typing import Any

from rollscope.otlp.export.points import PointMaker
from rollscope.otlp.export.position import SeriesState
from rollscope.otlp.export.resources import Resources
from rollscope.otlp.export.settings import read_settings


def sample(kind: str, time_ns: int, value: float, **more: Any) -> dict[str, Any]:
    plain = {"process": 1, "name": "m", "labels": "{}", "count": 0, "min": None, "max": None}
    return {**plain, "type": kind, "time_ns": time_ns, "value": value, "buckets": "{}", **more}


def maker(series: dict[str, SeriesState] | None = None, **env: str) -> PointMaker:
    resources = Resources("r1", read_settings(env))
    resources.learn([{"process": 1, "host": "h", "pid": 5, "role": "rollout", "rank": 0}])
    return PointMaker(resources, {} if series is None else series)


def test_counters_come_to_what_they_grew_by_in_all() -> None:
    points = maker().make([sample("counter", 10, 2.0), sample("counter", 20, 3.0)])
    assert [(point.time_ns, point.value) for point in points] == [(10, 2.0), (20, 5.0)]
    assert len({point.start_ns for point in points}) == 1
    assert points[0].start_ns < points[0].time_ns


def test_series_of_other_labels_and_processes_are_counted_apart() -> None:
    rows = [
        sample("counter", 10, 2.0, labels='{"a":"1"}'),
        sample("counter", 10, 3.0, labels='{"a":"2"}'),
        sample("counter", 10, 4.0, process=2),
    ]
    assert [point.value for point in maker().make(rows)] == [2.0, 3.0, 4.0]


def test_gauges_are_what_they_are() -> None:
    points = maker().make([sample("gauge", 10, 2.0), sample("gauge", 20, 1.0)])
    assert [point.value for point in points] == [2.0, 1.0]


def test_histograms_are_added_up_bucket_by_bucket() -> None:
    def told(time_ns: int, low: float, high: float, buckets: dict[int, int]) -> dict[str, Any]:
        text = json.dumps(buckets)
        count = sum(buckets.values())
        return sample("histogram", time_ns, 1.5, count=count, min=low, max=high, buckets=text)

    rows = [told(10, 0.5, 1.0, {0: 2}), told(20, 0.25, 0.75, {0: 1, -8: 1})]
    last = maker().make(rows)[-1]
    assert (last.value, last.count, last.min, last.max) == (3.0, 4, 0.25, 1.0)
    assert last.buckets == {0: 3, -8: 1}


def test_sums_go_on_from_what_an_earlier_export_had_come_to() -> None:
    series: dict[str, SeriesState] = {}
    maker(series).make([sample("counter", 10, 2.0)])
    (point,) = maker(series).make([sample("counter", 20, 3.0)])
    assert point.value == 5.0


def test_the_environment_names_the_service_and_adds_to_the_resource() -> None:
    made = maker(OTEL_SERVICE_NAME="mine", OTEL_RESOURCE_ATTRIBUTES="team=x,host.name=other")
    (point,) = made.make([sample("gauge", 10, 2.0)])
    assert point.sender.attrs == {
        "service.name": "mine",
        "service.instance.id": f"{1:016x}",
        "host.name": "other",
        "process.pid": 5,
        "rollscope.run": "r1",
        "rollscope.role": "rollout",
        "rollscope.rank": 0,
        "team": "x",
    }
