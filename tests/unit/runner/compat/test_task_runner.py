from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rollscope.errors import SettingError
from rollscope.runner.compat import (
    DEFAULT_POLL_SLEEP_TIME,
    DEFAULT_POLL_WAIT_TIME,
    AsyncTaskRunner,
    TaskQueueFullError,
    TimedResult,
    register_loop_cleanup,
    unregister_loop_cleanup,
)

PATIENCE_S = 20.0


@pytest.fixture
def make() -> Iterator[Callable[..., AsyncTaskRunner[Any]]]:
    """Make runners that are initialized, and destroyed when the test is over."""
    made: list[AsyncTaskRunner[Any]] = []

    def make(size: int = 100, **settings: Any) -> AsyncTaskRunner[Any]:
        runner: AsyncTaskRunner[Any] = AsyncTaskRunner(size, **settings)
        runner.initialize()
        made.append(runner)
        return runner

    yield make
    for runner in made:
        runner.destroy()


@pytest.fixture
def runner(make: Callable[..., AsyncTaskRunner[Any]]) -> AsyncTaskRunner[Any]:
    return make()


class Held:
    """Coroutines that wait until they are let go, from any thread."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        self._go = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_open = False

    async def __call__(self, value: Any = None) -> Any:
        self._loop = asyncio.get_running_loop()
        self.started.release()
        if not self._is_open:
            await self._go.wait()
        return value

    def let_go(self) -> None:
        self._is_open = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._go.set)

    def await_starts(self, count: int) -> None:
        for _ in range(count):
            assert self.started.acquire(timeout=PATIENCE_S)


async def echo(value: Any = None, **more: Any) -> Any:
    return (value, more) if more else value


async def fail() -> None:
    raise KeyError("broken on purpose")


async def give_up() -> None:
    raise asyncio.CancelledError


def kill(runner: AsyncTaskRunner[Any]) -> None:
    """Stop the loop behind the runner's back, as a fault of its own would."""
    assert runner._runner is not None
    loop, thread = runner._runner._kernel.loop, runner.thread
    assert loop is not None
    assert thread is not None
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE_S)


# --- making and starting -------------------------------------------------------------------------


def test_making_one_starts_nothing_and_keeps_what_was_given() -> None:
    before = threading.active_count()
    runner = AsyncTaskRunner[int](3, 0.1, 0.2, True)

    assert threading.active_count() == before
    assert runner.thread is None
    assert runner.get_queue_sizes() == (0, 0)
    given = (runner.max_queue_size, runner.poll_wait_time, runner.poll_sleep_time)
    assert given == (3, 0.1, 0.2)
    assert runner.enable_tracing
    defaults = AsyncTaskRunner[int](3)
    assert defaults.poll_wait_time == DEFAULT_POLL_WAIT_TIME == 0.05
    assert defaults.poll_sleep_time == DEFAULT_POLL_SLEEP_TIME == 0.5
    assert not defaults.enable_tracing


def test_initialize_returns_with_the_loop_ready_and_clears_both_flags() -> None:
    runner = AsyncTaskRunner[int](3)
    runner.exiting.set()
    runner.paused.set()
    log = logging.getLogger("tests.compat")
    runner.initialize(log)

    assert runner.thread is not None
    assert runner.thread.is_alive()
    assert runner.logger is log
    assert not runner.exiting.is_set()
    assert not runner.paused.is_set()
    assert runner.get_queue_sizes() == (0, 0)
    runner.destroy()


def test_a_second_initialize_warns_and_starts_no_second_loop(
    runner: AsyncTaskRunner[Any], caplog: pytest.LogCaptureFixture
) -> None:
    thread = runner.thread
    runner.initialize()

    assert runner.thread is thread
    assert "runs already" in caplog.text


