from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollscope.errors import MissingExtra
from rollscope.rollout import RolloutWorkflow, WorkflowTaskInput, blocking, context, stat_scope
from rollscope.rollout.dump import DumpWriter, describe_samples
from rollscope.rollout.executor import WorkflowExecutor
from rollscope.rollout.recipes import Recipe
from rollscope.rollout.samples import Judgement, Sampling
from rollscope.runner import Reason, Status, ctx
from tests.unit.rollout.executors import PATIENCE_S, Engine, Scripted, sample, started, until


def outcome_of(executor: WorkflowExecutor, *args: Any, **settings: Any) -> Any:
    task_id = executor.submit(*args, **settings)
    return executor.wait_for_task(task_id, PATIENCE_S, with_outcomes=True)


# --- many samples of one item --------------------------------------------------------------------


def test_samples_are_joined_into_rows_padded_on_the_right(executor: WorkflowExecutor) -> None:
    class Growing(Scripted):
        async def do_ok(self, data: Any) -> Any:
            return sample(2 + self.runs[data.get("id")], 0, data)

    outcome = outcome_of(executor, {}, Growing(), group_size=3)

    assert outcome.status is Status.OK
    assert outcome.value["input_ids"].shape == (3, 5)
    assert sorted(outcome.value["attention_mask"].sum(1).tolist()) == [3, 4, 5]
    assert outcome.value["rewards"].shape == (3,)


def test_a_group_is_one_item_to_everybody(executor: WorkflowExecutor, workflow: Scripted) -> None:
    outcome = outcome_of(executor, {}, workflow, group_size=4)
    stats = executor.staleness_manager.get_stats()

    assert outcome.id == 0
    assert len(outcome.members) == 4
    assert (stats.accepted, stats.rejected, stats.running, stats.enqueued) == (1, 0, 0, 0)
    assert executor.runner.ledger().adds_up()


