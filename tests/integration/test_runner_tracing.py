"""A run of a runner, read back: nothing was asked of the user."""

from __future__ import annotations

import asyncio
import json
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.runner import Reason, Retry, Runner, ctx
from tests.unit.runner.virtual import turn_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rollscope.answers.run import Run

PATIENCE_S = 20.0
FLAKY = Retry(rules={OSError: "infra"}, per_task=2, base_s=0.02)


async def rollout(value: Any) -> Any:
    with rs.phase("generate"):
        await asyncio.sleep(0.01)
    with rs.phase("reward"):
        await asyncio.sleep(0.002)
    return value


async def fail() -> None:
    raise ValueError("the text")


async def flaky() -> str:
    if ctx.attempt == 1:
        raise OSError("once")
    return "at last"


async def hang() -> None:
    await asyncio.Event().wait()


def work(runner: Runner) -> list[str]:
    """Have tasks end in many ways; give their verdicts."""
    runner.set_version(3)
    runner.options(key="item/1", sample=2, group="g", tags={"set": "aime"}).submit(rollout, 1)
    runner.options(key="failing").submit(fail)
    runner.options(key="flaky").submit(flaky)
    runner.options(key="eval", tier="eval", none_is=Reason.RETURNED_NONE).submit(rollout, None)
    runner.options(key="slow", timeout_s=0.05).submit(hang)
    paused = runner.pause("weights")
    queued = runner.options(key="queued").submit(rollout, 9)
    runner.cancel(queued.id)
    time.sleep(0.02)
    paused.resume()
    outcomes = runner.wait(6, PATIENCE_S)
    return sorted(f"{one.status}/{one.reason}" for one in outcomes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("runs")
    rs.init(dir=str(folder), run="run")
    with Runner(name="rollouts", concurrency=1, retry=FLAKY, probe_s=None) as runner:
        work(runner)
        time.sleep(0.1)  # with nothing to do, which is recorded too
    rs.shutdown()
    with rs.open("run", dir=str(folder)) as run:
        yield run


def _sessions(run: Run) -> dict[tuple[str, int], dict[str, Any]]:
    rows = run.sessions().to_pylist()
    return {(row["task_key"], row["attempt"] or 0): row for row in rows}


def test_each_session_says_how_it_ended(run: Run) -> None:
    found = {
        key: (row["outcome"], row["reason"], row["status"]) for key, row in _sessions(run).items()
    }
    assert (
        found.items()
        >= {
            ("item/1", 0): ("accepted", "accepted", "ok"),
            ("failing", 0): ("failed", "exception", "error"),
            ("flaky", 0): ("failed", "exception", "error"),
            ("flaky", 1): ("accepted", "accepted", "ok"),
            ("eval", 0): ("rejected", "returned_none", "ok"),
            ("slow", 0): ("timeout", "deadline", "cancelled"),
        }.items()
    )
    assert run.problems == []


def test_a_task_that_never_started_is_recorded_too(run: Run) -> None:
    row = _sessions(run)["queued", 0]
    assert (row["outcome"], row["reason"]) == ("cancelled", "requested")
    attrs = json.loads(row["attrs"])
    assert "execution_s" not in attrs
    assert "runner_wait_s" not in attrs


def test_what_was_said_at_submit_is_recorded(run: Run) -> None:
    row = _sessions(run)["item/1", 0]
    assert (row["sample"], row["group_key"], row["pool"]) == (2, "g", "rollouts")
    assert (row["version_start"], row["version_end"]) == (3, 3)
    assert json.loads(row["attrs"])["set"] == "aime"
    assert json.loads(_sessions(run)["eval", 0]["attrs"])["tier"] == "eval"
    assert json.loads(_sessions(run)["failing", 0]["attrs"])["error"] == "ValueError: the text"


@pytest.mark.parametrize("key", [("item/1", 0), ("failing", 0), ("flaky", 1), ("slow", 0)])
def test_the_waits_and_the_execution_add_up_to_the_whole(run: Run, key: tuple[str, int]) -> None:
    attrs = json.loads(_sessions(run)[key]["attrs"])
    parts = ("queue_wait_s", "runner_wait_s", "execution_s", "post_wait_s")
    whole_s = sum(attrs[part] for part in parts) + attrs.get("backoff_s", 0.0)
    assert attrs["total_s"] == pytest.approx(whole_s, abs=1e-6)
    assert min(attrs[part] for part in parts) >= 0
    assert ("backoff_s" in attrs) == (key == ("flaky", 1))


def test_phases_are_inside_of_their_session(run: Run) -> None:
    session = _sessions(run)["item/1", 0]
    phases = [row for row in run.phases().to_pylist() if row["session_id"] == session["session_id"]]
    assert [row["name"] for row in phases] == ["generate", "reward"]
    for row in phases:
        assert session["start_ns"] <= row["start_ns"] <= row["end_ns"] <= session["end_ns"]


def test_what_held_tasks_back_is_on_the_lane_of_the_runner(run: Run) -> None:
    states = run.states().to_pylist()
    assert {row["lane"] for row in states} == {"rollouts"}
    names = {row["name"] for row in states}
    assert names >= {"paused", "queue_empty", "gate:concurrency"}
    assert {row["session_id"] for row in states} == {None}, "a state is in no session"
    ends = sorted((row["start_ns"], row["end_ns"]) for row in states)
    for (_, end), (start, _) in pairwise(ends):
        assert end <= start, "a lane is in one state at a time"


def test_without_recording_it_works_the_same(tmp_path: Path) -> None:
    def verdicts() -> list[str]:
        with Runner(concurrency=1, retry=FLAKY, probe_s=None) as runner:
            return work(runner)

    assert not rs.enabled()
    unrecorded = verdicts()
    rs.init(dir=str(tmp_path), run="run")
    assert verdicts() == unrecorded
    rs.shutdown()


def test_recording_may_begin_and_end_while_tasks_run(tmp_path: Path) -> None:
    with Runner(probe_s=None) as runner:
        before = runner.submit(rollout, 1)
        rs.init(dir=str(tmp_path), run="run")
        during = runner.options(key="during").submit(rollout, 2)
        assert before.result(PATIENCE_S).value == 1
        assert during.result(PATIENCE_S).value == 2
        late = runner.submit(rollout, 3)
        rs.shutdown()
        assert late.result(PATIENCE_S).value == 3
    with rs.open("run", dir=str(tmp_path)) as run:
        assert "during" in {row["task_key"] for row in run.sessions().to_pylist()}


def test_an_outcome_that_came_back_is_recorded_once(tmp_path: Path) -> None:
    """A waiter that is cancelled with the outcome in its hands gives it back."""

    async def main() -> None:
        async with Runner(probe_s=None) as runner:
            waiting = asyncio.ensure_future(runner.await_outcomes(1))
            runner.options(key="once").submit(rollout, 1)
            await turn_until(lambda: runner.ledger().delivered == 1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert runner.ledger().outbox == 1
            assert (await runner.await_outcomes(1))[0].value == 1

    rs.init(dir=str(tmp_path), run="run")
    asyncio.run(main())
    rs.shutdown()
    with rs.open("run", dir=str(tmp_path)) as run:
        rows = run.sql("SELECT count(*) AS n FROM raw_spans WHERE kind = 'session'").to_pylist()
        assert rows[0]["n"] == 1
        assert run.problems == []
