"""Pauses, versions, gates and tiers decide what starts; drain and close end it all."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import RunnerBroken, RunnerClosed
from rollscope.runner import (
    ConcurrencyGate,
    ExternalGate,
    Reason,
    Runner,
    StalenessGate,
    Status,
    Tier,
)
from tests.conformance import tasks
from tests.conformance.backends import PATIENCE_S, Backend, Signals, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

# --- pausing -------------------------------------------------------------------------------------


def test_nothing_starts_during_a_pause_and_all_does_after_it(runner: Runner) -> None:
    with runner.pause("test") as pause:
        assert runner.is_paused
        assert runner.health().state == "paused"
        handles = [runner.submit(tasks.give, number) for number in range(3)]
        assert pause.quiesced(PATIENCE_S)
        assert runner.ledger().queued == 3
        assert runner.stats().binding_gate == "paused"
    assert not runner.is_paused
    assert [handle.result(PATIENCE_S).value for handle in handles] == [0, 1, 2]


def test_a_task_that_finishes_during_a_pause_is_delivered_during_it(
    runner: Runner, signals: Signals
) -> None:
    handle = runner.submit(tasks.hold, signals.path("on"), signals.path("go"), "done")
    signals.wait("on")
    with runner.pause() as pause:
        assert not pause.quiesced(0.01)
        signals.send("go")
        assert handle.result(PATIENCE_S).value == "done"
        assert pause.quiesced(PATIENCE_S)
        assert runner.is_paused


def test_a_runner_is_paused_while_any_owner_holds_it(runner: Runner) -> None:
    runner.pause("a")
    runner.pause("b")
    runner.pause("a")
    assert not runner.resume("a")
    assert not runner.resume("a")
    assert not runner.resume("stranger")
    assert runner.is_paused
    assert runner.resume("b")
    runner.pause("a")
    runner.pause("c")
    assert runner.resume(all=True)
    assert runner.submit(tasks.give, 1).result(PATIENCE_S).is_ok


def test_repeating_an_owner_changes_nothing(runner: Runner, signals: Signals) -> None:
    handle = runner.submit(tasks.hold_with_checkpoint, signals.path("on"), signals.path("go"), 1)
    signals.wait("on1")
    first = runner.pause("a")
    assert runner.pause("a", mode="abort").mode == first.mode == "finish"
    signals.send("go")
    assert handle.result(PATIENCE_S).attempts == 1


def test_tasks_hold_at_their_pause_points(runner: Runner, signals: Signals) -> None:
    runner.set_version(1)
    handles = [
        runner.submit(tasks.stop_at_pause_points, signals.path(f"on{n}"), signals.path("go"), n)
        for n in range(2)
    ]
    eventually(lambda: signals.count("on") == 2, "both run")
    with runner.pause(mode="hold") as pause:
        assert pause.quiesced(PATIENCE_S)
        assert runner.ledger().running == 2
        signals.send("go")
        runner.set_version(2)
        assert runner.take_ready() == []
    outcomes = [handle.result(PATIENCE_S) for handle in handles]
    assert [outcome.value for outcome in outcomes] == [0, 1]
    assert {outcome.versions for outcome in outcomes} == {(1, 2)}
    assert {outcome.age for outcome in outcomes} == {1}


def test_aborted_tasks_start_again_from_their_checkpoint(runner: Runner, signals: Signals) -> None:
    runner.set_version(3)
    handle = runner.submit(
        tasks.hold_with_checkpoint, signals.path("on"), signals.path("go"), {"turn": 1}
    )
    signals.wait("on1")
    with runner.pause(mode="abort") as pause:
        assert pause.quiesced(PATIENCE_S)
        eventually(lambda: runner.ledger().queued == 1, "it waits for its second attempt")
        runner.set_version(4)
    signals.wait("on2")
    signals.send("go")
    outcome = handle.result(PATIENCE_S)
    assert (outcome.status, outcome.attempts, outcome.value) == (Status.OK, 2, {"turn": 1})
    assert (outcome.versions, outcome.age) == ((3, 4), 1)


def test_an_aborted_task_that_goes_on_does_not_end_its_second_attempt(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(concurrency=1, cleanup_s=0.1)
    handle = runner.submit(tasks.swallow_cancels, signals.path("on"), signals.path("go"))
    signals.wait("on")
    with runner.pause(mode="abort") as pause:
        assert pause.quiesced(PATIENCE_S)
        signals.send("go")
        eventually(lambda: runner.stats().late_results == 1, "the first attempt has ended")
        assert runner.take_ready() == []
        assert runner.ledger().unfinished == 1
    assert handle.result(PATIENCE_S).attempts == 2
    assert runner.ledger().adds_up()


def test_pauses_work_from_coroutines(runner: Runner) -> None:
    async def main() -> bool:
        async with runner.pause() as pause:
            return await pause.aquiesced(PATIENCE_S)

    assert asyncio.run(main())
    assert not runner.is_paused


# --- gates and tiers -----------------------------------------------------------------------------


def test_no_more_run_at_once_than_may(make_runner: Callable[..., Runner], signals: Signals) -> None:
    gate = ConcurrencyGate(2)
    runner = make_runner(gates=[gate])
    for number in range(5):
        runner.submit(tasks.hold, signals.path(f"on{number}"), signals.path(f"go{number}"))
    eventually(lambda: signals.count("on") == 2, "two run")
    assert (runner.ledger().running, runner.ledger().queued) == (2, 3)
    eventually(lambda: runner.stats().binding_gate == "concurrency", "it is known why")
    gate.set_limit(4)
    eventually(lambda: signals.count("on") == 4, "four run")
    gate.set_limit(1)
    assert runner.ledger().running == 4  # a lower limit cancels nobody
    for number in range(5):
        signals.send(f"go{number}")
    assert len(runner.wait(5, PATIENCE_S)) == 5


def test_a_gate_that_others_move_wakes_admission(make_runner: Callable[..., Runner]) -> None:
    gate = ExternalGate("cache")
    gate.close()
    runner = make_runner(gates=[gate])
    handle = runner.submit(tasks.give, 1)
    eventually(lambda: runner.stats().binding_gate == "cache", "it is held back")
    gate.open()
    assert handle.result(PATIENCE_S).value == 1


def test_results_that_nobody_fetches_hold_admission_and_are_all_kept(
    make_runner: Callable[..., Runner],
) -> None:
    runner = make_runner(outbox=2, concurrency=1)
    for number in range(10):
        runner.submit(tasks.give, number)
    eventually(lambda: runner.stats().binding_gate == "outbox", "admission waits")
    assert runner.ledger().outbox == 2
    assert runner.ledger().queued == 8
    got = [outcome.value for _ in range(5) for outcome in runner.wait(2, PATIENCE_S)]
    assert got == list(range(10))


def test_a_wait_for_more_than_the_outbox_holds_is_met(
    make_runner: Callable[..., Runner],
) -> None:
    runner = make_runner(outbox=1, concurrency=1)
    for number in range(6):
        runner.submit(tasks.give, number)
    assert [outcome.value for outcome in runner.wait(6, PATIENCE_S)] == list(range(6))


def test_a_version_change_alone_starts_what_waits(make_runner: Callable[..., Runner]) -> None:
    runner = make_runner(gates=[StalenessGate.bounded(0, batch=1)])
    runner.set_version(0)
    first = runner.submit(tasks.give, 1)
    second = runner.submit(tasks.give, 2)
    assert first.result(PATIENCE_S).value == 1
    eventually(lambda: runner.stats().binding_gate == "staleness", "the second is held back")
    assert runner.ledger().queued == 1
    runner.set_version(1)
    assert second.result(PATIENCE_S).version_start == 1


class Source:
    """Knows the version, and tells nobody when it changes."""

    def __init__(self) -> None:
        self.version = 0

    def get_version(self) -> int:
        return self.version


def test_a_version_that_nobody_announces_is_noticed(make_runner: Callable[..., Runner]) -> None:
    source = Source()
    runner = make_runner(gates=[StalenessGate.bounded(0, batch=1, version_source=source)])
    runner.submit(tasks.give, 1)
    second = runner.submit(tasks.give, 2)
    eventually(lambda: runner.stats().binding_gate == "staleness", "the second is held back")
    source.version = 1
    assert second.result(PATIENCE_S).value == 2


def test_a_resumed_run_opens_with_the_window_of_a_new_one(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(gates=[StalenessGate.bounded(1, batch=2, version=50)])
    runner.set_version(50)
    for number in range(8):
        runner.submit(tasks.hold, signals.path(f"on{number}"), signals.path("go"))
    eventually(lambda: signals.count("on") == 4, "the window is full")
    eventually(lambda: runner.stats().binding_gate == "staleness", "and closed")
    assert runner.ledger().running == 4
    signals.send("go")
    assert len(runner.wait(4, PATIENCE_S)) == 4


def test_eval_tasks_pass_the_staleness_gate(make_runner: Callable[..., Runner]) -> None:
    gate = StalenessGate.bounded(0, batch=1)
    runner = make_runner(gates=[gate])
    runner.submit(tasks.give)
    held = runner.submit(tasks.give)
    free = runner.options(tier="eval").submit(tasks.give, "eval")
    assert free.result(PATIENCE_S).value == "eval"
    assert runner.ledger().queued == 1
    assert runner.cancel(held.id) == 1


def test_tiers_share_limit_and_go_first(
    make_runner: Callable[..., Runner], signals: Signals
) -> None:
    runner = make_runner(
        concurrency=4,
        tiers=(Tier(name="train"), Tier(name="eval", limit=1), Tier(name="urgent", strict=True)),
    )
    runner.pause("test")
    for tier in ("train", "eval", "urgent"):
        for number in range(3):
            on = signals.path(f"{tier}{number}")
            runner.options(tier=tier).submit(tasks.hold, on, signals.path("go"))
    runner.resume("test")
    eventually(lambda: runner.ledger().running == 4, "four run")
    eventually(lambda: signals.count("urgent") == 3, "all urgent ones among them")
    assert signals.count("eval") <= 1
    signals.send("go")
    assert len(runner.wait(9, PATIENCE_S)) == 9


def test_higher_priority_first_then_first_come(make_runner: Callable[..., Runner]) -> None:
    runner = make_runner(concurrency=1)
    runner.pause("test")
    for name, priority in (("a", 0), ("b", 0), ("high", 5), ("c", 0)):
        runner.options(priority=priority).submit(tasks.give, name)
    runner.resume("test")
    values = [outcome.value for outcome in runner.wait(4, PATIENCE_S)]
    assert values == ["high", "a", "b", "c"]


def test_the_breaker_stops_a_run_in_which_everything_fails(
    make_runner: Callable[..., Runner],
) -> None:
    runner = make_runner(concurrency=1, breaker=3)
    for _ in range(3):
        runner.submit(tasks.fail, "the engine is gone")
    eventually(lambda: runner.health().state == "broken", "the breaker opens")
    waiting = runner.submit(tasks.give, 1)
    assert len(runner.wait(3, PATIENCE_S)) == 3  # what is there can be read
    with pytest.raises(RunnerBroken, match="the engine is gone"):
        runner.wait(1, PATIENCE_S)
    with pytest.raises(RunnerBroken):
        waiting.result(PATIENCE_S)
    with pytest.raises(RunnerBroken):
        runner.raise_if_unhealthy()
    runner.reset_breaker()
    assert waiting.result(PATIENCE_S).value == 1
    assert runner.health().state == "running"


# --- ending --------------------------------------------------------------------------------------


def test_drain_lets_work_end_and_takes_no_more(runner: Runner, signals: Signals) -> None:
    handle = runner.submit(tasks.hold, signals.path("on"), signals.path("go"), "done")
    signals.wait("on")
    assert not runner.drain(0.01).is_drained
    with pytest.raises(RunnerClosed):
        runner.submit(tasks.give)
    signals.send("go")
    report = runner.drain(PATIENCE_S)
    assert (report.is_drained, report.unfinished, report.undelivered) == (True, 0, 1)
    assert report.outcomes == {"ok": 1}
    assert handle.result(0).value == "done"


def test_a_submit_is_told_whether_the_runner_drains_or_is_closed(
    backend: Backend, runner: Runner
) -> None:
    assert runner.drain(PATIENCE_S).is_drained
    with pytest.raises(RunnerClosed, match="being drained"):
        runner.submit(tasks.give, 1)
    backend.close(runner)
    with pytest.raises(RunnerClosed, match="is closed"):
        runner.submit(tasks.give, 1)


def test_drain_can_cancel(make_runner: Callable[..., Runner], signals: Signals) -> None:
    runner = make_runner(concurrency=1)
    first = runner.submit(tasks.hold_with_checkpoint, signals.path("on"), signals.path("never"), 5)
    second = runner.submit(tasks.give)
    signals.wait("on1")
    assert runner.drain(PATIENCE_S, "checkpoint").outcomes == {"cancelled": 2}
    ended = first.result(0)
    assert (ended.reason, ended.partial) == (Reason.DRAINED, 5)
    assert second.result(0).reason is Reason.DRAINED


def test_close_reports_what_was_not_finished(
    make_runner: Callable[..., Runner], close: Callable[..., Any], signals: Signals
) -> None:
    runner = make_runner(concurrency=1)
    done = runner.submit(tasks.give, "done")
    eventually(lambda: runner.ledger().outbox == 1, "the first has ended")
    running = runner.submit(tasks.hold, signals.path("on"), signals.path("never"))
    queued = runner.submit(tasks.give)
    signals.wait("on")
    report = close(runner)
    assert sorted(report.unfinished) == [running.id, queued.id]
    assert (report.undelivered, report.zombies) == (3, 0)
    assert done.result(0).value == "done"
    for handle in (running, queued):
        outcome = handle.result(0)
        assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.CLOSED)
    assert runner.health().state == "closed"
    assert runner.ledger().adds_up()
    close(runner)


def test_close_does_not_wait_for_a_task_longer_than_its_clean_up(
    make_runner: Callable[..., Runner], close: Callable[..., Any], signals: Signals
) -> None:
    runner = make_runner(cleanup_s=0.1)
    runner.submit(tasks.swallow_cancels, signals.path("on"), signals.path("go"))
    signals.wait("on")
    closing = threading.Thread(target=close, args=(runner,), kwargs={"timeout_s": 600.0})
    closing.start()
    try:
        eventually(lambda: runner.ledger().unfinished == 0, "it was given up")
        closing.join(PATIENCE_S)
        assert not closing.is_alive()
    finally:
        signals.send("go")
        closing.join(PATIENCE_S)
    assert runner.wait(1, 0)[0].reason is Reason.CLOSED


def test_exit_callbacks_run_last_in_first_out_and_one_that_fails_stops_no_other(
    backend: Backend, runner: Runner, close: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    called: list[str] = []

    async def later() -> None:
        called.append("async")

    def broken() -> None:
        called.append("broken")
        raise OSError("exit")

    runner.on_exit(lambda: called.append("first"))
    runner.on_exit(later)
    runner.on_exit(broken)
    close(runner)
    assert called == ["broken", "async", "first"]
    assert "raised an error" in caplog.text


def test_drain_and_quiesce_after_close_return_at_once(
    runner: Runner, close: Callable[..., Any]
) -> None:
    pause = runner.pause("test")
    close(runner)
    report: list[Any] = []
    asking = threading.Thread(
        target=lambda: report.extend((runner.drain(), pause.quiesced())), daemon=True
    )
    asking.start()
    asking.join(PATIENCE_S)
    assert len(report) == 2
