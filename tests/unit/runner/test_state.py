"""Saving a runner and going on with another: relative to `ack`, nothing is skipped or doubled."""

from __future__ import annotations

import asyncio
import pickle
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import force_setattr

from rollscope.errors import DuplicateTask, StateError
from rollscope.model.records import FactRecord
from rollscope.runner import ExternalGate, Reason, Runner, StalenessGate, Status, Tier, ctx
from rollscope.runner.groups import GroupOutcome, first
from rollscope.runner.task import Task, TaskOptions
from rollscope.testing import capture

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_S = 60.0


def make_runner(**settings: Any) -> Runner:
    return Runner(loop="asyncio", probe_s=None, **{"resumable": True, "breaker": None} | settings)


@pytest.fixture
def runner() -> Iterator[Runner]:
    with make_runner() as one:
        yield one


async def double(number: int, *, plus: int = 0) -> int:
    return number * 2 + plus


async def fail() -> None:
    raise ValueError("bad sample")


async def park() -> str:
    await asyncio.Event().wait()
    return "never"


has_checkpoint = threading.Event()


async def go_on() -> Any:
    """End at once in the second life, with what the first one left."""
    if ctx.partial is None:
        ctx.checkpoint({"tokens": [1, 2, 3]})
        has_checkpoint.set()
        await park()
    return ctx.partial, ctx.attempt


async def give_unpicklable() -> Any:
    return lambda: None


class Sampler:
    @staticmethod
    async def sample(number: int) -> int:
        return number

    async def bound(self) -> int:
        return 1


def resume(state: dict[str, Any], **settings: Any) -> Runner:
    """Make a runner that goes on; the state has been through a file meanwhile."""
    runner = make_runner(**settings)
    runner.load_state_dict(msgspec.msgpack.decode(msgspec.msgpack.encode(state)))
    return runner


def wait_until_running(runner: Runner, count: int) -> None:
    assert runner._until(lambda: runner.ledger().running == count, LONG_S)


def test_what_was_not_acknowledged_is_given_again_and_what_was_is_not(runner: Runner) -> None:
    for number in range(4):
        runner.submit(double, number)
    outcomes = runner.wait(4, LONG_S, order="submitted")
    assert runner.ack([outcomes[0].id, outcomes[2]]) == 2
    with resume(runner.state_dict()) as second:
        again = second.wait(2, LONG_S, order="submitted")
        assert [(one.id, one.value) for one in again] == [(1, 2), (3, 6)]
        assert second.ack(again) == 2
        assert second.ledger().adds_up()
        assert second.ledger().delivered == 4
        assert second.state_dict()["outcomes"] == []


def test_outcomes_that_nobody_fetched_are_kept_without_running_again(runner: Runner) -> None:
    runner.submit(fail)
    runner.submit(double, 1, plus=5)
    assert runner._until(lambda: runner.ledger().outbox == 2, LONG_S)
    state = runner.state_dict()
    before = {one.id: one for one in runner.wait(2, LONG_S)}
    with resume(state) as second:
        after = {one.id: one for one in second.wait(2, LONG_S)}
    for task_id, outcome in before.items():
        twin = after[task_id]
        assert (twin.status, twin.reason, twin.value) == (
            outcome.status,
            outcome.reason,
            outcome.value,
        )
        assert twin.error == outcome.error
        assert twin.attempts == outcome.attempts


def test_unfinished_tasks_run_again_from_their_checkpoint() -> None:
    has_checkpoint.clear()
    with make_runner(concurrency=2) as first_life:
        first_life.options(tags={"set": "a"}, priority=3).submit(go_on)
        first_life.submit(park)
        queued = first_life.submit(double, 21)
        wait_until_running(first_life, 2)
        assert has_checkpoint.wait(LONG_S)
        state = first_life.state_dict()
    with resume(state) as second:
        values = {one.id: one for one in second.wait(2, LONG_S)}
        assert values[0].value == ({"tokens": [1, 2, 3]}, 2)
        assert values[0].tags == {"set": "a"}
        assert values[queued.id].value == 42
        assert second.ledger().running == 1


def test_new_ids_are_above_all_old_ones(runner: Runner) -> None:
    runner.options(id=500).submit(double, 1)
    runner.ack(runner.wait(1, LONG_S))
    with resume(runner.state_dict()) as second:
        assert second.submit(double, 1).id > 500


