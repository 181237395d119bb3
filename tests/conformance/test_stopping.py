"""Tasks are cancelled, run out of time, and take what they started with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import SettingError
from rollscope.runner import Reason, Runner, Status
from tests.conformance import tasks
from tests.conformance.backends import PATIENCE_S, Backend, Signals, eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_running_task_gets_one_cancel_that_says_why(
    runner: Runner, signals: Signals, tmp_path: Path
) -> None:
    handle = runner.submit(tasks.tell_cancel, signals.path("on"), signals.path("told"))
    signals.wait("on")
    assert runner.cancel(handle.id, reason="straggler") == 1
    assert runner.cancel(handle.id) == 0
    outcome = handle.result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.STRAGGLER)
    assert (tmp_path / "told").read_text() == "straggler"
    assert runner.cancel(handle.id) == 0


def test_a_queued_task_that_is_cancelled_ends_at_once_and_never_runs(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(concurrency=1)
    runner.pause("test")
    handle = runner.submit(tasks.hold, signals.path("on"), signals.path("never"))
    assert runner.cancel(handle.id) == 1
    outcome = handle.result(PATIENCE_S)  # during the pause
    assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.REQUESTED)
    assert (outcome.started_ns, outcome.version_start) == (None, None)
    runner.resume("test")
    assert runner.submit(tasks.give, 1).result(PATIENCE_S).value == 1
    assert signals.count("on") == 0


def test_cancelling_by_each_way_to_choose(runner: Runner, signals: Signals) -> None:
    def hold(name: str, **options: Any) -> int:
        submitter = runner.options(**options)
        return submitter.submit(tasks.hold, signals.path(name), signals.path("never")).id

    runner.set_version(1)
    by_group = hold("a", group="g")
    by_tag = hold("b", tags={"set": "aime"})
    old = hold("c")
    eventually(lambda: sum(map(signals.count, "abc")) == 3, "all run")
    runner.set_version(2)
    new = hold("d")
    signals.wait("d")
    assert runner.cancel(group="g") == 1
    assert runner.cancel(tag=("set", "math")) == 0
    assert runner.cancel(tag=("set", "aime")) == 1
    eventually(lambda: runner.ledger().running == 2, "two are gone")
    assert runner.cut(older_than=2) == 1
    assert runner.cancel(where=lambda task: task.id == new) == 1
    ended = {one.id: (one.status, one.reason) for one in runner.wait(4, PATIENCE_S)}
    requested = (Status.CANCELLED, Reason.REQUESTED)
    assert ended == {
        by_group: requested,
        by_tag: requested,
        old: (Status.STALE, Reason.CUT_BEFORE_UPDATE),
        new: requested,
    }


def test_cancel_takes_exactly_one_way_to_choose(runner: Runner) -> None:
    with pytest.raises(SettingError):
        runner.cancel()
    with pytest.raises(SettingError):
        runner.cancel(1, group="g")


def test_what_chooses_tasks_to_cancel_may_ask_the_runner(runner: Runner, signals: Signals) -> None:
    handle = runner.submit(tasks.hold, signals.path("on"), signals.path("never"))
    signals.wait("on")
    assert runner.cancel(where=lambda task: runner.ledger().running == 1) == 1
    assert handle.result(PATIENCE_S).reason is Reason.REQUESTED


def test_a_cancel_says_only_what_an_outcome_can_say(runner: Runner, signals: Signals) -> None:
    handle = runner.submit(tasks.hold, signals.path("on"), signals.path("never"))
    for reason in ("accepted", "deadline", "self_cancelled", "no reason at all"):
        with pytest.raises(SettingError, match="straggler"):
            runner.cancel(handle.id, reason=reason)
    assert runner.cancel(handle.id, reason="overload") == 1
    outcome = handle.result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.DROPPED, Reason.OVERLOAD)


def test_cancelled_tasks_leave_all_places_free(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(concurrency=2)
    for turn in range(3):
        for number in range(4):
            on = signals.path(f"on{turn}{number}")
            runner.options(group=turn).submit(tasks.hold, on, signals.path("never"))
        eventually(lambda: runner.ledger().running == 2, "two run")
        assert runner.cancel(group=turn) == 4
        assert {one.status for one in runner.wait(4, PATIENCE_S)} == {Status.CANCELLED}
    assert runner.ledger().running == 0


def test_a_value_returned_in_spite_of_a_cancel_is_kept_but_not_ok(
    runner: Runner, signals: Signals
) -> None:
    handle = runner.submit(tasks.return_when_cancelled, signals.path("on"), "late")
    signals.wait("on")
    runner.cancel(handle.id)
    outcome = handle.result(PATIENCE_S)
    assert (outcome.status, outcome.value) == (Status.CANCELLED, "late")


def test_a_task_that_does_not_end_is_given_up_and_its_place_is_freed(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(concurrency=1, cleanup_s=0.1)
    stuck = runner.submit(tasks.swallow_cancels, signals.path("on"), signals.path("go"))
    signals.wait("on")
    runner.cancel(stuck.id)
    outcome = stuck.result(PATIENCE_S)
    assert (outcome.status, outcome.value) == (Status.CANCELLED, None)
    assert runner.submit(tasks.give, 1).result(PATIENCE_S).value == 1
    assert runner.health().state == "degraded"
    assert runner.health().zombies == 1
    assert [one.id for one in runner.inspect() if one.state == "zombie"] == [stuck.id]
    signals.send("go")
    eventually(lambda: runner.health().zombies == 0, "it has ended at last")
    assert runner.health().state == "running"
    assert runner.stats().late_results == 1
    assert runner.take_ready() == []


def test_a_server_is_told_of_a_cancel(runner: Runner, signals: Signals) -> None:
    handle = runner.submit(tasks.abort_on_server, signals.path("on"), signals.path("aborted"))
    signals.wait("on")
    runner.cancel(handle.id)
    assert handle.result(PATIENCE_S).status is Status.CANCELLED
    assert signals.count("aborted") == 1


def test_a_hook_that_cannot_even_fail_properly_does_not_keep_the_task(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(cleanup_s=PATIENCE_S * 2)
    handle = runner.submit(tasks.fail_with_bad_hook, signals.path("on"))
    signals.wait("on")
    runner.cancel(handle.id)
    assert handle.result(PATIENCE_S).reason is Reason.REQUESTED
    assert runner.health().zombies == 0


@pytest.mark.parametrize("fate", ["fail", "wait"])
def test_children_end_with_a_task_that_fails_or_is_cancelled(
    runner: Runner, signals: Signals, fate: str
) -> None:
    handle = runner.submit(tasks.leave_child, signals.path("ended"), fate, 0.01)
    if fate == "wait":
        signals.wait("ended.started")
        runner.cancel(handle.id)
    outcome = handle.result(PATIENCE_S)
    assert outcome.status is (Status.FAILED if fate == "fail" else Status.CANCELLED)
    assert signals.count("ended") == (1 if fate == "fail" else 2)  # before the outcome was made


def test_children_that_are_to_end_at_return_do(runner: Runner, signals: Signals) -> None:
    submitter = runner.options(children="cancel")
    outcome = submitter.submit(tasks.leave_child, signals.path("ended"), "return", 0.01).result(
        PATIENCE_S
    )
    assert outcome.value == "left it"
    assert signals.count("ended") == 1


def test_children_that_outlive_their_task_end_with_the_runner(
    runner: Runner, signals: Signals
) -> None:
    outcome = runner.submit(tasks.leave_child, signals.path("ended"), "return").result(PATIENCE_S)
    assert outcome.is_ok
    assert signals.count("ended") == 0
    assert runner.drain(PATIENCE_S).is_drained
    signals.wait("ended")


def test_a_cancel_during_the_clean_up_of_a_failure_loses_nothing(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(cleanup_s=PATIENCE_S * 2)
    submitter = runner.options(attempt_timeout_s=0.1)
    handle = submitter.submit(tasks.leave_child, signals.path("ended"), "fail", 0.4)
    outcome = handle.result(PATIENCE_S)  # its time limit ended while its child was ending
    assert outcome.status in (Status.FAILED, Status.TIMEOUT)
    assert runner.health().zombies == 0
    assert signals.count("ended") == 1


def test_a_child_that_does_not_end_keeps_its_failed_task_only_so_long(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(concurrency=1, cleanup_s=0.1)
    outcome = runner.submit(tasks.leave_stuck_child, signals.path("go")).result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.EXCEPTION)
    assert runner.submit(tasks.give, 1).result(PATIENCE_S).value == 1
    signals.send("go")


def test_an_exit_in_a_child_ends_its_task_and_not_the_loop(
    backend: Backend, runner: Runner
) -> None:
    if backend.name == "in-loop":  # asyncio lets it end the loop that is not ours
        return
    outcome = runner.submit(tasks.exit_in_child, 3).result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.BASE_EXCEPTION)
    assert runner.submit(tasks.give, 1).result(PATIENCE_S).is_ok


def test_a_task_that_takes_too_long_is_ended(runner: Runner, signals: Signals) -> None:
    never = signals.path("never")
    slow = runner.options(timeout_s=0.05).submit(tasks.hold, signals.path("on"), never)
    outcome = slow.result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.TIMEOUT, Reason.DEADLINE)
    assert outcome.started_ns is not None
    assert outcome.finished_ns - outcome.started_ns >= 50_000_000
    attempt = runner.options(attempt_timeout_s=0.05).submit(tasks.hold, signals.path("o2"), never)
    assert attempt.result(PATIENCE_S).reason is Reason.DEADLINE


def test_a_task_that_waits_too_long_to_start_is_ended(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(concurrency=1, breaker=1)
    running = runner.submit(tasks.hold, signals.path("on"), signals.path("go"))
    signals.wait("on")
    waiting = runner.options(queue_timeout_s=0.05).submit(tasks.give)
    outcome = waiting.result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.TIMEOUT, Reason.QUEUE_DEADLINE)
    assert outcome.started_ns is None
    signals.send("go")
    assert running.result(PATIENCE_S).is_ok
    assert runner.health().state == "running"  # nothing was tried, so nothing has failed


def test_a_task_without_progress_is_ended_and_one_that_gets_on_is_not(
    runner: Runner, signals: Signals
) -> None:
    submitter = runner.options(stall_s=0.3)
    moving = submitter.submit(tasks.progress_for, 12, 0.05)
    stuck = submitter.submit(tasks.hold, signals.path("on"), signals.path("never"))
    outcome = stuck.result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.TIMEOUT, Reason.NO_PROGRESS)
    assert moving.result(PATIENCE_S).value == "got on"


def test_the_last_checkpoint_is_kept_when_a_task_does_not_end_well(
    runner: Runner, signals: Signals
) -> None:
    handle = runner.submit(
        tasks.hold_with_checkpoint, signals.path("on"), signals.path("never"), {"turn": 3}
    )
    signals.wait("on1")
    runner.cancel(handle.id)
    assert handle.result(PATIENCE_S).partial == {"turn": 3}
