"""What a runner and an executor record, as monitoring systems see it: no user's code but theirs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.exposing import catalogue as ours
from rollscope.exposing.runs import expose_run
from rollscope.metrics.families import Distribution
from rollscope.rollout import WorkflowExecutor
from rollscope.runner import Runner
from rollscope.store.embedded import RunStore
from tests.unit.rollout.executors import Engine, configured

if TYPE_CHECKING:
    from pathlib import Path

    from rollscope.metrics.families import Family, Point

PATIENCE_S = 20.0


async def rollout(value: int) -> int:
    with rs.phase("generate"):
        return value


def _points(run: Path, family: Family) -> list[Point]:
    with RunStore(run, threads=1) as store:
        (exposed,) = [one for one in expose_run(store) if one.family == family]
    return list(exposed.points)


def _told(run: Path, wait: str) -> list[float]:
    """Read what was recorded of a wait, with the sessions or later."""
    with RunStore(run, threads=1) as store:
        sql = """
            SELECT attrs AS told FROM spans WHERE kind = 'session'
            UNION ALL SELECT facts AS told FROM facts"""
        rows: list[dict[str, Any]] = [
            json.loads(one) for one in store.query(sql)["told"].to_pylist() if one
        ]
    return [row[wait] for row in rows if wait in row]


def test_waits_are_those_that_the_runner_recorded(tmp_path: Path) -> None:
    rs.init(dir=str(tmp_path), run="run")
    with Runner(name="rollouts", concurrency=2, probe_s=None) as runner:
        for number in range(12):
            runner.options(key=f"swe/{number}").submit(rollout, number)
        assert len(runner.wait(12, PATIENCE_S)) == 12
    rs.shutdown()
    for family, wait in (
        (ours.QUEUE_WAIT, "queue_wait_s"),
        (ours.RUNNER_WAIT, "runner_wait_s"),
        (ours.POST_WAIT, "post_wait_s"),
    ):
        told = _told(tmp_path / "run", wait)
        (point,) = _points(tmp_path / "run", family)
        assert isinstance(point.value, Distribution)
        assert sum(point.value.counts) == len(told) == 12
        assert point.value.total == pytest.approx(sum(told), abs=1e-6)


def test_the_bound_is_the_one_of_the_executor(tmp_path: Path) -> None:
    rs.init(dir=str(tmp_path), run="run")
    executor = WorkflowExecutor(configured(max_head_offpolicyness=3), Engine())
    executor.initialize()
    executor.destroy()
    rs.shutdown()
    (point,) = _points(tmp_path / "run", ours.STALENESS_BOUND)
    assert point.value == 3.0
