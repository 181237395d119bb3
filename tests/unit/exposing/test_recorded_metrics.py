"""Metrics that a program records, as they are shown to monitoring systems."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from rollscope import Tracer
from rollscope.exposing.catalogue import METRIC_REFUSALS
from rollscope.exposing.runs import RunExposition
from rollscope.exposing.samples import USER_BOUNDS
from rollscope.metrics.families import Distribution, FamilyKind
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from pathlib import Path

    from rollscope.metrics.families import Exposed

SECOND = 1_000_000_000
Shown = dict[frozenset[tuple[str, str]], Any]


def _look(run: Path, now_ns: int | None = None) -> dict[str, Exposed]:
    with RunStore(run, now_ns=now_ns, threads=1) as store:
        exposed = RunExposition("run").look(store)
    names = [one.family.name for one in exposed]
    assert len(names) == len(set(names))
    return {one.family.name: one for one in exposed}


def _points(exposed: dict[str, Exposed], name: str) -> Shown:
    """Give the points of a family by those labels that say something, the run's left out."""
    family, points = exposed[name]
    return {
        frozenset(
            pair for pair in zip(family.labels[1:], one.labels[1:], strict=True) if pair[1]
        ): one.value
        for one in points
    }


def _labels(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


def _refused(exposed: dict[str, Exposed]) -> dict[str, float]:
    points = _points(exposed, METRIC_REFUSALS.name)
    return {dict(labels)["reason"]: value for labels, value in points.items()}


def test_counters_and_histograms_are_added_up_over_processes(tmp_path: Path) -> None:
    for rank in range(2):
        with Tracer(run="run", dir=tmp_path, rank=rank) as tracer:
            for number in range(1, 5):
                tracer.count("work.done", number, tool="python")
                tracer.observe("wait-s", 0.1 * number)
    shown = _look(tmp_path / "run")
    assert _points(shown, "rollscope_user_work_done_total") == {_labels(tool="python"): 20.0}
    (waits,) = _points(shown, "rollscope_user_wait_s").values()
    assert isinstance(waits, Distribution)
    assert sum(waits.counts) == 8
    assert waits.total == pytest.approx(2.0)
    expected = [0] * (len(USER_BOUNDS) + 1)
    for number in range(1, 5):
        expected[next(n for n, bound in enumerate(USER_BOUNDS) if 0.1 * number <= bound)] += 2
    assert list(waits.counts) == expected


def test_values_beyond_all_bounds_and_below_zero_are_counted(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        for value in (-3.0, 0.0, 1e-9, 1e12):
            tracer.observe("odd", value)
    (odd,) = _points(_look(tmp_path / "run"), "rollscope_user_odd").values()
    assert (odd.counts[0], odd.counts[-1], sum(odd.counts)) == (3, 1, 4)
    assert odd.total == pytest.approx(1e12 - 3)


def test_ranks_have_gauges_of_their_own_and_a_restarted_one_goes_on(tmp_path: Path) -> None:
    for rank, value in ((0, 1.0), (1, 2.0), (1, 3.0)):
        with Tracer(run="run", dir=tmp_path, role="trainer", rank=rank) as tracer:
            tracer.gauge("loss", value)
    shown = _points(_look(tmp_path / "run"), "rollscope_user_loss")
    assert shown == {
        _labels(role="trainer", rank="0"): 1.0,
        _labels(role="trainer", rank="1"): 3.0,
    }


def test_gauges_of_a_process_that_ended_long_ago_are_gone(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        tracer.gauge("loss", 1.0)
        tracer.count("steps")
    with RunStore(tmp_path / "run") as store:
        ended_ns = store.query("SELECT max(last_seen_ns) AS n FROM processes")["n"][0].as_py()
    assert "rollscope_user_loss" in _look(tmp_path / "run", ended_ns + 299 * SECOND)
    later = _look(tmp_path / "run", ended_ns + 301 * SECOND)
    assert "rollscope_user_loss" not in later
    assert "rollscope_user_steps_total" in later


def test_further_labels_leave_those_without_them_empty(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        tracer.count("calls_total", a="1")
        tracer.count("calls_total", b="2", a="1")
        tracer.count("calls_total")
    shown = _look(tmp_path / "run")
    family, points = shown["rollscope_user_calls_total"]
    assert family.labels == ("run", "a", "b")
    assert sorted(one.labels for one in points) == [
        ("run", "", ""),
        ("run", "1", ""),
        ("run", "1", "2"),
    ]


def test_one_name_for_three_kinds_gives_three_families(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        tracer.count("x", 5)
        tracer.gauge("x", 6)
        tracer.observe("x", 7)
        tracer.gauge("x_total", 8)
    shown = _look(tmp_path / "run")
    user = {name: one for name, one in shown.items() if name.startswith("rollscope_user_")}
    assert sorted(one.family.kind for one in user.values()) == [
        FamilyKind.COUNTER,
        FamilyKind.GAUGE,
        FamilyKind.GAUGE,
        FamilyKind.HISTOGRAM,
    ]
    assert len({one.family.stem for one in user.values()}) == 4
    assert "rollscope_user_x_total" in user


def test_labels_with_a_value_for_everything_are_left_out_counted_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        for number in range(10):
            tracer.count("calls", session_id=f"s{number}", tool="python")
    with caplog.at_level(logging.WARNING, "rollscope.exposing"):
        shown = _look(tmp_path / "run")
    assert _points(shown, "rollscope_user_calls_total") == {_labels(tool="python"): 10.0}
    assert _refused(shown) == {"label": 10}
    assert len(caplog.records) == 1
    assert "session_id" in caplog.text


@pytest.mark.parametrize("name", ["session.id", "Session-ID", "_session_id"])
def test_a_label_is_left_out_however_it_is_written(tmp_path: Path, name: str) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        for number in range(3):
            tracer.count("calls", **{name: f"s{number}"})
    shown = _look(tmp_path / "run")
    assert _points(shown, "rollscope_user_calls_total") == {frozenset(): 3.0}
    assert _refused(shown) == {"label": 3}


def test_a_name_of_several_lines_is_explained_in_one(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        tracer.count("two\r\nlines")
    family, _ = _look(tmp_path / "run")["rollscope_user_two__lines_total"]
    assert family.help == "Recorded by the program as two\ufffd\ufffdlines."


def test_more_values_than_the_bound_are_counted_as_other(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        for number in range(250):
            tracer.count("calls", 2, tool=f"t{number:03}")
    shown = _look(tmp_path / "run")
    points = _points(shown, "rollscope_user_calls_total")
    assert len(points) == 201
    assert points[_labels(tool="other")] == 100.0
    assert sum(points.values()) == 500.0
    assert _refused(shown) == {"label_values": 50}


def test_labels_that_are_ours_keep_their_meaning(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path, role="rollout", rank=3) as tracer:
        tracer.gauge("load", 1.0, run="mine", rank="9", **{"odd-name": "x", "__y": "z"})
    shown = _points(_look(tmp_path / "run"), "rollscope_user_load")
    own = {"user_run": "mine", "user_rank": "9", "odd_name": "x", "y": "z"}
    assert shown == {_labels(**own, role="rollout", rank="3"): 1.0}


def test_internal_metrics_are_no_users(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        tracer.gauge("rollscope.staleness_bound", 4)
        tracer.observe("event_loop_lag_seconds", 0.5)
    with Tracer(run="run", dir=tmp_path, role="scraper") as tracer:
        tracer.count("vllm:num_preemptions_total", 3)
        tracer.gauge("vllm:num_requests_running", 3)
        tracer.gauge("rollscope.engine.up", 0, replica="r1")
    shown = _look(tmp_path / "run")
    assert not [name for name in shown if name.startswith("rollscope_user_")]
    assert _points(shown, "rollscope_staleness_bound_versions") == {frozenset(): 4.0}
    assert list(_points(shown, "rollscope_event_loop_lag_seconds").values()) == [0.5]
    assert _points(shown, "rollscope_target_up") == {_labels(replica="r1"): 0}


def test_sealed_and_fresh_records_make_one_sum(tmp_path: Path) -> None:
    run = tmp_path / "run"
    exposition = RunExposition("run")
    with Tracer(run="run", dir=tmp_path) as tracer:
        tracer.count("calls", 2)
        tracer.observe("wait", 1.0)
        tracer.flush()
        with RunStore(run, threads=1) as store:
            assert store.seal()
            exposition.look(store)
            tracer.count("calls", 3)
            tracer.observe("wait", 3.0)
            tracer.flush()
            store.refresh()
            shown = {one.family.name: one for one in exposition.look(store)}
    assert list(_points(shown, "rollscope_user_calls_total").values()) == [5.0]
    (waits,) = _points(shown, "rollscope_user_wait").values()
    assert (sum(waits.counts), waits.total) == (2, 4.0)