def test_a_sample_that_fails_is_replaced_and_the_others_are_kept(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    outcome = outcome_of(executor, {"do": ["ok", "raise", "ok", "ok"]}, workflow, group_size=4)

    assert outcome.status is Status.OK
    assert outcome.value["input_ids"].shape[0] == 4
    assert [one.reason for one in outcome.replaced] == [Reason.EXCEPTION]
    assert sum(workflow.runs.values()) == 5
    assert not executor.runner.ledger().unfinished


def test_a_replacement_starts_though_no_other_item_may(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(max_concurrent_rollouts=1, consumer_batch_size=1)
    first = executor.submit({"id": 1, "do": ["hold", "raise", "ok"]}, workflow, group_size=2)
    second = executor.submit({"id": 2}, workflow)
    workflow.await_starts(3)  # both samples, and the one in place of the second
    assert not workflow.runs[2]
    workflow.let_go()

    assert executor.wait_for_task(first, PATIENCE_S)["input_ids"].shape[0] == 2
    assert executor.wait_for_task(second, PATIENCE_S) is not None


def test_a_group_goes_on_with_fewer_once_replacements_run_out(
    executor: WorkflowExecutor, workflow: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    script = ["raise", "ok", *["raise"] * 10]
    outcome = outcome_of(executor, {"do": script}, workflow, group_size=2)

    assert outcome.status is Status.OK
    assert outcome.value["input_ids"].shape[0] == 1
    assert sum(workflow.runs.values()) == 4
    assert "goes on without 1 of its samples" in caplog.text


def test_a_group_without_any_good_sample_fails_as_too_small(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    outcome = outcome_of(executor, {"do": "raise"}, workflow, group_size=2)

    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.GROUP_SHORT)
    assert "broken on purpose" in outcome.error.text
    assert executor.staleness_manager.get_stats().rejected == 1


def test_samples_that_are_none_are_left_out_and_not_replaced(
    executor: WorkflowExecutor, workflow: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = outcome_of(executor, {"do": ["none", "ok", "none"]}, workflow, group_size=3)
    assert outcome.value["input_ids"].shape[0] == 1
    assert "goes on without 2 of its samples" in caplog.text
    outcome = outcome_of(executor, {"do": "none"}, workflow, group_size=3)

    assert (outcome.status, outcome.reason) == (Status.REJECTED, Reason.RETURNED_NONE)
    assert sum(workflow.runs.values()) == 6


def test_the_filter_sees_the_whole_group_once(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    shapes: list[Any] = []

    def accept(made: Any) -> bool:
        shapes.append(made["input_ids"].shape)
        return False

    outcome = outcome_of(executor, {}, workflow, accept, group_size=3)

    assert shapes == [(3, 3)]
    assert (outcome.status, outcome.reason) == (Status.REJECTED, Reason.FILTERED)


def test_a_filter_that_crashes_on_a_group_fails_the_group(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    outcome = outcome_of(executor, {}, workflow, lambda made: made["no such key"], group_size=2)

    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.FILTER_ERROR)
    assert "no such key" in outcome.error.text


def test_samples_that_cannot_be_joined_are_an_invalid_trajectory(
    executor: WorkflowExecutor,
) -> None:
    class Odd(Scripted):
        async def do_ok(self, data: Any) -> Any:
            return {**sample(3, 0, data), f"extra{self.runs[None]}": 1}

    outcome = outcome_of(executor, {}, Odd(), group_size=2)

    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.INVALID_TRAJECTORY)


def test_an_item_of_which_somebody_has_ended_a_part_is_cancelled(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    asked: list[Any] = []
    task_id = executor.submit({"do": ["ok", "hold"]}, workflow, asked.append, group_size=2)
    workflow.await_starts(2)
    until(lambda: executor.runner.ledger().running == 1)
    executor.runner.cancel(where=lambda task: True)
    outcome = executor.wait_for_task(task_id, PATIENCE_S, with_outcomes=True)

    assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.REQUESTED)
    assert outcome.value is None
    assert not asked
    assert executor.staleness_manager.get_stats().rejected == 1


def test_what_no_sample_could_judge_is_judged_at_the_end() -> None:
    """Such as when a runner that is drained takes no replacement for the last sample."""
    asked: list[Any] = []

    def accept(made: Any) -> bool:
        asked.append(made["input_ids"].shape)
        return True

    def judged(function: Any) -> Judgement:
        episode = Recipe(Scripted(), None, function, None, 3).episode({})
        episode.samples = {number: sample(3, 0, {}) for number in (5, 6, 7)}
        return Sampling(Engine()).judge_now(episode, frozenset({5, 7}))

    assert judged(accept).status is Status.OK
    assert asked == [(2, 3)]
    assert judged(lambda made: made["nothing"]).reason is Reason.FILTER_ERROR


def test_a_filter_that_cannot_answer_any_more_fails_the_item() -> None:
    async def accept(made: Any) -> bool:
        await asyncio.sleep(0)
        return True

    episode = Recipe(Scripted(), None, accept).episode({})
    episode.samples = {5: sample(3, 0, {})}
    judgement = Sampling(Engine()).judge_now(episode, frozenset({5}))

    assert judgement.reason is Reason.FILTER_ERROR


# --- one sample ----------------------------------------------------------------------------------


def test_an_episode_knows_whose_it_is(
    make: Callable[..., WorkflowExecutor],
) -> None:
    seen: list[Any] = []

    class Curious(RolloutWorkflow):
        takes_task_input = True

        async def arun_episode(self, engine: Any, data: Any) -> Any:
            seen.append((data, context(), stat_scope()))

    executor = make(Engine(version=3))
    executor.submit("item", Curious(), task_id=7, is_eval=True, group_size=2)
    executor.wait(1, PATIENCE_S)
    (given, known, scope), (other, *_) = sorted(seen, key=lambda one: one[0].session_id)

    assert isinstance(given, WorkflowTaskInput)
    assert (given.data, given.task_id, given.attempt, given.version) == ("item", 7, 1, 3)
    assert (given.session_id, other.session_id) == ("7/0", "7/1")
    assert known.is_eval
    assert scope == "eval-rollout"


def test_a_filter_that_takes_its_time_runs_off_the_loop(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    threads: list[str] = []

    @blocking
    def accept(made: Any) -> bool:
        threads.append(threading.current_thread().name)
        return True

    outcome = outcome_of(executor, {}, workflow, accept, group_size=2)

    assert outcome.status is Status.OK
    assert threads != ["rollscope-rollout"]
    assert len(threads) == 1


def test_formats_are_checked_against_the_first_if_asked(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    class Poor(Scripted):
        async def do_ok(self, data: Any) -> Any:
            made = sample(3, 0, data)
            del made["loss_mask"]
            return made

    executor = make(check_trajectory_format=True)
    assert outcome_of(executor, {}, workflow).status is Status.OK
    outcome = outcome_of(executor, {}, Poor())
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.INVALID_TRAJECTORY)
    assert "'loss_mask'" in outcome.error.text
    unchecked = make()
    assert outcome_of(unchecked, {}, workflow).status is Status.OK
    assert outcome_of(unchecked, {}, Poor()).status is Status.OK


def test_interactions_become_arrays(make: Callable[..., WorkflowExecutor]) -> None:
    class Interaction:
        def __init__(self, tokens: int) -> None:
            self._tokens = tokens

        def to_tensor_dict(self) -> Any:
            return sample(self._tokens, 0, {})

    class Talking(RolloutWorkflow):
        async def arun_episode(self, engine: Any, data: Any) -> Any:
            return {"a": Interaction(2), "b": Interaction(4)}

    executor = make(check_trajectory_format=True)
    assert outcome_of(executor, {}, Talking()).value["input_ids"].shape == (2, 4)
    assert outcome_of(executor, {}, Talking(), group_size=2).value["input_ids"].shape == (4, 4)


def test_a_pause_that_holds_is_quiet_when_every_sample_waits(
    make: Callable[..., WorkflowExecutor],
) -> None:
    asked = threading.Semaphore(0)

    class Stepping(Scripted):
        async def do_ok(self, data: Any) -> Any:
            for _ in range(1000):
                asked.release()
                await ctx.pause_point()
                await asyncio.sleep(0.001)
                if data["stop"].is_set():
                    break
            return await super().do_ok(data)

    executor, stop = make(), threading.Event()
    executor.submit({"stop": stop}, Stepping(), group_size=3)
    for _ in range(6):
        assert asked.acquire(timeout=PATIENCE_S)
    with executor.runner.pause(mode="hold") as pause:
        assert pause.quiesced(PATIENCE_S)
        stop.set()

    assert executor.wait(1, PATIENCE_S)[0] is not None


# --- kept as text --------------------------------------------------------------------------------


def test_each_sample_is_written_as_one_line(
    make: Callable[..., WorkflowExecutor], workflow: Scripted, tmp_path: Path
) -> None:
    executor = make(Engine(version=5), dump_to_file=tmp_path / "dump")
    outcome_of(executor, {"reward": 0.5}, workflow, group_size=2)
    outcome_of(executor, {}, workflow, lambda _: False)
    outcome_of(executor, {"do": "none"}, workflow)
    executor.destroy()
    (file,) = (tmp_path / "dump").iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]

    assert [(one["task_id"], one["sample"], one["accepted"]) for one in lines] == [
        (0, 0, True),
        (0, 1, True),
        (1, 0, False),
    ]
    assert lines[0] == {
        "task_id": 0,
        "accepted": True,
        "sample": 0,
        "length": 3,
        "prompt_length": 1,
        "completion_length": 2,
        "head_version": 5,
        "tail_version": 5,
        "reward": 0.5,
        "prompt": [0],
        "completion": [1, 2],
    }


def test_tokens_are_written_as_text_where_there_is_a_tokenizer() -> None:
    class Tokenizer:
        def decode(self, ids: list[int]) -> str:
            return "-".join(map(str, ids))

    (only,) = describe_samples(sample(4, 1, {}), Tokenizer())

    assert (only["prompt"], only["completion"]) == ("0", "1-2-3")


def test_what_cannot_be_written_is_counted_and_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = DumpWriter(tmp_path)
    writer.put(1, {"no": "arrays"}, accepted=True)
    writer.put(2, sample(2, 0, {}), accepted=True)
    writer.close()

    assert writer.lost == 1
    assert len(writer.path.read_text().splitlines()) == 1
    assert caplog.records[-1].levelno == logging.WARNING


def test_a_file_that_cannot_be_opened_is_told_of_at_the_start(tmp_path: Path) -> None:
    (tmp_path / f"rollouts-{os.getpid()}.jsonl").mkdir()
    with pytest.raises(IsADirectoryError):
        started(dump_to_file=tmp_path)


def test_a_tokenizer_path_needs_its_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingExtra, match="transformers"):
        started(dump_to_file=tmp_path, tokenizer_path="some/model")
