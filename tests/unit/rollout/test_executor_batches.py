from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rollscope.errors import GateBlocked, RunnerError
from rollscope.rollout import context, execution
from rollscope.rollout.batches import BatchBudgetExceeded
from rollscope.rollout.executor import WorkflowExecutor
from tests.unit.rollout.executors import (
    PATIENCE_S,
    Engine,
    Loader,
    Scripted,
    items_of,
    until,
)

# --- all at once ---------------------------------------------------------------------------------


def test_a_rollout_of_all_items_gives_the_accepted_as_plain_dicts(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    data = [{"id": 0}, {"id": 1, "do": "none"}, {"id": 2, "do": "raise"}, {"id": 3}]
    batch = executor.rollout_batch(data, workflow)

    assert all(type(trajectory) is dict for trajectory in batch)
    assert items_of(batch) == [0, 3]


def test_a_rollout_in_which_nothing_is_accepted_is_empty(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    assert executor.rollout_batch([{"do": "none"}, {}], workflow, lambda _: False) == []


def test_the_order_of_the_items_can_be_kept(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=20, max_concurrent_rollouts=20)
    threading.Timer(0.05, workflow.let_go).start()
    data = [{"id": number, "do": "ok" if number % 2 else "hold"} for number in range(16)]
    batch = executor.rollout_batch(data, workflow, ordered=True)

    assert [trajectory["item"] for trajectory in batch] == list(range(16))


def test_more_items_than_the_queue_holds_go_in_as_there_is_room(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=50, max_concurrent_rollouts=2, queue_size=3)

    assert len(executor.rollout_batch([{"id": n} for n in range(40)], workflow)) == 40


def test_others_who_wait_do_not_get_the_items_of_a_rollout(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=50, max_concurrent_rollouts=50)
    got: list[Any] = []
    waiting = threading.Thread(
        target=lambda: got.append(executor.rollout_batch([{"id": "a"}, {"do": "hold"}], workflow))
    )
    waiting.start()
    workflow.await_starts(2)
    executor.submit({"id": "mine"}, workflow)
    assert executor.wait(1, PATIENCE_S)[0]["item"] == "mine"
    assert executor.wait(1, 0.05, raise_timeout=False) == []
    workflow.let_go()
    waiting.join(PATIENCE_S)

    assert len(got[0]) == 2


def test_one_who_waits_already_does_not_get_the_items_of_a_later_batch(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.extend(executor.wait(1, PATIENCE_S)))
    waiting.start()
    until(lambda: executor.runner._kernel.outbox.wanted())
    assert len(executor.prepare_batch(Loader(8, 4), workflow)) == 4
    executor.submit({"id": "mine"}, workflow, is_eval=True)
    waiting.join(PATIENCE_S)

    assert [made["item"] for made in got] == ["mine"]


def test_a_rollout_that_can_never_end_says_so_with_the_numbers(
    make: Callable[..., WorkflowExecutor], workflow: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "BLOCKED_S", 0.1)
    executor = make(consumer_batch_size=2, max_head_offpolicyness=0, queue_size=4)
    with pytest.raises(GateBlocked, match=r"staleness \(.*version 0, window 2, outstanding 2"):
        executor.rollout_batch([{"id": number} for number in range(4)], workflow)
    assert items_of(executor.wait(2, PATIENCE_S)) == [0, 1]
    executor.set_version(1)

    assert items_of(executor.wait(2, PATIENCE_S)) == [2, 3]


def test_a_rollout_too_large_for_the_queue_is_told_when_it_can_never_go_in(
    make: Callable[..., WorkflowExecutor], workflow: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "BLOCKED_S", 0.1)
    executor = make(consumer_batch_size=1, max_head_offpolicyness=0, queue_size=1)
    with pytest.raises(GateBlocked):
        executor.rollout_batch([{} for _ in range(5)], workflow)


# --- for training --------------------------------------------------------------------------------


def test_batches_are_whole_and_go_on_where_the_last_one_ended(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    loader = Loader(8, 4)
    seen: list[Any] = []
    for version in range(1, 5):
        batch = executor.prepare_batch(loader, workflow)
        assert len(batch) == 4
        seen += items_of(batch)
        executor.set_version(version)

    assert sorted(seen) == sorted([*range(8), *range(8)])


def test_rejected_items_are_replaced_by_others(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    batch = executor.prepare_batch(Loader(40, 4), workflow, lambda made: made["item"] % 3 == 0)

    assert len(batch) == 4
    assert all(item % 3 == 0 for item in items_of(batch))


def test_a_dynamic_batch_ends_with_what_it_has(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    loader = Loader(40, 4)
    batch = executor.prepare_batch(loader, workflow, lambda made: made["item"] == 1, True)
    assert items_of(batch) == [1]
    for _ in range(5):  # nobody trains on an empty batch, so no version comes, and it goes on
        assert executor.prepare_batch(loader, workflow, lambda _: False, dynamic_bs=True) == []


def test_new_arguments_hold_for_what_is_not_submitted_yet(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    other, loader = Scripted(), Loader(100, 4)
    executor.prepare_batch(loader, workflow)
    queued = set(range(8)) | set(workflow.runs)
    executor.set_version(1)
    executor.prepare_batch(loader, other, group_size=2)
    for version in range(2, 6):
        executor.set_version(version)
        (last, *_) = executor.prepare_batch(loader, other, group_size=2)

    assert last["input_ids"].shape[0] == 2
    assert set(workflow.runs) | set(other.runs) >= queued
    assert not set(workflow.runs) & set(other.runs)


def test_inputs_are_kept_queued_for_the_whole_window(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    executor.prepare_batch(Loader(100, 4), workflow)
    until(lambda: executor.staleness_manager.get_stats().accepted == 8)

    assert executor.staleness_manager.get_stats().enqueued == 8
    assert executor.get_capacity() == 0


def test_a_queue_smaller_than_a_batch_is_refused(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(queue_size=3)
    with pytest.raises(ValueError, match="queue_size is 3"):
        executor.prepare_batch(Loader(8, 4), workflow)


def test_a_loader_without_items_or_size_is_refused(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    with pytest.raises(RuntimeError, match="no items"):
        executor.prepare_batch(Loader(0, 4), workflow)
    with pytest.raises(ValueError, match="batch_size"):
        executor.prepare_batch([[{}]], workflow)  # type: ignore[arg-type]


def test_a_filter_that_rejects_everything_ends_at_the_budget_with_reasons(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    loader = Loader(1000, 4)

    def reject(made: Any) -> bool:
        return bool(made["item"] < 2)

    with pytest.raises(BatchBudgetExceeded) as told:
        executor.prepare_batch(loader, workflow, reject, max_attempts=20)
    assert told.value.reasons == {"ok/accepted": 2, "rejected/filtered": 18}
    assert (told.value.accepted, told.value.wanted) == (2, 4)
    assert "2 of the 4 wanted" in str(told.value)
    started_by_then = sum(workflow.runs.values())
    assert started_by_then <= 20 + 2 * 8
    batch = executor.prepare_batch(loader, workflow)
    assert {0, 1} <= set(items_of(batch))


def test_by_default_a_batch_may_cost_a_hundred_outcomes_per_item(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=1, max_head_offpolicyness=0)
    with pytest.raises(BatchBudgetExceeded, match="100 outcomes"):
        executor.prepare_batch(Loader(10, 1), workflow, lambda _: False)


def test_dynamic_batches_keep_age_and_window_bounded_over_a_thousand_steps(
    make: Callable[..., WorkflowExecutor],
) -> None:
    class Choosy(Scripted):
        def __init__(self) -> None:
            super().__init__()
            self._random = random.Random(1)

        async def arun_episode(self, engine: Any, data: Any) -> Any:
            if self._random.random() < 0.7:
                return None
            return {"item": data["id"], "version": context().version}

    engine = Engine()
    executor = make(engine, consumer_batch_size=8, max_concurrent_rollouts=64)
    manager, loader, workflow = executor.staleness_manager, Loader(1000, 8), Choosy()
    oldest = most_out = 0
    for step in range(1000):
        batch = executor.prepare_batch(loader, workflow, dynamic_bs=True)
        ages = [step - made["version"] for made in batch]
        oldest = max([oldest, *ages])
        engine.version = step + 1
        executor.set_version(step + 1)
        numbers = manager.numbers()
        most_out = max(most_out, numbers["outstanding"])
        assert numbers["window"] == 16

    assert oldest <= 1
    assert most_out <= 16


# --- beside others -------------------------------------------------------------------------------


def test_what_a_failed_rollout_leaves_goes_to_those_who_wait_already(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    def items() -> Iterator[Any]:
        yield from ({"id": number} for number in range(4))
        until(lambda: executor.staleness_manager.get_stats().accepted == 4)
        raise OSError("the data set is gone")

    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.extend(executor.wait(4, PATIENCE_S)))
    waiting.start()
    until(lambda: executor.runner._kernel.outbox.wanted() == 4)
    with pytest.raises(OSError, match="data set"):
        executor.rollout_batch(items(), workflow)  # type: ignore[arg-type]
    waiting.join(1.0)

    assert items_of(got) == [0, 1, 2, 3]


def test_a_batch_waits_for_room_where_others_fill_the_queue(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(
        consumer_batch_size=1, max_concurrent_rollouts=1, max_head_offpolicyness=20, queue_size=4
    )
    executor.submit({"id": "runs", "do": "hold"}, workflow)
    workflow.await_starts(1)
    for number in range(4):
        executor.submit({"id": number}, Scripted())
    batch: list[Any] = []
    preparing = threading.Thread(
        target=lambda: batch.extend(executor.prepare_batch(Loader(8, 1), workflow))
    )
    preparing.start()
    life = executor._alive()
    until(lambda: life.runner._kernel.outbox.wanted() or life.gate._changed._waiters)  # type: ignore[attr-defined]
    workflow.let_go()
    preparing.join(PATIENCE_S)

    assert items_of(batch) == [0]


def test_an_item_is_kept_for_later_where_somebody_takes_its_room(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    executor = make(consumer_batch_size=1, queue_size=1)

    class Busy(Loader):
        def __iter__(self) -> Iterator[Any]:
            for batch in super().__iter__():
                if not workflow.runs:
                    executor.pause()
                    executor.submit({"id": "other"}, workflow)
                    threading.Timer(0.05, executor.resume).start()
                yield batch

    loader = Busy(8, 1)
    seen = []
    for version in range(1, 5):
        seen += items_of(executor.prepare_batch(loader, workflow))
        executor.set_version(version)

    assert seen == [0, 1, 2, 3]


# --- where to go on ------------------------------------------------------------------------------


def test_a_resumed_run_skips_nothing_that_was_drawn_and_not_used(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    first, loader = make(), Loader(100, 4)
    used = items_of(first.prepare_batch(loader, workflow))
    first.set_version(1)  # the batch was trained on
    first.prepare_batch(loader, workflow)  # this one was not
    state = first.state_dict()
    assert state["version"] == 1
    second = make(Engine(version=1))
    second.load_state_dict(state)
    loader, seen = Loader(100, 4), list(used)
    for version in range(2, 26):
        seen += items_of(second.prepare_batch(loader, workflow))
        second.set_version(version)

    assert sorted(seen) == list(range(100))


def test_a_version_that_only_the_engine_tells_marks_items_as_used(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    engine, loader = Engine(), Loader(100, 4)
    executor = make(engine)
    executor.prepare_batch(loader, workflow)
    assert executor.state_dict()["loader"]["position"] == 0
    engine.version = 1
    executor.prepare_batch(loader, workflow)
    until(lambda: executor.state_dict()["version"] == 1)

    assert executor.state_dict()["loader"] == {"position": 4, "used": []}
    executor.ack()
    assert executor.state_dict()["loader"] == {"position": 8, "used": []}


def test_an_engine_that_tells_late_what_was_told_marks_nothing_as_used(
    make: Callable[..., WorkflowExecutor], workflow: Scripted
) -> None:
    engine, loader = Engine(), Loader(100, 4)
    executor = make(engine)
    executor.prepare_batch(loader, workflow)
    executor.set_version(1)  # the engine is still being updated
    executor.prepare_batch(loader, workflow)
    engine.version = 1
    executor.submit({"id": "evaluated"}, workflow, is_eval=True)
    assert len(executor.wait(1, PATIENCE_S)) == 1  # looks at the version
    assert executor.state_dict()["loader"] == {"position": 4, "used": []}
    executor.set_version(2)

    assert executor.state_dict()["loader"] == {"position": 8, "used": []}


@pytest.mark.parametrize("is_eval", [True, False], ids=["evaluated", "rejected"])
def test_what_is_not_trained_on_does_not_make_an_earlier_batch_a_used_one(
    executor: WorkflowExecutor, workflow: Scripted, is_eval: bool
) -> None:
    other = executor.submit({"id": "other", "do": "none"}, workflow, is_eval=is_eval)
    executor.prepare_batch(Loader(100, 4), workflow)
    executor.wait_for_task(other, PATIENCE_S)

    assert executor.state_dict()["loader"] == {"position": 0, "used": []}


def test_items_of_an_earlier_loader_do_not_count_as_used_in_another(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    earlier, later = Loader(100, 4), Loader(100, 4)
    executor.prepare_batch(earlier, workflow)
    executor.prepare_batch(later, workflow)  # begins with what the other has left queued
    executor.set_version(1)

    assert executor.state_dict()["loader"] == {"position": 0, "used": []}


def test_trajectories_that_were_handed_over_are_not_kept_alive(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    (made, *_) = executor.prepare_batch(Loader(100, 4), workflow)
    handed_over = weakref.ref(made["input_ids"])
    del made, _

    def is_gone() -> bool:
        gc.collect()
        return handed_over() is None

    until(is_gone)  # the runner may be in the middle of what it does with the last of them


def test_a_state_is_refused_once_items_were_drawn(
    executor: WorkflowExecutor, workflow: Scripted
) -> None:
    executor.prepare_batch(Loader(8, 4), workflow)
    with pytest.raises(RunnerError, match="before the first batch"):
        executor.load_state_dict({"loader": None})
