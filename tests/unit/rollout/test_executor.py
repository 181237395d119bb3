from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from rollscope.errors import InboxFull, RunnerClosed
from rollscope.rollout.executor import WorkflowExecutor
from rollscope.runner import Reason, Status
from rollscope.runner.compat import StalenessManager
from tests.unit.rollout.executors import (
    PATIENCE_S,
    Engine,
    Loader,
    Scripted,
    configured,
    started,
    until,
)

# --- life ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda executor: executor.submit({}, Scripted()),
        lambda executor: executor.wait(1),
        lambda executor: executor.wait_for_task(0),
        lambda executor: executor.rollout_batch([{}], Scripted()),
        lambda executor: executor.prepare_batch(Loader(4, 4), Scripted()),
        lambda executor: executor.get_capacity(),
        lambda executor: executor.set_version(1),
        lambda executor: executor.pause(),
        lambda executor: executor.staleness_manager,
        lambda executor: executor.runner,
    ],
)
def test_use_before_initialize_is_refused(use: Callable[[WorkflowExecutor], Any]) -> None:
    executor = WorkflowExecutor(configured(), Engine())
    with pytest.raises(RuntimeError, match=r"initialize\(\) must be called"):
        use(executor)


def test_slots_and_batch_are_shared_out_among_processes() -> None:
    executor = WorkflowExecutor(
        configured(max_concurrent_rollouts=9, consumer_batch_size=2), Engine()
    )
    executor.initialize(train_data_parallel_size=4)
    manager = executor.staleness_manager

    assert (manager.max_concurrent_rollouts, manager.consumer_batch_size) == (2, 1)
    executor.destroy()


def test_without_settings_one_item_runs_at_a_time_for_the_version_at_hand() -> None:
    executor = WorkflowExecutor(SimpleNamespace(), Engine())
    executor.initialize()
    manager = executor.staleness_manager

    assert (manager.max_concurrent_rollouts, manager.consumer_batch_size) == (1, 1)
    assert manager.max_staleness == 0
    assert executor.settings.queue_size == 16
    assert executor.get_capacity() == 1
    executor.destroy()


def test_a_manager_that_is_given_is_used_as_it_is(make: Callable[..., WorkflowExecutor]) -> None:
    engine = Engine()
    manager = StalenessManager(engine, 3, 5, 2)
    executor = make(engine, manager)

    assert executor.staleness_manager is manager
    assert executor.get_capacity() == manager.get_capacity() == 3


