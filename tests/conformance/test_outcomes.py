"""Every accepted task gives exactly one outcome, which says what happened."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import DuplicateTask, InboxFull, RunnerClosed, SettingError
from rollscope.runner import Reason, Retry, Status
from tests.conformance import tasks
from tests.conformance.backends import PATIENCE_S, Backend, Signals, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollscope.runner import Runner

MOOD: ContextVar[str] = ContextVar("mood", default="none")


def test_a_value_comes_back_with_its_times_in_order(runner: Runner) -> None:
    handle = runner.submit(tasks.give, 7)
    outcome = handle.result(PATIENCE_S)
    assert (outcome.id, outcome.status, outcome.reason) == (
        handle.id,
        Status.OK,
        Reason.ACCEPTED,
    )
    assert (outcome.value, outcome.error, outcome.attempts) == (7, None, 1)
    times = (
        outcome.submitted_ns,
        outcome.admitted_ns,
        outcome.started_ns,
        outcome.finished_ns,
        outcome.delivered_ns,
    )
    known = [at_ns for at_ns in times if at_ns is not None]
    assert len(known) == 5
    assert known == sorted(known)


def test_every_keyword_of_submit_reaches_the_function(runner: Runner) -> None:
    handle = runner.submit(tasks.give_back, 1, task_id=2, id=3, timeout_s=4, fn=5, self=6)
    args, kwargs = handle.result(PATIENCE_S).value
    assert args == (1,)
    assert kwargs == {"task_id": 2, "id": 3, "timeout_s": 4, "fn": 5, "self": 6}


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": (1, 2)}, float("inf")])
def test_any_value_counts(runner: Runner, value: Any) -> None:
    outcome = runner.submit(tasks.give, value).result(PATIENCE_S)
    assert outcome.is_ok
    assert outcome.value == value


def test_an_error_is_told_in_words(runner: Runner) -> None:
    outcome = runner.submit(tasks.fail, "the text").result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.EXCEPTION)
    assert outcome.error is not None
    assert (outcome.error.type_name, outcome.error.text) == ("ValueError", "the text")
    assert "tasks.py" in outcome.error.traceback_text
    assert outcome.value is None


def test_an_error_whose_text_cannot_be_had_is_an_outcome_too(runner: Runner) -> None:
    outcome = runner.submit(tasks.fail_unprintably).result(PATIENCE_S)
    assert outcome.status is Status.FAILED
    assert outcome.error is not None
    assert outcome.error.type_name == "Unprintable"


def test_a_call_that_fails_before_its_first_await_fails_that_task_only(
    runner: Runner, signals: Signals
) -> None:
    bad = runner.submit(tasks.fail_before_it_awaits, signals.path("called"))
    good = runner.submit(tasks.give, 1)
    assert bad.result(PATIENCE_S).reason is Reason.EXCEPTION
    assert good.result(PATIENCE_S).value == 1
    assert runner.health().state == "running"


@pytest.mark.parametrize(
    ("fn", "args"), [(tasks.give, (1, 2, 3)), (tasks.not_async, (5,)), (len, ((),)), (3, ())]
)
def test_what_cannot_be_called_or_awaited_is_a_bad_call(
    runner: Runner, fn: Any, args: tuple[Any, ...]
) -> None:
    outcome = runner.submit(fn, *args).result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.FAILED, Reason.BAD_CALL)
    assert runner.submit(tasks.give, 1).result(PATIENCE_S).is_ok


def test_exits_and_interrupts_become_outcomes_and_the_loop_lives(runner: Runner) -> None:
    exiting = runner.submit(tasks.raise_system_exit, 3).result(PATIENCE_S)
    assert (exiting.status, exiting.reason) == (Status.FAILED, Reason.BASE_EXCEPTION)
    assert exiting.error is not None
    assert (exiting.error.type_name, exiting.error.text) == ("SystemExit", "3")
    interrupted = runner.submit(tasks.raise_keyboard_interrupt).result(PATIENCE_S)
    assert interrupted.reason is Reason.BASE_EXCEPTION
    assert interrupted.error is not None
    assert interrupted.error.type_name == "KeyboardInterrupt"
    assert runner.submit(tasks.give, 1).result(PATIENCE_S).is_ok


def test_tasks_that_cancel_themselves_leave_all_places_free(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(concurrency=3)
    for _ in range(6):
        runner.submit(tasks.cancel_itself)
    for outcome in runner.wait(6, PATIENCE_S):
        assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.SELF_CANCELLED)
    for number in range(3):  # all at once, so all three places are there
        runner.submit(tasks.hold, signals.path(f"started{number}"), signals.path("go"))
    eventually(lambda: signals.count("started") == 3, "three run at once")
    signals.send("go")
    assert len(runner.wait(3, PATIENCE_S)) == 3


def test_none_rejects_where_that_was_agreed(runner: Runner) -> None:
    submitter = runner.options(none_is=Reason.RETURNED_NONE)
    outcome = submitter.submit(tasks.give, None).result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.REJECTED, Reason.RETURNED_NONE)
    assert submitter.submit(tasks.give, 0).result(PATIENCE_S).is_ok


def test_a_verdict_says_how_the_task_ended(runner: Runner) -> None:
    outcome = runner.submit(tasks.reject).result(PATIENCE_S)
    assert (outcome.status, outcome.reason) == (Status.REJECTED, Reason.FILTERED)
    assert (outcome.value, outcome.detail) == (3, "not good enough")


def test_labels_come_back_as_given(runner: Runner) -> None:
    submitter = runner.options(tier="eval", tags={"set": "aime"}, group="g7")
    outcome = submitter.submit(tasks.give).result(PATIENCE_S)
    assert (outcome.tier, outcome.tags, outcome.group) == ("eval", {"set": "aime"}, "g7")


def test_a_task_knows_itself(runner: Runner) -> None:
    runner.set_version(4)
    handle = runner.options(tags={"a": 1}, timeout_s=60).submit(tasks.tell_context)
    assert handle.result(PATIENCE_S).value == {
        "id": handle.id,
        "attempt": 1,
        "version": 4,
        "tags": {"a": 1},
        "has_deadline": True,
    }


def test_versions_and_age_are_those_of_start_and_delivery(runner: Runner, signals: Signals) -> None:
    runner.set_version(3)
    handle = runner.submit(tasks.hold, signals.path("on"), signals.path("go"))
    signals.wait("on")
    runner.set_version(4)
    signals.send("go")
    eventually(lambda: runner.ledger().outbox == 1, "it has ended")
    runner.set_version(6)
    outcome = handle.result(PATIENCE_S)
    assert (outcome.version_start, outcome.version_end, outcome.age) == (3, 4, 3)


def test_a_duplicate_id_is_told_to_that_caller_only(runner: Runner, signals: Signals) -> None:
    held = runner.options(id=7).submit(tasks.hold, signals.path("on"), signals.path("go"), "first")
    with pytest.raises(DuplicateTask, match="7"):
        runner.options(id=7).submit(tasks.give, "second")
    with pytest.raises(DuplicateTask):
        runner.options(id=9).submit_many([(tasks.give, (), {}), (tasks.give, (), {})])
    assert runner.ledger().submitted == 1
    signals.send("go")
    assert held.result(PATIENCE_S).value == "first"
    assert runner.options(id=7).submit(tasks.give, "again").result(PATIENCE_S).value == "again"
    assert runner.submit(tasks.give).id > 7


def test_a_full_inbox_refuses_and_keeps_what_it_has(
    make_runner: Callable[..., Runner],
) -> None:
    runner = make_runner(inbox=3)
    runner.pause("test")
    for number in range(3):
        runner.submit(tasks.give, number)
    with pytest.raises(InboxFull):
        runner.submit(tasks.give, 3)
    with pytest.raises(InboxFull):
        runner.options(room_s=0.05).submit_blocking(tasks.give, 3)
    assert runner.ledger().submitted == 3
    runner.resume("test")
    assert {outcome.value for outcome in runner.wait(3, PATIENCE_S)} == {0, 1, 2}


def test_submit_blocking_goes_on_once_there_is_room(make_runner: Callable[..., Runner]) -> None:
    runner = make_runner(inbox=1)
    runner.pause("test")
    runner.submit(tasks.give, 0)
    blocked = threading.Thread(target=runner.submit_blocking, args=(tasks.give, 1))
    blocked.start()
    runner.resume("test")
    assert {outcome.value for outcome in runner.wait(2, PATIENCE_S)} == {0, 1}
    blocked.join(PATIENCE_S)
    assert not blocked.is_alive()


def test_submit_many_is_all_or_none(make_runner: Callable[..., Runner]) -> None:
    runner = make_runner(inbox=2)
    runner.pause("test")
    with pytest.raises(InboxFull):
        runner.submit_many([(tasks.give, (n,), {}) for n in range(3)])
    assert runner.ledger().submitted == 0
    handles = runner.submit_many([(tasks.give, (n,), {}) for n in range(2)])
    runner.resume("test")
    assert [handle.result(PATIENCE_S).value for handle in handles] == [0, 1]


def test_settings_that_are_not_there_are_told(runner: Runner) -> None:
    with pytest.raises(SettingError, match="nonsense"):
        runner.options(nonsense=1)
    with pytest.raises(SettingError, match="no such tier"):
        runner.options(tier="no such tier")


def test_many_threads_submit_and_nothing_is_lost(runner: Runner) -> None:
    def submit(base: int) -> None:
        for number in range(50):
            runner.submit_blocking(tasks.give, base + number)

    threads = [threading.Thread(target=submit, args=(base * 50,)) for base in range(4)]
    for thread in threads:
        thread.start()
    outcomes = runner.wait(200, PATIENCE_S)
    for thread in threads:
        thread.join()
    assert sorted(outcome.value for outcome in outcomes) == list(range(200))
    ledger = runner.ledger()
    assert ledger.adds_up()
    assert (ledger.submitted, ledger.delivered) == (200, 200)


def test_a_retry_is_an_attempt_and_not_an_outcome(make_runner: Callable[..., Runner]) -> None:
    runner = make_runner(
        retry=Retry(rules={ConnectionError: "infra"}, per_task=3, base_s=0.01, cap_s=0.02)
    )
    outcome = runner.submit(tasks.fail_until, 3).result(PATIENCE_S)
    assert (outcome.status, outcome.value, outcome.attempts) == (Status.OK, 3, 3)
    assert [attempt.status for attempt in outcome.history] == ["failed", "failed", "ok"]
    assert [attempt.number for attempt in outcome.history] == [1, 2, 3]
    assert runner.ledger().submitted == runner.ledger().delivered == 1
    assert outcome.admitted_ns is not None
    assert outcome.started_ns is not None
    assert outcome.submitted_ns <= outcome.admitted_ns <= outcome.started_ns


def test_a_spent_retry_budget_is_named(make_runner: Callable[..., Runner]) -> None:
    runner = make_runner(
        retry=Retry(rules={ConnectionError: "infra"}, per_task=1, base_s=0.01, cap_s=0.02)
    )
    outcome = runner.submit(tasks.fail_until, 9).result(PATIENCE_S)
    assert (outcome.status, outcome.attempts) == (Status.FAILED, 2)
    assert "per_task=1" in outcome.detail
    data = runner.submit(tasks.fail).result(PATIENCE_S)
    assert data.attempts == 1


def test_submits_are_refused_before_start_and_after_close(
    backend: Backend, close: Callable[..., Any]
) -> None:
    if backend.is_local:
        from rollscope.runner import Runner

        with pytest.raises(RunnerClosed):
            Runner().submit(tasks.give)
    runner = backend.make()
    close(runner)
    with pytest.raises(RunnerClosed):
        runner.submit(tasks.give)
    assert runner.ledger().submitted == 0