def test_work_goes_on_while_the_state_is_taken(runner: Runner) -> None:
    for number in range(200):
        runner.submit(double, number)
    seen: set[int] = set()
    state = runner.state_dict()
    for outcome in runner.wait(200, LONG_S):
        seen.add(outcome.id)
    with resume(state) as second:
        again = {one.id for one in second.wait(200, LONG_S)}
    assert again == seen == set(range(200))


def test_tasks_that_the_end_of_the_runner_ended_run_again() -> None:
    has_checkpoint.clear()
    runner = make_runner(concurrency=1, cleanup_s=0.5)
    with runner:
        runner.submit(go_on)
        runner.submit(double, 4)
        assert has_checkpoint.wait(LONG_S)
        report = runner.drain(LONG_S, mode="checkpoint")
        assert report.outcomes == {"cancelled": 2}
    with resume(runner.state_dict()) as second:
        values = {one.id: one.value for one in second.wait(2, LONG_S)}
    assert values == {0: ({"tokens": [1, 2, 3]}, 2), 1: 8}


def test_an_acknowledged_ending_is_final() -> None:
    runner = make_runner()
    with runner:
        runner.submit(park)
        wait_until_running(runner, 1)
    (outcome,) = runner.take_ready()
    assert outcome.reason is Reason.CLOSED
    assert runner.ack([outcome]) == 1
    assert runner.state_dict()["inputs"] == []


def test_acknowledging_what_is_not_handed_over_or_unknown_does_nothing(runner: Runner) -> None:
    parked = runner.submit(park)
    done = runner.submit(double, 1)
    assert runner._until(lambda: runner.ledger().outbox == 1, LONG_S)
    assert runner.ack([parked.id, done.id, 12345]) == 0
    assert runner.ack(runner.wait(1, LONG_S)) == 1
    assert runner.ack([done.id]) == 0


def test_the_trace_tells_which_step_used_what() -> None:
    with capture() as captured, make_runner() as runner:
        by_id = runner.submit(double, 1)
        group = runner.group(2)
        group.spawn_all(double, 2)
        outcomes = runner.wait(2, LONG_S)
        runner.ack([by_id.id, *(one for one in outcomes if one.id == group.id)], step=7)
        facts = [one for one in captured.records() if isinstance(one, FactRecord)]
        used = [one.facts["consumed_step"] for one in facts if "consumed_step" in one.facts]
        assert used == [7, 7, 7]


def test_an_id_cannot_be_used_again_before_its_outcome_is_acknowledged(runner: Runner) -> None:
    runner.options(id=7).submit(double, 1)
    outcomes = runner.wait(1, LONG_S)
    with pytest.raises(DuplicateTask, match="not acknowledged"):
        runner.options(id=7).submit(double, 2)
    runner.ack(outcomes)
    assert runner.options(id=7).submit(double, 2).result(LONG_S).value == 4


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (lambda: None, ()),
        (Sampler().bound, ()),
        (double, (lambda: None,)),
    ],
)
def test_a_task_that_cannot_be_kept_is_named(
    runner: Runner, fn: Any, args: tuple[Any, ...]
) -> None:
    with runner.pause():
        handle = runner.submit(fn, *args)
        with pytest.raises(StateError, match=rf"task {handle.id} \("):
            runner.state_dict()
        runner.cancel(handle.id)


def test_an_outcome_that_cannot_be_kept_is_named(runner: Runner) -> None:
    runner.submit(give_unpicklable).result(LONG_S)
    with pytest.raises(StateError, match="outcome of task 0"):
        runner.state_dict()


def test_static_methods_travel_by_name(runner: Runner) -> None:
    with runner.pause():
        runner.submit(Sampler.sample, 5)
        state = runner.state_dict()
    with resume(state) as second:
        assert second.wait(1, LONG_S)[0].value == 5


def test_a_state_whose_functions_are_gone_changes_nothing(runner: Runner) -> None:
    with runner.pause():
        runner.submit(double, 1)
        state = runner.state_dict()
    state["inputs"][0][1][0][0] = "tests.unit.runner.test_state:gone"
    second = make_runner()
    with pytest.raises(StateError, match=r"task 0 .*gone"):
        second.load_state_dict(state)
    assert second.ledger().submitted == 0