def test_a_second_initialize_starts_no_second_loop(
    executor: WorkflowExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    runner = executor.runner
    executor.initialize()

    assert executor.runner is runner
    assert "runs already" in caplog.text


def test_a_resumed_run_opens_the_window_of_a_new_one(
    make: Callable[..., WorkflowExecutor],
) -> None:
    fresh = make(max_concurrent_rollouts=100)
    resumed = make(Engine(version=50), max_concurrent_rollouts=100)

    assert fresh.get_capacity() == resumed.get_capacity() == 8


def test_nothing_runs_that_was_submitted_before_the_start_or_after_the_end(
    workflow: Scripted,
) -> None:
    executor = WorkflowExecutor(configured(), Engine())
    with pytest.raises(RuntimeError):
        executor.submit({}, workflow)
    executor.initialize()
    executor.destroy()
    with pytest.raises(RunnerClosed):
        executor.submit({}, workflow)
    executor.initialize()
    assert executor.wait_for_task(executor.submit({"id": "new"}, workflow), PATIENCE_S)
    executor.destroy()

    assert list(workflow.runs) == ["new"]


# --- submitting ----------------------------------------------------------------------------------


def test_ids_are_counted_from_zero_and_may_be_given(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    ids = [
        executor.submit({}, workflow),
        executor.submit({}, workflow),
        executor.submit({}, workflow, task_id=10),
        executor.submit({}, workflow),
    ]

    assert ids == [0, 1, 10, 11]


def test_a_task_may_have_any_name(executor: WorkflowExecutor, workflow: Scripted) -> None:
    name: Any = "first"
    assert executor.submit({"id": 1}, workflow, task_id=name) == name
    assert executor.submit({"id": 2}, workflow) == 0
    assert executor.wait_for_task(name, PATIENCE_S)["item"] == 1
    assert executor.stats_text().startswith("enqueued: 0,")


def test_a_duplicate_id_harms_nobody_else(executor: WorkflowExecutor, workflow: Scripted) -> None:
    executor.submit({"id": "first", "do": "hold"}, workflow, task_id=1)
    with pytest.raises(ValueError, match="Duplicate task_id: 1"):
        executor.submit({"id": "second"}, workflow, task_id=1)
    other = executor.submit({"id": "other"}, workflow)
    workflow.let_go()

    assert executor.wait_for_task(other, PATIENCE_S)["item"] == "other"
    assert executor.wait_for_task(1, PATIENCE_S)["item"] == "first"
    assert executor.staleness_manager.get_stats().accepted == 2


def test_a_full_queue_refuses_at_once_and_counts_nothing(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(queue_size=2)
    executor.pause()
    executor.submit({}, workflow)
    executor.submit({}, workflow)
    with pytest.raises(InboxFull, match="queue_size"):
        executor.submit({}, workflow)
    executor.submit({}, workflow, is_eval=True)

    assert executor.staleness_manager.get_stats().enqueued == 2


def test_unusable_workflows_and_filters_are_told_at_submit(executor: WorkflowExecutor) -> None:
    with pytest.raises(ValueError, match="Failed to import workflow"):
        executor.submit({}, "no.such.workflow")
    with pytest.raises(ValueError, match="should_accept_fn"):
        executor.submit({}, Scripted(), "no.such.filter")
    with pytest.raises(TypeError):
        executor.submit({}, Scripted(), 5)
    with pytest.raises(ValueError, match="group_size"):
        executor.submit({}, Scripted(), group_size=0)


def test_a_class_is_made_with_its_arguments(executor: WorkflowExecutor) -> None:
    executor.submit({"id": 1}, Scripted, workflow_kwargs={})

    assert executor.wait(1, PATIENCE_S)[0]["item"] == 1


def test_the_old_name_of_the_filter_works_with_a_warning(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    with pytest.warns(DeprecationWarning, match="should_accept_fn"):
        executor.submit({}, workflow, should_accept=lambda _: False)

    assert executor.wait(1, PATIENCE_S) == [None]


# --- waiting -------------------------------------------------------------------------------------


def test_wait_gives_trajectories_and_none_for_what_was_not_accepted(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    for number, done in enumerate(["ok", "none", "raise"]):
        executor.submit({"id": number, "do": done}, workflow)
    results = executor.wait(3, PATIENCE_S)

    assert results.count(None) == 2
    assert [one["item"] for one in results if one is not None] == [0]


@pytest.mark.parametrize("count", [0, -1])
def test_waiting_for_none_is_a_mistake(executor: WorkflowExecutor, count: int) -> None:
    with pytest.raises(ValueError, match="count"):
        executor.wait(count)


def test_a_wait_that_times_out_loses_nothing(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    first = executor.submit({"id": 1}, workflow)
    executor.submit({"id": 2, "do": "hold"}, workflow)
    workflow.await_starts(2)
    with pytest.raises(
        TimeoutError, match=r"^Timed out waiting for 3 results, only received [01]$"
    ):
        executor.wait(3, 0.05)
    assert executor.wait(3, 0.05, raise_timeout=False) == []
    workflow.let_go()

    outcomes = executor.wait(2, PATIENCE_S, with_outcomes=True)
    assert sorted(one.id for one in outcomes) == [first, first + 1]


def test_the_oldest_come_first_in_mixed_order(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=50, max_concurrent_rollouts=50)
    for number in range(20):
        executor.submit({"id": number, "do": "hold"}, workflow)
    workflow.await_starts(20)
    for number in range(20, 25):
        executor.submit({"id": number}, workflow)
    workflow.let_go()
    executor.wait(26, 0.3, raise_timeout=False)
    items = [one["item"] for one in executor.wait(20, PATIENCE_S)]

    assert sorted(items) == list(range(20))
    assert items != list(range(20))


def test_tasks_can_be_waited_for_in_any_order_and_once(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    ids = [executor.submit({"id": number}, workflow) for number in range(4)]
    for task_id in reversed(ids):
        assert executor.wait_for_task(task_id, PATIENCE_S)["item"] == task_id
    for task_id in (ids[0], 99):
        with pytest.raises(ValueError, match="never submitted"):
            executor.wait_for_task(task_id)


def test_a_task_that_is_late_can_be_asked_for_again(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    task_id = executor.submit({"do": "hold"}, workflow)
    with pytest.raises(TimeoutError):
        executor.wait_for_task(task_id, 0.02)
    assert executor.wait_for_task(task_id, 0.02, raise_timeout=False) is None
    workflow.let_go()

    assert executor.wait_for_task(task_id, PATIENCE_S) is not None


def test_those_who_wait_for_one_and_for_any_each_get_their_own(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    held = executor.submit({"id": "mine", "do": "hold"}, workflow)
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(executor.wait_for_task(held, PATIENCE_S)))
    waiting.start()
    until(lambda: executor.runner._kernel.outbox._reserved)
    executor.submit({"id": "any"}, workflow)
    assert executor.wait(1, PATIENCE_S)[0]["item"] == "any"
    executor.submit({"id": "later"}, workflow)
    workflow.let_go()
    waiting.join(PATIENCE_S)

    assert got[0]["item"] == "mine"
    assert executor.wait(1, PATIENCE_S)[0]["item"] == "later"


# --- how items end -------------------------------------------------------------------------------


def test_each_way_to_end_has_its_own_status_and_reason(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=50, max_concurrent_rollouts=50)

    def crash(_: Any) -> bool:
        raise ZeroDivisionError("no filter")

    ids = {
        executor.submit({"do": "ok"}, workflow): (Status.OK, Reason.ACCEPTED),
        executor.submit({"do": "none"}, workflow): (Status.REJECTED, Reason.RETURNED_NONE),
        executor.submit({}, workflow, lambda _: 0): (Status.REJECTED, Reason.FILTERED),
        executor.submit({}, workflow, crash): (Status.FAILED, Reason.FILTER_ERROR),
        executor.submit({"do": "raise"}, workflow): (Status.FAILED, Reason.EXCEPTION),
        executor.submit({"do": "exit"}, workflow): (Status.FAILED, Reason.BASE_EXCEPTION),
        executor.submit({"do": "text"}, workflow): (Status.FAILED, Reason.INVALID_TRAJECTORY),
        executor.submit({"do": "cancel"}, workflow): (Status.CANCELLED, Reason.SELF_CANCELLED),
    }
    held = executor.submit({"id": "held", "do": "hold"}, workflow)
    until(lambda: workflow.runs["held"])
    executor.runner.cancel(group=executor._alive().deliveries.find(held))
    ids[held] = (Status.CANCELLED, Reason.REQUESTED)
    outcomes = executor.wait(len(ids), PATIENCE_S, with_outcomes=True)

    assert {one.id: (one.status, one.reason) for one in outcomes} == ids
    errors = {one.reason: one.error.text for one in outcomes if one.error is not None}
    assert "no filter" in errors[Reason.FILTER_ERROR]
    assert "broken on purpose" in errors[Reason.EXCEPTION]
    stats = executor.staleness_manager.get_stats()
    assert (stats.accepted, stats.rejected, stats.running) == (1, len(ids) - 1, 0)


def test_cancelling_itself_costs_a_workflow_no_capacity(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(max_concurrent_rollouts=4, consumer_batch_size=8)
    for _ in range(4):
        executor.submit({"do": "cancel"}, workflow)
    outcomes = executor.wait(4, PATIENCE_S, with_outcomes=True)

    assert {one.reason for one in outcomes} == {Reason.SELF_CANCELLED}
    assert executor.get_capacity() == 4


def test_a_workflow_that_fails_before_its_first_await_fails_alone(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    class Broken(Scripted):
        def arun_episode(self, engine: Any, data: Any) -> Any:
            raise RuntimeError("at once")

    executor.submit({}, Broken())
    (outcome,) = executor.wait(1, PATIENCE_S, with_outcomes=True)
    assert outcome.status is Status.FAILED
    executor.submit({}, workflow)

    assert executor.wait(1, PATIENCE_S)[0] is not None


def test_capacity_comes_from_the_counters_that_everybody_sees(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    executor.submit({"do": "hold"}, workflow, group_size=3)
    workflow.await_starts(3)
    manager = executor.staleness_manager

    assert manager.get_stats().running == 1
    assert executor.get_capacity() == manager.get_capacity() == 7
    workflow.let_go()
    executor.wait(1, PATIENCE_S)
    assert (manager.get_stats().running, manager.get_stats().accepted) == (0, 1)
    assert executor.stats_text() == "enqueued: 0, running: 0, accepted: 1, rejected: 0."


def test_items_that_end_in_the_queue_leave_it(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    executor.pause()
    task_id = executor.submit({}, workflow)
    executor.runner.cancel(group=executor._alive().deliveries.find(task_id))
    assert executor.wait(1, PATIENCE_S) == [None]
    stats = executor.staleness_manager.get_stats()

    assert (stats.enqueued, stats.running, stats.rejected) == (0, 0, 1)


def test_evaluation_runs_beside_training_and_is_not_counted(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=1, max_concurrent_rollouts=2, max_head_offpolicyness=0)
    executor.submit({"do": "hold"}, workflow)
    for _ in range(3):
        executor.submit({"id": "eval", "do": "hold"}, workflow, is_eval=True)
    workflow.await_starts(3)

    assert executor.get_capacity() == 0
    assert workflow.runs["eval"] == 2  # as many as there are slots
    assert sorted(known.is_eval for known in workflow.seen) == [False, True, True]
    workflow.let_go()
    outcomes = executor.wait(4, PATIENCE_S, with_outcomes=True)
    assert sorted(one.tier for one in outcomes) == ["eval", "eval", "eval", "train"]
    assert executor.staleness_manager.get_stats().accepted == 1


def test_a_foreign_manager_keeps_counting_in_its_own_way(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    class Foreign:
        """The calls of the original, and nothing else."""

        def __init__(self, engine: Engine) -> None:
            self._counts = StalenessManager(engine, 8, 2, 0)

        def __getattr__(self, name: str) -> Any:
            if name in ("batch_taken", "set_dynamic", "subscribe", "set_version", "numbers"):
                raise AttributeError(name)
            return getattr(self._counts, name)

    engine = Engine()
    executor = make(engine, Foreign(engine))
    for number in range(4):
        executor.submit({"id": number}, workflow)
    assert len(executor.wait(2, PATIENCE_S)) == 2
    assert executor.get_capacity() == 0
    engine.version = 1  # told to nobody

    assert len(executor.wait(2, PATIENCE_S)) == 2


def test_an_engine_that_cannot_tell_its_version_ends_nothing(
    make: Callable[..., WorkflowExecutor], workflow: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    class Moody(Engine):
        def get_version(self) -> int:
            if self.version < 0:
                raise ConnectionError("not now")
            return self.version

    engine = Moody()
    executor = make(engine)
    engine.version = -1
    executor.submit({}, workflow)

    assert executor.wait(1, PATIENCE_S)[0] is not None
    assert "does not tell its version" in caplog.text


# --- pausing and the end -------------------------------------------------------------------------


def test_a_pause_is_one_flag_and_lets_results_through(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    executor.submit({"id": "runs", "do": "hold"}, workflow)
    workflow.await_starts(1)
    executor.pause()
    executor.pause()
    executor.submit({"id": "waits"}, workflow)
    workflow.let_go()
    assert executor.wait(1, PATIENCE_S)[0]["item"] == "runs"
    assert executor.is_paused
    assert executor.is_paused() is True  # as AReaL's engines ask
    assert executor.wait(1, 0.05, raise_timeout=False) == []
    executor.resume()
    assert not executor.is_paused
    assert executor.is_paused() is False
    assert executor.wait(1, PATIENCE_S)[0]["item"] == "waits"


def test_destroy_reports_what_was_not_finished_and_keeps_what_was(workflow: Scripted) -> None:
    executor = started()
    done = executor.submit({"id": "done"}, workflow)
    held = executor.submit({"do": "hold"}, workflow, group_size=2)
    workflow.await_starts(3)
    executor.wait(3, 0.1, raise_timeout=False)
    executor.pause()
    queued = executor.submit({}, workflow)
    report = executor.destroy()

    assert report.unfinished == [held, queued]
    assert executor.wait_for_task(done)["item"] == "done"
    outcomes = executor.wait(2, with_outcomes=True)
    assert {one.id: one.reason for one in outcomes} == dict.fromkeys((held, queued), Reason.CLOSED)
    with pytest.raises(RunnerClosed):
        executor.wait(1)
    assert executor.destroy().unfinished == []


@pytest.mark.parametrize(
    "wait",
    [
        lambda executor, _: executor.wait(1),
        lambda executor, _: executor.wait_for_task(0),
        lambda executor, workflow: executor.rollout_batch([{"do": "hold"}], workflow),
        lambda executor, workflow: executor.prepare_batch(Loader(4, 4, do="hold"), workflow),
    ],
    ids=["wait", "wait_for_task", "rollout_batch", "prepare_batch"],
)
def test_destroy_releases_those_who_wait(
    wait: Callable[[WorkflowExecutor, Scripted], Any], workflow: Scripted
) -> None:
    executor = started()
    executor.submit({"do": "hold"}, workflow)
    released: list[type] = []

    def block() -> None:
        try:
            wait(executor, workflow)
        except RuntimeError as error:
            released.append(type(error))

    waiting = threading.Thread(target=block)
    waiting.start()
    until(lambda: executor.runner._kernel.outbox.wanted())
    executor.destroy()
    waiting.join(PATIENCE_S)

    assert released == [RunnerClosed]


def test_tracing_logs_each_item_with_the_counters(
    make: Callable[..., WorkflowExecutor], workflow: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rollscope.rollout")
    executor = make(enable_rollout_tracing=True)
    executor.submit({}, workflow)
    executor.wait(1, PATIENCE_S)

    assert "task 0 submitted; enqueued: " in caplog.text
    assert "enqueued: 0, running: 0, accepted: 1, rejected: 0." in caplog.text
