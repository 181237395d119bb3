"""The executor in a trainer: what it records, how fast it reacts, and how it is resumed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.rollout import ModelRequest, ModelResponse, RolloutWorkflow, generate
from rollscope.rollout.executor import WorkflowExecutor
from rollscope.rollout.transcript import Transcript

if TYPE_CHECKING:
    from rollscope.answers.run import Run

PATIENCE_S = 20.0


class Engine:
    """Says one token after the other."""

    def __init__(self) -> None:
        self.version = 0

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        await asyncio.sleep(0.002)
        return ModelResponse(req.input_ids, [7, 8], [-1.0, -1.0])

    def get_version(self) -> int:
        return self.version


class Workflow(RolloutWorkflow):
    """Fails, rejects or rates as the item says."""

    async def arun_episode(self, engine: Any, data: Any) -> Any:
        sample = Transcript([1])
        with rs.phase("generate"):
            sample.add_generated(await generate(engine, ModelRequest([1])))
        if data.get("fails") and rs.current().scope.sample == 1:
            raise ValueError("the second sample is bad")
        return None if data.get("rejects") else sample.to_trajectory(data.get("reward", 0.5))


class Loader(list[list[dict[str, Any]]]):
    batch_size = 2


def config(**settings: Any) -> SimpleNamespace:
    defaults = {"consumer_batch_size": 2, "max_concurrent_rollouts": 4, "max_head_offpolicyness": 1}
    return SimpleNamespace(**defaults | settings)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = str(tmp_path_factory.mktemp("runs"))
    rs.init(dir=folder, run="run")
    engine = Engine()
    executor = WorkflowExecutor(config(), engine)
    executor.initialize()
    executor.rollout_batch([{"id": "bad/1", "fails": True}], Workflow(), group_size=2)
    executor.rollout_batch([{"id": "cut/1"}], Workflow(), lambda _: False, group_size=2)
    executor.rollout_batch([{"id": "none/1", "rejects": True}], Workflow())
    check = executor.submit({"id": "eval/1"}, Workflow(), is_eval=True)
    executor.wait_for_task(check, PATIENCE_S)
    loader = Loader([[{"id": f"item/{n}"}, {"id": f"item/{n + 1}"}] for n in range(0, 40, 2)])
    for step in range(4):
        executor.set_version(step)
        engine.version = step
        with rs.step(step):
            executor.prepare_batch(loader, Workflow(), group_size=2)
    executor.set_version(4)
    executor.destroy()
    rs.shutdown()
    with rs.open("run", dir=folder) as run:
        yield run


def sessions(run: Run, family: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run.sessions().to_pylist()
    return [row for row in rows if row["task_key"].startswith(family)]


def test_every_sample_is_a_session_of_its_group(run: Run) -> None:
    consumed = [row for row in sessions(run, "item/") if row["consumed_step"] is not None]
    by_group = Counter(row["group_key"] for row in consumed)

    assert set(by_group.values()) == {2}
    assert {row["sample"] for row in consumed} == {0, 1}
    assert {row["outcome"] for row in consumed} == {"accepted"}
    assert {row["reward"] for row in consumed} == {0.5}
    assert run.problems == []


def test_a_batch_is_charged_to_the_step_that_used_it(run: Run) -> None:
    rows = [row for row in sessions(run, "item/") if row["consumed_step"] is not None]

    assert Counter(row["consumed_step"] for row in rows) == dict.fromkeys(range(4), 4)
    for row in rows:
        assert row["version_start"] is not None
        assert 0 <= row["consumed_step"] - row["version_start"] <= 1
        assert row["consumed_ns"] > row["end_ns"]


def test_a_sample_that_failed_is_recorded_beside_the_one_in_its_place(run: Run) -> None:
    rows = sessions(run, "bad/")

    assert {(row["sample"], row["outcome"], row["reason"]) for row in rows} == {
        (0, "accepted", "accepted"),
        (1, "failed", "exception"),
        (2, "accepted", "accepted"),
    }


def test_samples_of_a_group_that_was_filtered_are_rejected(run: Run) -> None:
    assert {(row["outcome"], row["reason"]) for row in sessions(run, "cut/")} == {
        ("rejected", "filtered")
    }
    assert [(row["outcome"], row["reason"]) for row in sessions(run, "none/")] == [
        ("rejected", "returned_none")
    ]


def test_the_counters_are_stored_with_each_session(run: Run) -> None:
    (row,) = sessions(run, "none/")
    stats = json.loads(row["attrs"])["rollout_stats"]

    assert stats == {"accepted": 1, "rejected": 2, "running": 0, "enqueued": 0}
    assert json.loads(sessions(run, "eval/")[0]["attrs"])["tier"] == "eval"


def test_what_held_items_back_is_on_the_lane_of_the_runner(run: Run) -> None:
    states = run.states().to_pylist()

    assert {"gate:staleness"} <= {row["name"] for row in states}
    assert {row["lane"] for row in states} == {"rollout"}


def test_a_new_version_starts_what_waits_for_it() -> None:
    executor = WorkflowExecutor(config(max_head_offpolicyness=0), Engine())
    executor.initialize()
    for number in range(4):
        executor.submit({"id": number}, Workflow())
    assert len(executor.wait(2, PATIENCE_S)) == 2
    assert executor.wait(1, 0.05, raise_timeout=False) == []
    got: list[Any] = []
    # The engine does not know of it, so that nothing else can start them.
    waiting = threading.Thread(target=lambda: got.extend(executor.wait(2, PATIENCE_S)))
    waiting.start()
    executor.set_version(1)
    waiting.join()
    executor.destroy()

    assert len(got) == 2


def test_a_version_that_only_the_engine_knows_is_noticed() -> None:
    engine = Engine()
    executor = WorkflowExecutor(config(max_head_offpolicyness=0), engine)
    executor.initialize()
    for number in range(4):
        executor.submit({"id": number}, Workflow())
    executor.wait(2, PATIENCE_S)
    engine.version = 1
    outcomes = executor.wait(2, PATIENCE_S, with_outcomes=True)
    executor.destroy()

    assert {one.version_start for one in outcomes} == {1}
    assert {one.age for one in outcomes} == {0}


def test_training_and_evaluation_go_on_side_by_side() -> None:
    """Two consumers of one executor, each with its own items, over many versions."""
    engine = Engine()
    executor = WorkflowExecutor(config(consumer_batch_size=4, max_concurrent_rollouts=8), engine)
    executor.initialize()
    loader = Loader([[{"id": f"item/{n}"}, {"id": f"item/{n + 1}"}] for n in range(0, 40, 2)])
    checked: list[int] = []

    def evaluate() -> None:
        for _ in range(5):
            ids = [executor.submit({"id": "eval"}, Workflow(), is_eval=True) for _ in range(8)]
            results = executor.wait(8, PATIENCE_S, with_outcomes=True)
            assert sorted(one.id for one in results) == ids
            checked.append(len(results))

    evaluating = threading.Thread(target=evaluate)
    evaluating.start()
    for version in range(1, 30):
        assert len(executor.prepare_batch(loader, Workflow(), group_size=2)) == 2
        executor.set_version(version)
    evaluating.join(PATIENCE_S)
    stats = executor.staleness_manager.get_stats()
    assert executor.runner.ledger().adds_up()
    executor.destroy()

    assert checked == [8] * 5
    assert stats.rejected == 0