def test_a_state_goes_into_a_fresh_runner_only(runner: Runner) -> None:
    state = runner.state_dict()
    runner.submit(double, 1)
    with pytest.raises(StateError, match="before its first task"):
        runner.load_state_dict(state)
    with pytest.raises(StateError, match="schema 99"):
        make_runner().load_state_dict(state | {"schema": 99, "inputs": "of another form"})


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        {"inputs": "none"},
        {"inputs": [[1]]},
        {"counts": {"ok/unheard_of": 1}},
        {"counts": {"ok": 1}},
        {"random": [3, [1, 2], None]},
        {"gates": {"meter": b"not pickled"}},
    ],
)
def test_what_is_no_state_is_refused_and_changes_nothing(given: Any) -> None:
    fresh = make_runner()
    with pytest.raises(StateError):
        fresh.load_state_dict(given)
    assert fresh.ledger().submitted == 0


def test_a_task_of_a_tier_that_is_gone_is_named_and_changes_nothing() -> None:
    with make_runner(tiers=[Tier(name="train"), Tier(name="extra")]) as runner, runner.pause():
        runner.options(tier="extra").submit(double, 1)
        state = runner.state_dict()
    with make_runner() as second:
        with pytest.raises(StateError, match=r"task 0 .*no tier 'extra'"):
            second.load_state_dict(state)
        assert second.submit(double, 2).result(LONG_S).value == 4


def test_a_gate_that_refuses_its_state_leaves_the_runner_as_it_was() -> None:
    class Meter(ExternalGate):
        def state_dict(self) -> dict[str, int]:
            return {}

        def load_state_dict(self, state: dict[str, int]) -> None:
            raise ValueError("not mine")

    with make_runner(gates=[Meter()]) as first_life, first_life.pause():
        first_life.submit(double, 1)
        state = first_life.state_dict()
    second = make_runner(gates=[Meter()])
    with pytest.raises(ValueError, match="not mine"):
        second.load_state_dict(state)
    assert second.ledger().submitted == 0


def test_a_runner_that_keeps_nothing_says_so() -> None:
    with make_runner(resumable=False) as runner:
        outcome = runner.submit(double, 1).result(LONG_S)
        assert runner.ack([outcome]) == 0
        for act in (runner.state_dict, runner.sync_journal):
            with pytest.raises(StateError, match="resumable=True"):
                act()


def test_nothing_is_left_of_acknowledged_tasks(runner: Runner) -> None:
    for _ in range(50):
        for number in range(20):
            runner.submit(double, number)
        runner.ack(runner.wait(20, LONG_S))
    keeper = runner._kernel.keeper
    assert (keeper.inputs, keeper.outcomes, keeper.acked) == ({}, {}, 1000)


def test_orders_that_shuffle_go_on_with_the_same_numbers() -> None:
    def order_of(runner: Runner) -> list[int]:
        return [one.id for one in runner.wait(20, LONG_S, order="shuffled")]

    with make_runner(seed=1) as runner:
        for number in range(20):
            runner.submit(double, number)
        assert runner._until(lambda: runner.ledger().outbox == 20, LONG_S)
        state = runner.state_dict()
        expected = order_of(runner)
    with resume(state, seed=2) as second:
        assert sorted(expected) == list(range(20))
        assert order_of(second) == expected


def test_a_task_that_was_taken_back_for_its_age_is_unfinished_again(runner: Runner) -> None:
    runner.submit(double, 8)
    assert runner._until(lambda: runner.ledger().outbox == 1, LONG_S)
    task = Task(double, (8,), {}, copy_context(), TaskOptions(), 0)
    task.id = 0
    runner._kernel.keeper.requeued([task])
    state = runner.state_dict()
    assert (len(state["inputs"]), state["outcomes"]) == (1, [])


def test_the_version_and_the_staleness_window_are_restored() -> None:
    def gate() -> StalenessGate:
        return StalenessGate.bounded(1, batch=2)

    with make_runner(gates=[gate()]) as runner:
        runner.set_version(5)
        for number in range(4):
            runner.submit(double, number)
        runner.ack(runner.wait(1, LONG_S))
        state = runner.state_dict()
    fresh = gate()
    with resume(state, gates=[fresh]) as second:
        assert second.version == 5
        assert second.wait(3, LONG_S)
        # The window of (S + 1) * B = 4 holds the three that are given again.
        assert fresh.available() == 1
        second.set_version(6)
        assert fresh.available() == 3


