"""Metrics over time and by step; what changes from step to step."""

from pathlib import Path

import pytest

from rollscope.analysis.sync import sync_split
from rollscope.answers.facts import gather_steps
from rollscope.answers.series import list_metrics, series
from rollscope.answers.steps import steps
from rollscope.answers.stepseries import step_series
from rollscope.errors import CommandError
from rollscope.instrument.tracer import Tracer
from rollscope.store.embedded import RunStore
from rollscope.testing import FakeClock


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record two steps with ten values each of a gauge, a counter and a histogram."""
    folder, clock = tmp_path_factory.mktemp("measured"), FakeClock()
    with Tracer(run="run", dir=folder, clock=clock) as tracer:
        for step in range(2):
            with tracer.step(step):
                for number in range(10):
                    tracer.gauge("loss", step * 10 + number, shard="a")
                    tracer.gauge("loss", 100, shard="b")
                    tracer.count("tokens", 2)
                    tracer.observe("latency", number + 1)
                    tracer.flush(10)
                    clock.advance(1)
    return folder / "run"


def test_metrics_are_listed_with_what_they_are(measured: Path) -> None:
    with RunStore(measured, threads=1) as store:
        listed = {line.name: line for line in list_metrics(store).metrics}
    assert [(name, line.type) for name, line in listed.items()] == [
        ("latency", "histogram"),
        ("loss", "gauge"),
        ("tokens", "counter"),
    ]
    assert listed["loss"].label_sets == 2
    assert listed["tokens"].last is None


def test_by_step_a_gauge_is_averaged_a_counter_added_up(measured: Path) -> None:
    with RunStore(measured, threads=1) as store:
        loss = series(store, "loss", "step")
        tokens = series(store, "tokens", "step")
        latency = series(store, "latency", "step")
    assert loss.positions == tokens.positions == [0, 1]
    assert [line.labels for line in loss.lines] == [{"shard": "a"}, {"shard": "b"}]
    assert loss.lines[0].values == [4.5, 14.5]
    assert (loss.lines[0].lows, loss.lines[0].highs) == ([0, 10], [9, 19])
    assert tokens.lines[0].values == [20, 20]
    assert tokens.lines[0].lows == [None, None]
    assert latency.lines[0].values == [5.5, 5.5]
    assert (latency.lines[0].lows, latency.lines[0].highs) == ([1, 1], [10, 10])


@pytest.mark.parametrize("points", [1, 3, 7, 1000])
def test_over_time_nothing_is_lost_however_few_points_there_are(
    measured: Path, points: int
) -> None:
    with RunStore(measured, threads=1) as store:
        found = series(store, "tokens", points=points)
    (line,) = found.lines
    assert len(found.positions) == len(line.values) <= points
    assert sum(value or 0 for value in line.values) == 40


def test_a_stretch_of_time_can_be_chosen(measured: Path) -> None:
    with RunStore(measured, threads=1) as store:
        times = store.query("SELECT time_ns FROM metrics WHERE name = 'tokens' ORDER BY time_ns")
        low, high = times["time_ns"][5].as_py(), times["time_ns"][8].as_py()
        found = series(store, "tokens", since_ns=low, until_ns=high)
        nothing = series(store, "tokens", since_ns=high + 10**12)
    assert sum(value or 0 for value in found.lines[0].values) == 8
    assert (nothing.positions, nothing.lines) == ([], [])


def test_a_metric_that_is_not_there_is_named_with_those_that_are(measured: Path) -> None:
    with RunStore(measured, threads=1) as store, pytest.raises(CommandError) as error:
        series(store, "los")
    assert str(error.value) == (
        "the run records no metric 'los'; it records latency, loss and tokens"
    )


@pytest.fixture(params=["running", "over"])
def store(request: pytest.FixtureRequest) -> RunStore:
    """Give each of the two runs."""
    found: RunStore = request.getfixturevalue(request.param)
    return found


def test_busy_slots_by_phase_and_idle_ones_make_up_the_slot_time(store: RunStore) -> None:
    found = step_series(store)
    listed = [line.summary for line in steps(store).steps]
    assert found.steps == [summary.step for summary in listed]
    assert found.wall_ns == [summary.wall_ns for summary in listed]
    assert found.is_open == [summary.is_open for summary in listed]
    for place, summary in enumerate(listed):
        busy = sum(amounts[place] for amounts in found.busy_ns.values())
        assert busy == summary.busy_ns
        assert busy + sum(summary.idle_ns.values()) == summary.slot_ns


def test_weight_sync_by_step_is_that_of_the_step(store: RunStore) -> None:
    found = step_series(store)
    gathered, _ = gather_steps(store, found.steps[0], found.steps[-1])
    for sync, facts in zip(found.sync, gathered, strict=True):
        split = sync_split(facts)
        parts = sync.pause_ns, sync.transfer_ns, sync.resume_ns, sync.rest_ns
        assert parts == (split.pause_ns, split.transfer_ns, split.resume_ns, split.rest_ns)
        assert sum(parts) == sync.total_ns == split.total_ns


def test_errors_by_step_are_all_errors_of_steps(store: RunStore) -> None:
    rows = store.query(
        "SELECT step, count(*) AS n FROM spans WHERE status = 'error' AND step IS NOT NULL"
        " GROUP BY step"
    ).to_pylist()
    found = step_series(store)
    for place, step in enumerate(found.steps):
        counted = sum(strip.counts[place] for strip in found.errors)
        assert counted == sum(row["n"] for row in rows if row["step"] == step)
    assert all(strip.total == sum(strip.counts) for strip in found.errors)


def test_only_the_steps_asked_for_are_given(over: RunStore) -> None:
    assert step_series(over, most=2).steps == [1, 2]


def test_short_steps_keep_their_own_values_and_what_is_outside_goes_by_time(tmp_path: Path) -> None:
    clock = FakeClock()
    with Tracer(run="run", dir=tmp_path, clock=clock, drain_s=60) as tracer:
        for step in range(5):
            with tracer.step(step):
                clock.advance(0.001)
                tracer.gauge("loss", step)
            clock.advance(0.001)
            tracer.gauge("after", step)
        clock.advance(1)
    with RunStore(tmp_path / "run", threads=1) as store:
        loss, after = series(store, "loss", "step"), series(store, "after", "step")
    assert loss.lines[0].values == after.lines[0].values == [0, 1, 2, 3, 4]


def test_a_histogram_gives_percentiles_along_both_axes(measured: Path) -> None:
    with RunStore(measured, threads=1) as store:
        by_step = series(store, "latency", "step").lines[0]
        (whole,) = series(store, "latency", points=1).lines
        (tokens,) = series(store, "tokens").lines
    assert by_step.p50 == pytest.approx([5, 5], rel=0.05)
    assert by_step.p95 == pytest.approx([10, 10], rel=0.05)
    assert whole.p50 == pytest.approx([5], rel=0.05)
    assert (tokens.p50, tokens.p95) == ([], [])


def test_gauges_of_several_ranks_are_kept_apart_and_counters_added_up(tmp_path: Path) -> None:
    for rank in (0, 1, 1):  # the second was started again
        with Tracer(run="run", dir=tmp_path, role="trainer", rank=rank) as tracer:
            tracer.gauge("loss", rank + 1)
            tracer.count("steps", 2, kind="a")
    with RunStore(tmp_path / "run", threads=1) as store:
        loss = series(store, "loss", points=1)
        steps = series(store, "steps", points=1)
    assert [(line.labels, line.values) for line in loss.lines] == [
        ({"role": "trainer", "rank": "0"}, [1]),
        ({"role": "trainer", "rank": "1"}, [2]),
    ]
    assert [(line.labels, line.values) for line in steps.lines] == [({"kind": "a"}, [6])]


def test_one_name_of_two_kinds_gives_a_line_for_each(tmp_path: Path) -> None:
    with Tracer(run="run", dir=tmp_path) as tracer:
        tracer.gauge("tokens", 5)
        tracer.count("tokens", 7)
    with RunStore(tmp_path / "run", threads=1) as store:
        found = series(store, "tokens", points=1)
    assert [(line.type, line.values) for line in found.lines] == [("counter", [7]), ("gauge", [5])]
