"""A timeline that a real Ray writes, imported."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import ray

from rollscope.importing.running import import_run
from rollscope.store.embedded import RunStore
from tests.ray_cluster import IGNORE_LEAKS_OF_RAY, small_cluster

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = IGNORE_LEAKS_OF_RAY
_TASKS = 4
_PATIENCE_S = 60


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """Look for nothing: Ray leaves its connections to the end of the process."""


def _work(number: int) -> int:
    if number == _TASKS - 1:
        raise ValueError("no answer")
    return number


def _record(path: Path) -> None:
    """Run some tasks, of which one fails, and write Ray's timeline once it knows of all."""
    with small_cluster():
        # By name and not as a decorator: Ray's is not typed.
        run = ray.remote(max_retries=0)(_work)
        for number in range(_TASKS):
            with suppress(ValueError):
                ray.get(run.remote(number))
        deadline = time.monotonic() + _PATIENCE_S
        while _finished(ray.timeline()) < _TASKS:
            assert time.monotonic() < deadline, "Ray never told of its tasks"
        ray.timeline(filename=str(path))


def _finished(events: list[dict[str, Any]]) -> int:
    return sum(str(event.get("cat", "")).startswith("task::") for event in events)


def test_a_real_timeline_of_ray_shows_tasks_workers_and_the_failure(tmp_path: Path) -> None:
    began_ns = time.time_ns()
    _record(tmp_path / "timeline.json")
    ended_ns = time.time_ns()
    report = import_run([tmp_path / "timeline.json"], tmp_path / "run")
    events = json.loads((tmp_path / "timeline.json").read_text())
    (file,) = report.files
    assert file.read == file.imported == len(events)
    with RunStore(tmp_path / "run") as store:
        spans = store.query("SELECT name, lane, status, reason, start_ns, end_ns FROM spans")
        rows = spans.to_pylist()
    assert len(rows) == sum(event["ph"] == "X" for event in events)
    assert all(began_ns < row["start_ns"] <= row["end_ns"] < ended_ns for row in rows)
    tasks = [row for row in rows if row["name"].endswith("_work")]
    assert len(tasks) == _TASKS
    assert all(" worker:" in row["lane"] for row in tasks)
    failed = [row["reason"] for row in rows if row["status"] == "error"]
    assert failed == ["ValueError: no answer"]