def test_it_works_without_uvloop(
    monkeypatch: pytest.MonkeyPatch, make: Callable[..., AsyncTaskRunner[Any]]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvloop", None)
    runner = make()
    runner.submit(echo, 1, task_id=0)

    assert runner.wait(1, PATIENCE_S) == [1]


def test_after_destroy_it_starts_clean(make: Callable[..., AsyncTaskRunner[Any]]) -> None:
    runner, ran = make(), []

    async def note() -> None:
        ran.append(1)

    runner.pause()
    runner.submit(note, task_id=0)
    assert runner.destroy() == [0]
    runner.initialize()
    runner.submit(echo, "new", task_id=0)

    assert runner.wait(1, PATIENCE_S) == ["new"]
    assert not ran
    assert runner.get_queue_sizes() == (0, 0)


def test_a_dead_thread_is_told_by_every_call_and_initialize_heals_it(
    make: Callable[..., AsyncTaskRunner[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    runner, held = make(), Held()
    runner.submit(held, task_id=0)
    held.await_starts(1)
    runner._check_thread_health()
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            runner.wait(2)
        except RuntimeError as error:
            caught.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    kill(runner)
    waiting.join(PATIENCE_S)

    died = "AsyncTaskRunner thread has died due to an exception. No further tasks can be processed."
    for call in (
        runner._check_thread_health,
        lambda: runner.submit(echo, task_id=1),
        lambda: runner.wait(1),
        lambda: runner.wait_for_task(0),
    ):
        with pytest.raises(RuntimeError, match=died) as told:
            call()
        assert told.value.__cause__ is not None
    assert [str(error) for error in caught] == [died]
    runner.initialize()
    runner._check_thread_health()
    runner.submit(echo, "well", task_id=0)
    assert runner.wait(1, PATIENCE_S) == ["well"]


# --- submitting ----------------------------------------------------------------------------------


def test_submit_gives_the_id_and_hands_arguments_on(runner: AsyncTaskRunner[Any]) -> None:
    assert runner.submit(echo, 5, task_id=17, x=2) == 17
    assert runner.wait(1, PATIENCE_S, with_timing=False) == [(5, {"x": 2})]


def test_an_id_is_required_by_default(runner: AsyncTaskRunner[Any]) -> None:
    with pytest.raises(TypeError, match="task_id"):
        runner.submit(echo, 1)


def test_submit_is_refused_before_initialize_and_after_destroy() -> None:
    runner = AsyncTaskRunner[int](3)
    with pytest.raises(RuntimeError, match="initialize"):
        runner.submit(echo, task_id=0)
    runner.initialize()
    runner.destroy()
    with pytest.raises(RuntimeError, match="exiting"):
        runner.submit(echo, task_id=0)


def test_a_duplicate_id_raises_to_its_caller_only(runner: AsyncTaskRunner[Any]) -> None:
    held = Held()
    runner.submit(held, "first", task_id=1)
    with pytest.raises(ValueError, match=r"Duplicate task_id: 1\. "):
        runner.submit(echo, task_id=1)
    held.let_go()

    assert runner.wait(1, PATIENCE_S) == ["first"]
    assert runner.get_queue_sizes() == (0, 0)


def test_an_id_can_be_used_again_once_its_result_is_there(runner: AsyncTaskRunner[Any]) -> None:
    runner.submit(echo, "one", task_id=1)
    with pytest.raises(TimeoutError):  # leaves the result where it is
        runner.wait(2, 0.05)
    runner.submit(echo, "two", task_id=1)

    assert runner.wait_for_task(1, PATIENCE_S) == "one"
    assert runner.wait_for_task(1, PATIENCE_S) == "two"


def test_with_room_for_two_the_third_submit_always_fails_and_its_id_stays_free(
    make: Callable[..., AsyncTaskRunner[Any]],
) -> None:
    runner, held = make(2), Held()
    runner.submit(held, 1, task_id=1)
    runner.submit(held, 2, task_id=2)
    held.await_starts(2)
    with pytest.raises(TaskQueueFullError, match=r"Input queue full\. "):
        runner.submit(held, 3, task_id=3)
    with pytest.raises(ValueError, match="Duplicate"):  # asked before room is
        runner.submit(held, 2, task_id=2)
    held.let_go()

    assert sorted(runner.wait(2, PATIENCE_S)) == [1, 2]
    runner.submit(echo, 3, task_id=3)
    assert runner.wait(1, PATIENCE_S) == [3]


def test_the_bound_can_be_that_of_tasks_not_started(
    make: Callable[..., AsyncTaskRunner[Any]],
) -> None:
    runner, held = make(2, queue_bound="queued"), Held()
    for number in range(2):
        runner.submit(held, number, task_id=number)
    held.await_starts(2)
    runner.pause()
    for number in range(2, 4):
        runner.submit(held, number, task_id=number)
    with pytest.raises(TaskQueueFullError):
        runner.submit(held, 4, task_id=4)
    assert runner.input_queue.full()
    runner.resume()
    held.let_go()

    assert sorted(runner.wait(4, PATIENCE_S)) == [0, 1, 2, 3]


def test_results_beyond_the_bound_hold_admission_and_lose_nothing(
    make: Callable[..., AsyncTaskRunner[Any]],
) -> None:
    runner = make(2)
    for number in range(20):
        while True:
            try:
                runner.submit(echo, number, task_id=number)
                break
            except TaskQueueFullError:
                assert runner.output_queue.qsize() <= 3
                runner._check_thread_health()
                assert len(runner.wait(1, PATIENCE_S)) == 1
    left = sum(runner.get_queue_sizes())

    assert len(runner.wait(left, PATIENCE_S)) == left


# --- results -------------------------------------------------------------------------------------


def test_timed_results_have_their_id_and_the_start_of_the_coroutine(
    runner: AsyncTaskRunner[Any],
) -> None:
    runner.pause()
    runner.submit(echo, "x", task_id=9)
    resumed_ns = time.monotonic_ns()
    runner.resume()
    (result,) = runner.wait(1, PATIENCE_S, with_timing=True)

    assert isinstance(result, TimedResult)
    assert (result.data, result.task_id) == ("x", 9)
    assert resumed_ns <= result.create_time <= time.monotonic_ns()


def test_waiting_for_none_gives_none(runner: AsyncTaskRunner[Any]) -> None:
    assert runner.wait(0) == []
    assert runner.wait(-1) == []


def test_a_wait_that_times_out_leaves_its_results_to_the_next(
    runner: AsyncTaskRunner[Any],
) -> None:
    held = Held()
    for number in range(3):
        runner.submit(echo, number, task_id=number)
    runner.submit(held, 3, task_id=3)
    held.await_starts(1)
    assert len(runner.wait(1, PATIENCE_S)) == 1
    began = time.monotonic()
    with pytest.raises(
        TimeoutError, match=r"Timed out waiting for 3 results, only received [012]\."
    ):
        runner.wait(3, 0.1)
    assert time.monotonic() - began >= 0.1
    held.let_go()

    assert len(runner.wait(3, PATIENCE_S)) == 3


def test_a_timeout_of_zero_takes_what_is_there(runner: AsyncTaskRunner[Any]) -> None:
    with pytest.raises(TimeoutError, match="only received 0"):
        runner.wait(1, 0)
    runner.submit(echo, 1, task_id=1)
    runner.wait(1, PATIENCE_S)
    runner.submit(echo, 2, task_id=2)
    with pytest.raises(TimeoutError):
        runner.wait(2, 0.05)
    assert runner.wait(1, timeout=0) == [2]


def test_equal_tasks_do_not_come_back_in_order_of_submit(runner: AsyncTaskRunner[Any]) -> None:
    orders = []
    for round_ in range(3):
        for number in range(20):
            runner.submit(echo, number, task_id=round_ * 20 + number)
        orders.append(runner.wait(20, PATIENCE_S))

    assert all(sorted(order) == list(range(20)) for order in orders)
    assert any(order != list(range(20)) for order in orders)


def test_results_can_be_had_in_order_of_arrival(make: Callable[..., AsyncTaskRunner[Any]]) -> None:
    runner = make(order="arrival")
    for number in range(20):
        runner.submit(echo, number, task_id=number)

    assert runner.wait(20, PATIENCE_S) == list(range(20))


def test_there_is_no_limit_on_what_runs_at_once(make: Callable[..., AsyncTaskRunner[Any]]) -> None:
    runner, held = make(200), Held()
    for number in range(200):
        runner.submit(held, number, task_id=number)
    held.await_starts(200)
    held.let_go()

    assert sorted(runner.wait(200, PATIENCE_S)) == list(range(200))


def test_failed_and_cancelled_tasks_give_none_and_end_nothing(
    runner: AsyncTaskRunner[Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def leave() -> None:
        raise SystemExit(3)

    def plain() -> int:
        return 1

    wrong: list[Any] = [fail, give_up, leave, plain, lambda: 1 / 0]
    for number, fn in enumerate(wrong):
        runner.submit(fn, task_id=number)
    runner.submit(echo, None, task_id=10)
    runner.submit(echo, too="many", task_id=11)

    results = runner.wait(len(wrong) + 2, PATIENCE_S)
    assert results.count(None) == len(wrong) + 1
    assert (None, {"too": "many"}) in results
    levels = {record.getMessage(): record.levelno for record in caplog.records}
    assert levels["task 0 failed; its result is None"] == logging.ERROR
    assert levels["task 1 was cancelled; its result is None"] == logging.WARNING
    assert "broken on purpose" in caplog.text
    runner._check_thread_health()
    runner.submit(echo, "later", task_id=12)
    assert runner.wait(1, PATIENCE_S) == ["later"]


def test_one_task_can_be_waited_for_while_others_wait_for_any(
    runner: AsyncTaskRunner[Any],
) -> None:
    held = Held()
    runner.submit(held, "mine", task_id=1)
    held.await_starts(1)
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.append(runner.wait_for_task(1, PATIENCE_S)))
    waiting.start()
    while not runner._runner._kernel.outbox._reserved:  # type: ignore[union-attr]
        time.sleep(0.001)
    runner.submit(echo, "any", task_id=2)

    assert runner.wait(1, PATIENCE_S) == ["any"]
    held.let_go()
    waiting.join(PATIENCE_S)
    assert got == ["mine"]


def test_waiting_for_a_task_that_is_not_there_is_a_value_error(
    runner: AsyncTaskRunner[Any],
) -> None:
    with pytest.raises(ValueError, match="never submitted"):
        runner.wait_for_task(5)
    runner.submit(echo, 1, task_id=5)
    assert runner.wait_for_task(5, PATIENCE_S) == 1
    with pytest.raises(ValueError, match="never submitted"):
        runner.wait_for_task(5)


def test_a_task_that_was_not_there_in_time_can_be_asked_for_again(
    runner: AsyncTaskRunner[Any],
) -> None:
    held = Held()
    runner.submit(held, "late", task_id=1)
    with pytest.raises(TimeoutError):
        runner.wait_for_task(1, 0.02)
    assert runner.wait_for_task(1, 0.02, raise_timeout=False) is None
    held.let_go()

    assert runner.wait_for_task(1, PATIENCE_S) == "late"


def test_callers_that_gave_up_leave_nothing_behind(runner: AsyncTaskRunner[Any]) -> None:
    for number in range(100):
        runner.submit(echo, number, task_id=number)
        with pytest.raises(TimeoutError):
            runner.wait(1_000, 0)
    runner.wait(100, PATIENCE_S)

    assert not runner._ours
    assert not runner._theirs
    assert runner._runner is not None
    assert not runner._runner._kernel.outbox._waiting


# --- pausing -------------------------------------------------------------------------------------


def test_two_pauses_are_ended_by_one_resume(runner: AsyncTaskRunner[Any]) -> None:
    runner.pause()
    runner.pause()
    assert runner.paused.is_set()
    runner.submit(echo, 1, task_id=1)
    with pytest.raises(TimeoutError):
        runner.wait(1, 0.05)
    assert runner.get_queue_sizes() == (1, 0)
    assert runner.get_input_queue_size() == runner.input_queue.qsize() == 1
    assert not runner.input_queue.empty()
    runner.resume()

    assert not runner.paused.is_set()
    assert runner.wait(1, PATIENCE_S) == [1]
    assert runner.input_queue.empty()
    assert runner.input_queue.maxsize == runner.output_queue.maxsize == 100


def test_the_flag_itself_pauses_and_resumes(runner: AsyncTaskRunner[Any]) -> None:
    runner.paused.set()
    runner.submit(echo, 1, task_id=1)
    with pytest.raises(TimeoutError):
        runner.wait(1, 0.05)
    runner.paused.clear()

    assert runner.wait(1, PATIENCE_S) == [1]


def test_what_finishes_during_a_pause_is_delivered_during_it(
    runner: AsyncTaskRunner[Any],
) -> None:
    held = Held()
    runner.submit(held, "during", task_id=1)
    held.await_starts(1)
    runner.pause()
    held.let_go()

    assert runner.wait(1, PATIENCE_S) == ["during"]
    assert runner.paused.is_set()


# --- the end -------------------------------------------------------------------------------------


def test_destroy_tells_what_was_not_finished_and_keeps_what_was(
    make: Callable[..., AsyncTaskRunner[Any]],
) -> None:
    runner, held = make(), Held()
    runner.submit(echo, "done", task_id=1)
    runner.submit(held, task_id=2)
    held.await_starts(1)
    with pytest.raises(TimeoutError):
        runner.wait(2, 0.05)
    runner.pause()
    runner.submit(echo, task_id=3)

    assert sorted(runner.destroy()) == [2, 3]
    assert runner.destroy() == []
    assert runner.exiting.is_set()
    assert not runner.paused.is_set()
    assert runner.get_queue_sizes() == (0, 1)
    exiting = r"AsyncTaskRunner is exiting, cannot wait for results\."
    with pytest.raises(RuntimeError, match=exiting):
        runner.wait(2)
    assert runner.wait(1) == ["done"]
    with pytest.raises(RuntimeError, match=exiting):
        runner.wait(1, PATIENCE_S)


def test_destroy_releases_those_who_wait(make: Callable[..., AsyncTaskRunner[Any]]) -> None:
    runner, held = make(), Held()
    runner.submit(held, task_id=1)
    held.await_starts(1)
    caught: list[str] = []

    def wait(wait: Callable[[], Any]) -> None:
        try:
            wait()
        except RuntimeError as error:
            caught.append(str(error))

    calls = (lambda: runner.wait(1), lambda: runner.wait_for_task(1))
    threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    kernel = runner._runner._kernel  # type: ignore[union-attr]
    while kernel.outbox.wanted() < 2:
        time.sleep(0.001)
    runner.destroy()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert caught == ["AsyncTaskRunner is exiting, cannot wait for results."] * 2


def test_destroy_before_initialize_does_no_harm() -> None:
    runner = AsyncTaskRunner[int](2)
    assert runner.destroy() == []
    assert runner.exiting.is_set()


def test_a_thread_that_does_not_end_is_warned_of(
    make: Callable[..., AsyncTaskRunner[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    runner, go = make(), threading.Event()
    runner.register_loop_cleanup(lambda: go.wait(PATIENCE_S))
    runner.destroy(timeout=0.2)

    assert "still runs" in caplog.text
    go.set()
    assert runner.thread is not None
    runner.thread.join(PATIENCE_S)


def test_callbacks_run_last_in_first_out_after_tasks_were_cancelled(
    make: Callable[..., AsyncTaskRunner[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    runner, held, seen = make(), Held(), list[str]()

    async def work() -> None:
        try:
            await held()
        finally:
            seen.append("cancelled")

    async def last() -> None:
        seen.append("async")

    def broken() -> None:
        raise OSError("cannot be closed")

    def taken_back() -> None:
        seen.append("never")

    async def register() -> None:
        register_loop_cleanup(lambda: seen.append("from inside"))
        register_loop_cleanup(taken_back)
        unregister_loop_cleanup(taken_back)

    async def hook() -> None:
        seen.append("hook")

    runner.register_loop_cleanup(lambda: seen.append("sync"))
    runner.register_loop_cleanup(last, loop=None)
    runner.register_loop_cleanup(broken)
    runner.register_loop_cleanup(taken_back)
    runner.unregister_loop_cleanup(taken_back)
    runner.register_shutdown_hook(hook)
    runner.submit(register, task_id=0)
    runner.wait(1, PATIENCE_S)
    runner.submit(work, task_id=1)
    held.await_starts(1)
    runner.destroy()

    assert seen == ["hook", "cancelled", "from inside", "async", "sync"]
    assert "cannot be closed" in caplog.text
    runner.register_shutdown_hook(hook)
    assert "will not be called" in caplog.text


def test_a_callback_for_somebody_elses_loop_is_refused() -> None:
    async def register() -> None:
        register_loop_cleanup(print)

    with pytest.raises(RuntimeError, match="does not belong"):
        asyncio.run(register())


def test_tracing_logs_start_and_end_with_the_running_count(
    make: Callable[..., AsyncTaskRunner[Any]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rollscope.runner")
    runner = make(enable_tracing=True)
    runner.submit(echo, task_id=4)
    runner.wait(1, PATIENCE_S)

    assert "task 4 started, 1 running" in caplog.text
    assert "task 4 ended, 1 running" in caplog.text


# --- the older contract --------------------------------------------------------------------------


def test_the_older_contract_counts_ids_and_passes_the_keyword_on(
    make: Callable[..., AsyncTaskRunner[Any]],
) -> None:
    runner = make(contract="pr473")
    assert runner.submit(echo, 1, task_id="mine") is None
    assert runner.submit(echo, 2) is None
    results = runner.wait(2, PATIENCE_S, with_timing=True)

    assert {result.task_id: result.data for result in results} == {
        0: (1, {"task_id": "mine"}),
        1: 2,
    }


def test_the_older_contract_gives_the_oldest_shuffled(
    make: Callable[..., AsyncTaskRunner[Any]],
) -> None:
    runner, held = make(contract="pr473"), Held()
    for number in range(20):
        runner.submit(held, number)
    held.await_starts(20)
    for number in range(20, 30):
        runner.submit(echo, number)
    with pytest.raises(TimeoutError, match="only received 10"):
        runner.wait(30, 0.2)
    held.let_go()
    with pytest.raises(TimeoutError):
        runner.wait(31, 0.2)
    first = runner.wait(20, PATIENCE_S)

    assert sorted(first) == list(range(20))
    assert first != list(range(20))


def test_in_the_older_contract_zero_means_no_limit(
    make: Callable[..., AsyncTaskRunner[Any]],
) -> None:
    runner, held = make(contract="pr473"), Held()
    runner.submit(held, "came")
    threading.Timer(0.05, held.let_go).start()

    assert runner.wait(1, timeout=0) == ["came"]


def test_each_keyword_can_be_set_alone(make: Callable[..., AsyncTaskRunner[Any]]) -> None:
    runner = make(task_ids="auto", order="arrival")
    runner.submit(echo, 1)
    with pytest.raises(TimeoutError):
        runner.wait(2, 0)
    assert runner.wait(1, PATIENCE_S) == [1]


@pytest.mark.parametrize(
    "settings",
    [{"contract": "2.0"}, {"order": "random"}, {"task_ids": "some"}, {"queue_bound": "all"}],
)
def test_what_a_keyword_cannot_be_is_told_at_once(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="it can be"):
        AsyncTaskRunner[int](1, **settings)


def test_a_batch_is_submitted_with_counted_ids(runner: AsyncTaskRunner[Any]) -> None:
    runner.submit(echo, "given", task_id=3)
    ids = runner.submit_batch([(echo, (1,), {}), (echo, (2,), {"x": 3})])

    assert ids == [4, 5]
    assert sorted(map(str, runner.wait(3, PATIENCE_S))) == ["(2, {'x': 3})", "1", "given"]