def test_a_gate_with_a_state_of_its_own_is_given_it_back() -> None:
    class Meter:
        name = "meter"
        used = 0

        def available(self) -> int | None:
            return None

        def acquire(self, task: Any) -> Any:
            self.used += 1
            return self

        def release(self) -> None: ...

        def subscribe(self, wake: Any) -> None: ...

        def state_dict(self) -> dict[str, int]:
            return {"used": self.used}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.used = state["used"]

    with make_runner(gates=[Meter()]) as runner:
        runner.submit(double, 1).result(LONG_S)
        state = runner.state_dict()
    fresh = Meter()
    resume(state, gates=[fresh])
    assert fresh.used == 1


def test_a_group_that_is_not_settled_runs_again_as_a_whole() -> None:
    with make_runner() as runner:
        group = runner.group(2, spawn=3, policy=first(2), tags={"set": "g"})
        group.submit(park)
        group.submit(double, 1)
        group.submit(park)
        assert runner._until(lambda: runner.ledger().outbox == 1, LONG_S)
        state = runner.state_dict()
    with resume(state) as second:
        assert second._until(lambda: second.ledger().outbox == 1, LONG_S)
        assert second.ledger().submitted == 3
        second.cancel(group=group.id)
        outcome = second.wait_for(group.id, LONG_S)
        assert isinstance(outcome, GroupOutcome)
        assert (outcome.status, outcome.value, outcome.tags) == (
            Status.CANCELLED,
            [2],
            {"set": "g"},
        )
        assert second.submit(double, 1).id > group.id + 3


def test_a_group_outcome_is_given_again_with_its_members(runner: Runner) -> None:
    group = runner.group(2, on_fail="shrink", need=1)
    group.submit(double, 1)
    group.submit(fail)
    outcome = group.result(LONG_S)
    with resume(runner.state_dict()) as second:
        (again,) = second.wait(1, LONG_S)
        assert isinstance(again, GroupOutcome)
        assert (again.id, again.status, again.value) == (group.id, "ok", [2])
        assert [one.id for one in again.members] == [one.id for one in outcome.members]
        assert [one.value for one in again.kept] == [2]
        assert second.ledger().delivered == 2
        assert second.ack([again]) == 1


def test_a_group_outcome_with_a_value_of_its_own_keeps_it(runner: Runner) -> None:
    group = runner.group(2)
    group.spawn_all(double, 4)
    outcome = group.result(LONG_S)
    force_setattr(outcome, "value", {"joined": [8, 8]})  # as a group that joins its members does
    with resume(runner.state_dict()) as second:
        assert second.wait(1, LONG_S)[0].value == {"joined": [8, 8]}


def test_arguments_go_through_the_codec_that_was_given() -> None:
    class Xor:
        def encode(self, given: Any) -> bytes:
            return bytes(byte ^ 255 for byte in pickle.dumps(given))

        def decode(self, data: bytes) -> Any:
            return pickle.loads(bytes(byte ^ 255 for byte in data))  # noqa: S301  (our own)

    with make_runner(codec=Xor()) as runner:
        with runner.pause():
            runner.submit(double, 1234)
            state = runner.state_dict()
        assert runner.wait(1, LONG_S)
    with pytest.raises(StateError, match="cannot be restored"):
        resume(state)
    with resume(state, codec=Xor()) as second:
        assert second.wait(1, LONG_S)[0].value == 2468


def test_times_of_an_earlier_process_stay_in_the_past(runner: Runner) -> None:
    runner.submit(double, 1).result(LONG_S)
    state = runner.state_dict()
    state["clock_ns"] += 10**18  # as if the machine had run far longer than this one has
    for saved in state["outcomes"]:
        record = pickle.loads(saved[3])  # noqa: S301  (our own)
        record.update({name: record[name] + 10**18 for name in record if name.endswith("ed_ns")})
        saved[3] = pickle.dumps(record)
    with resume(state) as second:
        (outcome,) = second.wait(1, LONG_S)
        assert outcome.finished_ns <= (outcome.delivered_ns or 0)
