"""Outcomes are handed over once, to those who asked, in the order asked for."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import OutcomeTaken, RunnerClosed, SettingError, UnknownTask, WaitTimeout
from tests.conformance import tasks
from tests.conformance.backends import PATIENCE_S, Signals, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rollscope.runner import Outcome, Runner


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def _finish(runner: Runner, values: range) -> None:
    """Have tasks end one after the other."""
    for value in values:
        runner.submit(tasks.give, value)
        eventually(lambda: runner.ledger().unfinished == 0, "it has ended")


def _until_left(runner: Runner, left: int) -> None:
    eventually(lambda: runner.ledger().unfinished == left, f"{left} are left")


def _values(outcomes: list[Outcome]) -> list[Any]:
    return [outcome.value for outcome in outcomes]


def test_a_wait_that_times_out_leaves_what_is_ready_to_the_next(runner: Runner) -> None:
    _finish(runner, range(2))
    began = time.monotonic()
    with pytest.raises(WaitTimeout) as told:
        runner.wait(3, timeout_s=0.05)
    assert time.monotonic() - began >= 0.05
    assert isinstance(told.value, TimeoutError)
    assert (told.value.wanted, told.value.ready) == (3, 2)
    _finish(runner, range(2, 3))
    assert _values(runner.wait(3, timeout_s=0)) == [0, 1, 2]


def test_a_time_limit_of_nothing_takes_what_is_there(runner: Runner) -> None:
    with pytest.raises(WaitTimeout):
        runner.wait(1, timeout_s=0)
    _finish(runner, range(2))
    assert _values(runner.wait(2, timeout_s=0)) == [0, 1]
    assert runner.wait(0) == []


def test_no_wait_ends_before_its_time(runner: Runner) -> None:
    async def wait_some() -> list[float]:
        early = []
        for number in range(20):
            timeout_s = 0.0051 + number * 0.00037
            began = time.monotonic()
            with pytest.raises(WaitTimeout):
                await runner.await_outcomes(1, timeout_s=timeout_s)
            early.append(timeout_s - (time.monotonic() - began))
        return early

    uvloop = pytest.importorskip("uvloop")
    for factory in (asyncio.new_event_loop, uvloop.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as loop:
            assert max(loop.run(wait_some())) <= 0


def test_an_order_that_there_is_not_is_refused(runner: Runner) -> None:
    runner.submit(tasks.give, 1)
    with pytest.raises(SettingError, match="arrival, started, submitted"):
        runner.wait(1, order="latest")  # type: ignore[arg-type]  # as somebody may try
    assert _values(runner.wait(1, PATIENCE_S)) == [1]


def test_orders(make_runner: Callable[..., Runner], signals: Signals) -> None:
    def fill(runner: Runner, turn: int) -> None:
        for name in ("b", "a", "c"):  # submitted and started b a c, finished a b c
            on = f"{turn}{name}on"
            runner.submit(tasks.hold, signals.path(on), signals.path(f"{turn}{name}"), name)
            signals.wait(on)
        for left, name in ((2, "a"), (1, "b"), (0, "c")):
            signals.send(f"{turn}{name}")
            _until_left(runner, left)

    runner = make_runner(seed=1)
    fill(runner, 0)
    assert _values(runner.wait(3, order="arrival")) == ["a", "b", "c"]
    fill(runner, 1)
    assert _values(runner.wait(3, order="started")) == ["b", "a", "c"]
    fill(runner, 2)
    assert _values(runner.wait(3, order="submitted")) == ["b", "a", "c"]
    fill(runner, 3)
    assert sorted(_values(runner.wait(2, order="oldest_shuffled"))) == ["a", "b"]
    assert _values(runner.wait(1)) == ["c"]
    fill(runner, 4)
    assert sorted(_values(runner.wait(2, order="shuffled"))) == ["a", "b"]


def test_shuffles_mix_and_are_repeated_by_their_seed(
    make_runner: Callable[..., Runner],
) -> None:
    def shuffled(seed: int) -> list[int]:
        runner = make_runner(seed=seed)
        for number in range(20):
            runner.submit(tasks.give, number)
        eventually(lambda: runner.ledger().outbox == 20, "all have ended")
        arrived = {outcome.value: place for place, outcome in enumerate(_peek(runner))}
        return [arrived[value] for value in _values(runner.wait(20, order="shuffled"))]

    first = shuffled(5)
    assert first != list(range(20))
    assert sorted(first) == list(range(20))
    assert shuffled(5) == first


def _peek(runner: Runner) -> list[Outcome]:
    """See outcomes in order of arrival, without taking any."""
    seen: list[Outcome] = []

    def look(outcome: Outcome) -> bool:
        seen.append(outcome)
        return False

    with pytest.raises(WaitTimeout):
        runner.wait(1, timeout_s=0, where=look)
    return seen[: runner.ledger().outbox]


def test_a_wait_for_one_task_and_a_general_wait_each_get_their_own(
    runner: Runner, signals: Signals, pool: ThreadPoolExecutor
) -> None:
    mine = runner.submit(tasks.hold, signals.path("on1"), signals.path("go"), "mine")
    reserved = pool.submit(mine.result, PATIENCE_S)
    general = pool.submit(runner.wait, 2, PATIENCE_S)
    signals.wait("on1")
    eventually(lambda: not reserved.done() and not general.done(), "both wait")
    others = [
        runner.submit(tasks.hold, signals.path(f"on{n}"), signals.path("go"), n) for n in (2, 3)
    ]
    signals.send("go")
    assert reserved.result(PATIENCE_S).value == "mine"
    assert {one.id for one in general.result(PATIENCE_S)} == {one.id for one in others}


def test_a_reserved_outcome_is_skipped_and_free_again_when_given_up(
    runner: Runner, signals: Signals, pool: ThreadPoolExecutor
) -> None:
    held = runner.submit(tasks.hold, signals.path("on"), signals.path("go"), "held")
    with pytest.raises(WaitTimeout):
        held.result(0.01)
    signals.send("go")
    assert _values(runner.wait(1, PATIENCE_S)) == ["held"]


def test_unknown_and_taken_are_told_apart(runner: Runner) -> None:
    handle = runner.submit(tasks.give, 1)
    with pytest.raises(UnknownTask):
        runner.wait_for(handle.id + 1, 0)
    assert handle.result(PATIENCE_S).value == 1
    with pytest.raises(OutcomeTaken):
        handle.result(0)
    assert issubclass(UnknownTask, LookupError)
    assert issubclass(OutcomeTaken, LookupError)


def test_tasks_can_be_asked_for_in_any_order(runner: Runner) -> None:
    handles = [runner.submit(tasks.give, number) for number in range(10)]
    for number in (3, 9, 0, 5):
        assert handles[number].result(PATIENCE_S).value == number
    rest = {outcome.value for outcome in runner.wait(6, PATIENCE_S)}
    assert rest == {1, 2, 4, 6, 7, 8}


def test_only_chosen_outcomes_are_taken(runner: Runner) -> None:
    _finish(runner, range(6))
    assert _values(runner.wait(2, where=lambda one: one.value % 2 == 1)) == [1, 3]
    with pytest.raises(WaitTimeout) as told:
        runner.wait(2, timeout_s=0, where=lambda one: one.value % 2 == 1)
    assert told.value.ready == 1
    assert _values(runner.take_ready()) == [0, 2, 4, 5]


def test_those_who_want_others_do_not_hold_each_other_up(
    runner: Runner, pool: ThreadPoolExecutor
) -> None:
    evals = pool.submit(runner.wait, 1, PATIENCE_S, "arrival", lambda one: one.tier == "eval")
    eventually(lambda: runner._kernel.outbox.wanted() == 1, "it waits")
    runner.submit(tasks.give, "train")
    trains = runner.wait(1, PATIENCE_S / 4, where=lambda one: one.tier == "train")
    assert _values(trains) == ["train"]
    runner.options(tier="eval").submit(tasks.give, "eval")
    assert _values(evals.result(PATIENCE_S)) == ["eval"]


def test_a_choice_that_raises_hurts_only_the_one_who_made_it(
    runner: Runner, pool: ThreadPoolExecutor
) -> None:
    def broken(outcome: Outcome) -> bool:
        raise ZeroDivisionError

    waiting = pool.submit(runner.wait, 1, PATIENCE_S, "arrival", broken)
    eventually(lambda: runner._kernel.outbox.wanted() == 1, "it waits")
    runner.submit(tasks.give, 1)
    with pytest.raises(ZeroDivisionError):
        waiting.result(PATIENCE_S)
    assert _values(runner.wait(1, PATIENCE_S)) == [1]
    _finish(runner, range(2, 3))
    with pytest.raises(ZeroDivisionError):
        runner.wait(1, PATIENCE_S, where=broken)
    assert _values(runner.wait(1, PATIENCE_S)) == [2]
    assert runner.health().state == "running"


def test_a_choice_that_raises_does_not_hurt_those_behind_it(
    runner: Runner, pool: ThreadPoolExecutor
) -> None:
    def broken(outcome: Outcome) -> bool:
        raise ZeroDivisionError

    _finish(runner, range(1))
    waiting = pool.submit(runner.wait, 2, PATIENCE_S, "arrival", broken)
    eventually(lambda: runner._kernel.outbox.wanted() == 2, "it waits for more than is there")
    assert _values(runner.wait(1, PATIENCE_S)) == [0]
    _finish(runner, range(1, 3))
    with pytest.raises(ZeroDivisionError):
        waiting.result(PATIENCE_S)


def test_general_waiters_are_served_first_come_first_served(
    runner: Runner, pool: ThreadPoolExecutor
) -> None:
    first = pool.submit(runner.wait, 2, PATIENCE_S)
    eventually(lambda: runner._kernel.outbox.wanted() == 2, "the first waits")
    second = pool.submit(runner.wait, 1, PATIENCE_S)
    eventually(lambda: runner._kernel.outbox.wanted() == 3, "the second waits")
    _finish(runner, range(3))
    assert _values(first.result(PATIENCE_S)) == [0, 1]
    assert _values(second.result(PATIENCE_S)) == [2]


def test_take_ready_never_blocks(runner: Runner) -> None:
    assert runner.take_ready() == []
    _finish(runner, range(3))
    assert _values(runner.take_ready(2)) == [0, 1]
    assert _values(runner.take_ready(2)) == [2]


def test_a_handle_can_be_awaited_on_any_loop(runner: Runner) -> None:
    async def main() -> tuple[Any, list[Any]]:
        one = await runner.submit(tasks.give, 1)
        handle = await runner.asubmit(tasks.give, 2)
        others = await runner.await_outcomes(1, PATIENCE_S)
        assert others[0].id == handle.id
        return one.value, _values(others)

    assert asyncio.run(main()) == (1, [2])


def test_a_waiter_that_is_cancelled_takes_nothing(runner: Runner, signals: Signals) -> None:
    async def main() -> None:
        waiting = asyncio.ensure_future(runner.await_outcomes(1))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    _finish(runner, range(1))
    assert _values(runner.wait(1, timeout_s=0)) == [0]


def test_a_coroutine_that_outlived_a_cancel_still_gets_its_timeout(runner: Runner) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(WaitTimeout):
                await runner.await_outcomes(1, timeout_s=0.01)
        return "timed out"

    async def main() -> str:
        task = asyncio.ensure_future(stubborn())
        await asyncio.sleep(0)
        task.cancel()
        return await task

    assert asyncio.run(main()) == "timed out"


def test_outcomes_come_one_by_one_until_the_runner_is_drained(runner: Runner) -> None:
    for number in range(5):
        runner.submit(tasks.give, number)
    seen = []
    for outcome in runner.outcomes():
        seen.append(outcome.value)
        if len(seen) == 3:
            runner.drain(PATIENCE_S)
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_async_outcomes_end_with_the_runner(
    runner: Runner, close: Callable[..., Any], signals: Signals
) -> None:
    async def main() -> list[str]:
        return [str(outcome.reason) async for outcome in runner.outcomes()]

    runner.submit(tasks.give, 1)
    runner.submit(tasks.hold, signals.path("on"), signals.path("never"))
    signals.wait("on")
    with ThreadPoolExecutor(1) as pool:
        collected = pool.submit(asyncio.run, main())
        eventually(lambda: runner.ledger().delivered == 1, "the first was fetched")
        close(runner)
        assert collected.result(PATIENCE_S) == ["accepted", "closed"]


def test_those_who_wait_are_let_go_when_the_runner_is_closed(
    make_runner: Callable[..., Runner], close: Callable[..., Any], pool: ThreadPoolExecutor
) -> None:
    runner = make_runner()
    released: list[float] = []

    def wait(ask: Callable[[], object]) -> None:
        with pytest.raises(RunnerClosed):
            ask()
        released.append(time.monotonic())

    waiting = [
        pool.submit(wait, lambda: runner.wait(3)),
        pool.submit(wait, lambda: asyncio.run(runner.await_outcomes(1))),
        pool.submit(wait, lambda: runner.wait(1, 600.0, where=lambda one: one.is_ok)),
    ]
    eventually(lambda: runner._kernel.outbox.wanted() == 5, "all wait")
    began = time.monotonic()
    close(runner)
    for one in waiting:
        one.result(PATIENCE_S)
    assert max(released) - began < 5  # not their own time limit


def test_who_stands_behind_one_that_wants_too_many_has_what_is_left(
    runner: Runner, pool: ThreadPoolExecutor, signals: Signals
) -> None:
    runner.submit(tasks.hold, signals.path("on"), signals.path("go"), 4)
    signals.wait("on")
    many = pool.submit(runner.wait, 10)
    eventually(lambda: runner._kernel.outbox.wanted() == 10, "the first waits")
    few = pool.submit(runner.wait, 2)
    eventually(lambda: runner._kernel.outbox.wanted() == 12, "the second waits")
    rest = pool.submit(list, runner.outcomes())
    eventually(lambda: runner._kernel.outbox.wanted() == 13, "the third waits")
    for value in range(4):
        runner.submit(tasks.give, value)
    eventually(lambda: runner.ledger().outbox == 4, "the others have finished")
    draining = pool.submit(runner.drain, PATIENCE_S)
    eventually(lambda: runner.health().state == "draining", "no more are taken")
    signals.send("go")
    assert draining.result(PATIENCE_S).is_drained
    with pytest.raises(RunnerClosed):
        many.result(PATIENCE_S)
    assert _values(few.result(PATIENCE_S)) == [0, 1]
    assert _values(rest.result(PATIENCE_S)) == [2, 3, 4]


def test_what_has_finished_stays_readable_after_close(
    runner: Runner, close: Callable[..., Any]
) -> None:
    _finish(runner, range(3))
    handle = runner.submit(tasks.give, 3)
    eventually(lambda: runner.ledger().outbox == 4, "all have ended")
    close(runner)
    assert handle.result(0).value == 3
    assert _values(runner.wait(2, PATIENCE_S)) == [0, 1]
    with pytest.raises(RunnerClosed):
        runner.wait(2)
    with pytest.raises(RunnerClosed):
        runner.wait(1, where=lambda one: False)
    got: list[Any] = []
    readers = [threading.Thread(target=lambda: got.extend(runner.take_ready())) for _ in range(3)]
    for reader in readers:
        reader.start()
        reader.join()
    assert _values(got) == [2]


def test_waits_of_any_thread_work_after_close(
    runner: Runner, close: Callable[..., Any], pool: ThreadPoolExecutor
) -> None:
    _finish(runner, range(6))
    close(runner)
    got: list[Any] = []

    def read() -> None:
        try:
            got.extend(runner.wait(1, timeout_s=0))
        except Exception as error:
            got.append(error)

    for _ in range(6):  # the number of the loop's thread is soon given to another one
        reader = threading.Thread(target=read)
        reader.start()
        reader.join()
    assert [getattr(one, "value", one) for one in got] == list(range(6))
