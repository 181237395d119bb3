"""A runner starts once, dies without losing anything, and begins again with nothing left over."""

from __future__ import annotations

import asyncio
import gc
import re
import signal
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rollscope.errors import (
    InboxFull,
    MissingExtra,
    RunnerBroken,
    RunnerClosed,
    RunnerError,
    SettingError,
)
from rollscope.runner import ExternalGate, Reason, Runner, Status
from tests.unit.runner.virtual import turn_until

PATIENCE_S = 20.0


async def give(value: Any = None) -> Any:
    return value


async def wait_for_ever(started: threading.Event | None = None) -> None:
    if started is not None:
        started.set()
    await asyncio.Event().wait()


def test_a_second_start_does_nothing_but_warn(caplog: pytest.LogCaptureFixture) -> None:
    with Runner(probe_s=None) as runner:
        before = set(threading.enumerate())
        handle = runner.submit(give, 1)
        runner.start()
        assert set(threading.enumerate()) == before
        assert handle.result(PATIENCE_S).value == 1
        assert caplog.text.count("runs already") == 1


def test_a_start_within_a_life_on_the_callers_loop_leaves_that_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with Runner(probe_s=None) as runner:
            released = asyncio.Event()
            handle = runner.submit(released.wait)
            runner.start()
            assert await runner.__aenter__() is runner
            released.set()
            assert (await handle).value is True

    asyncio.run(main())
    assert caplog.text.count("runs already") == 2


def test_entering_a_started_runner_as_a_coroutine_leaves_its_life_alone() -> None:
    async def main() -> None:
        runner = Runner(probe_s=None).start()
        handle = runner.submit(give, 1)
        async with runner:
            assert (await handle).value == 1
        assert runner.health().state == "closed"

    asyncio.run(main())


def test_a_loop_that_is_not_installed_is_told_to_who_starts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = Runner(probe_s=None, loop="uvloop")
    with monkeypatch.context() as patching:
        patching.setitem(sys.modules, "uvloop", None)
        with pytest.raises(MissingExtra, match=re.escape("rollscope[uvloop]")):
            runner.start()
    with runner:
        assert runner.submit(give, 1).result(PATIENCE_S).value == 1


def test_a_loop_of_no_known_kind_is_refused() -> None:
    with pytest.raises(SettingError, match="auto, asyncio, uvloop"):
        Runner(loop="trio")  # type: ignore[arg-type]


def test_a_closed_runner_begins_a_fresh_life_without_old_inputs() -> None:
    runner = Runner(probe_s=None, concurrency=1)
    started = threading.Event()
    runner.start()
    runner.submit(wait_for_ever, started)
    runner.submit(give, "stale input")
    started.wait(PATIENCE_S)
    runner.close()
    with runner.start():
        assert runner.ledger().submitted == 0
        assert runner.submit(give, "fresh").result(PATIENCE_S).value == "fresh"
        assert runner.take_ready() == []


class _FailingGate(ExternalGate):
    """A gate that cannot cope with a task that has ended: a fault nobody foresees."""

    def finished(self, task: Any, **verdict: bool) -> None:
        raise LookupError("it was never told of this task")


def test_a_fault_while_places_are_freed_gives_each_permit_back_once() -> None:
    shared = ExternalGate()
    with Runner(probe_s=None, gates=[shared, _FailingGate("failing")]) as runner:
        for value in range(3):
            runner.submit(give, value)
        with pytest.raises(RunnerBroken):
            runner.wait(4, PATIENCE_S)
        ledger = runner.ledger()
        assert (ledger.outbox, ledger.unfinished, ledger.adds_up()) == (3, 0, True)
        assert sorted(outcome.id for outcome in runner.take_ready()) == [0, 1, 2]
    assert shared.numbers()["held"] == 0


def test_a_runner_that_was_closed_before_it_started_works() -> None:
    runner = Runner(probe_s=None)
    runner.close()
    with runner:
        for number in range(3):
            assert runner.submit(give, number).result(PATIENCE_S).value == number
        with pytest.raises(TimeoutError):
            runner.wait(1, timeout_s=0.01)


def test_lives_of_a_runner_leave_nothing_behind() -> None:
    gate = ExternalGate()
    runner = Runner(probe_s=None, gates=[gate])
    kernels = []
    for _ in range(3):
        with runner:
            assert runner.submit(give).result(PATIENCE_S).is_ok
            kernels.append(weakref.ref(runner._kernel))
    runner.start()
    gc.collect()
    assert [kernel() for kernel in kernels] == [None, None, None]
    runner.close()


@pytest.mark.parametrize("cause", ["fault", "stopped"])
def test_when_the_loop_dies_every_task_is_lost_and_every_waiter_is_told(
    cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise ZeroDivisionError("a fault of ours")

    runner = Runner(probe_s=None, concurrency=2).start()
    done = runner.submit(give, "done")
    while runner.ledger().outbox == 0:
        time.sleep(0.001)
    started = threading.Event()
    running = runner.submit(wait_for_ever, started)
    started.wait(PATIENCE_S)
    told: list[BaseException] = []

    def wait() -> None:
        try:
            runner.wait(5)
        except RunnerBroken as error:
            told.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while runner._kernel.outbox.wanted() == 0:
        time.sleep(0.001)
    if cause == "fault":
        monkeypatch.setattr(runner._kernel.admission, "choose", fail)
        runner.submit(give, "never admitted")
    else:
        assert runner._kernel.loop is not None
        runner._kernel.loop.call_soon_threadsafe(runner._kernel.loop.stop)
    waiting.join(PATIENCE_S)
    assert len(told) == 1
    if cause == "fault":
        assert isinstance(told[0].__cause__, ZeroDivisionError)
    assert done.result(0).value == "done"  # the outbox stays readable
    lost = running.result(0)
    assert (lost.status, lost.reason) == (Status.FAILED, Reason.LOST)
    assert runner.ledger().adds_up()
    assert runner.ledger().unfinished == 0
    assert runner.health().state == "broken"
    with pytest.raises(RunnerError):
        runner.submit(give)
    runner.close()
    with runner:  # and all its places are free
        assert runner.health().state == "running"
        handles = [runner.submit(give, number) for number in range(5)]
        assert [handle.result(PATIENCE_S).value for handle in handles] == list(range(5))


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("kind", [asyncio.CancelledError, SystemExit, KeyboardInterrupt])
def test_whatever_an_exit_callback_raises_does_not_keep_the_runner(
    kind: type[BaseException], loop: Any, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    async def fail() -> None:
        raise kind

    runner = Runner(probe_s=None, loop=loop).start()
    runner.on_exit(lambda: done.append("next"))
    runner.on_exit(fail)
    runner.close(PATIENCE_S)
    assert done == ["next"]
    assert runner._thread is not None
    assert not runner._thread.is_alive()
    assert "at the end raised an error" in caplog.text


def test_an_exit_callback_may_await_what_it_has_cancelled_on_the_callers_loop() -> None:
    async def main() -> list[str]:
        done: list[str] = []

        async def end() -> None:
            work = asyncio.ensure_future(asyncio.Event().wait())
            work.cancel()
            await work

        async with Runner(probe_s=None) as runner:
            runner.on_exit(lambda: done.append("next"))
            runner.on_exit(end)
        assert runner.health().state == "closed"
        return done

    assert asyncio.run(main()) == ["next"]


def test_a_second_close_beside_the_first_cuts_no_exit_callback() -> None:
    stops: list[None] = []

    class Counting(Runner):
        def _stop_loop(self) -> None:
            super()._stop_loop()
            stops.append(None)

    runner = Counting(probe_s=None).start()
    started, release = threading.Event(), threading.Event()
    done: list[str] = []

    async def held() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(release.wait, PATIENCE_S)

    async def end() -> None:
        await turn_until(lambda: len(stops) == len(closing))
        for _ in range(100):
            await asyncio.sleep(0)
        done.append("all of it")

    runner.on_exit(end)
    runner.submit(held)
    started.wait(PATIENCE_S)
    closing = [threading.Thread(target=runner.close) for _ in range(2)]
    for thread in closing:
        thread.start()
    while len(runner._kernel.on_change) < len(closing):  # both wait for the task
        time.sleep(0)
    release.set()
    for thread in closing:
        thread.join(PATIENCE_S)
    assert done == ["all of it"]


def test_a_runner_with_a_thread_of_its_own_can_be_closed_by_a_coroutine() -> None:
    async def main() -> None:
        runner = Runner(probe_s=None).start()
        handle = runner.submit(wait_for_ever)
        report = await runner.aclose(PATIENCE_S)
        assert report.unfinished == [handle.id]
        assert runner._thread is not None
        assert not runner._thread.is_alive()
        assert runner.wait_for(handle.id).reason is Reason.CLOSED
        assert await runner.aclose() == runner.close()

    asyncio.run(main())


def test_a_close_leaves_a_loop_alone_that_is_ending_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner = Runner(probe_s=None).start()
    started, release = threading.Event(), threading.Event()

    async def use_a_thread() -> None:
        started.set()
        await asyncio.to_thread(release.wait, PATIENCE_S)

    loop = runner._kernel.loop
    assert loop is not None
    runner.submit(use_a_thread)
    started.wait(PATIENCE_S)
    loop.call_soon_threadsafe(loop.stop)
    while runner.health().state != "broken":
        time.sleep(0.001)
    threading.Timer(0.2, release.set).start()  # for which the loop's end waits
    runner.close()
    assert loop.is_closed()
    assert [record.message for record in caplog.records] == ["the runner's loop has died"]


def test_a_close_while_the_loop_is_blocked_lets_go_in_time() -> None:
    runner = Runner(probe_s=None).start()
    blocked, release = threading.Event(), threading.Event()

    async def block() -> None:
        blocked.set()
        release.wait(PATIENCE_S * 3)

    runner.submit(block)
    blocked.wait(PATIENCE_S)
    told: list[BaseException] = []

    def wait() -> None:
        try:
            runner.wait(3)
        except RunnerClosed as error:
            told.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    closing = threading.Thread(target=runner.close, args=(0.2,))
    closing.start()
    try:
        waiting.join(PATIENCE_S)
        closing.join(PATIENCE_S)
        assert not waiting.is_alive()
        assert not closing.is_alive()
        assert len(told) == 1
    finally:
        release.set()
        thread = runner._thread
        if thread is not None:
            thread.join(PATIENCE_S)


def test_blocking_calls_on_the_loop_of_the_runner_raise_at_once() -> None:
    async def ask(runner: Runner) -> list[type[BaseException] | None]:
        raised: list[type[BaseException] | None] = []
        for call in (
            lambda: runner.wait(1),
            lambda: runner.wait_for(0),
            lambda: runner.submit_blocking(give),
            lambda: runner.drain(),
            lambda: runner.pause("x").quiesced(),
            lambda: runner.close(),
        ):
            try:
                call()
                raised.append(None)
            except RunnerError as error:
                raised.append(type(error))
        runner.resume(all=True)
        return raised

    with Runner(probe_s=None) as runner:
        outcome = runner.submit(ask, runner).result(PATIENCE_S)
        assert outcome.value == [RunnerError] * 6
        assert runner.submit(give, 1).result(PATIENCE_S).is_ok

    async def in_loop() -> list[type[BaseException] | None]:
        async with Runner(probe_s=None) as runner:
            return await ask(runner)

    assert asyncio.run(in_loop()) == [RunnerError] * 6


def test_a_runner_on_a_loop_that_has_ended_can_still_be_read() -> None:
    async def main() -> Runner:
        async with Runner(probe_s=None) as runner:
            runner.submit(give, 1)
            await turn_until(lambda: runner.ledger().outbox == 1)
        return runner

    runner = asyncio.run(main())
    runner.set_version(3)
    runner.resume(all=True)
    assert runner.cancel(7) == 0
    assert [outcome.value for outcome in runner.wait(1, timeout_s=0)] == [1]


def test_a_runner_whose_loop_has_ended_without_a_word_hangs_nobody() -> None:
    async def main() -> Runner:
        runner = await Runner(probe_s=None, inbox=2).__aenter__()
        runner.submit(give, "done")
        await turn_until(lambda: runner.ledger().outbox == 1)
        runner.pause()
        runner.submit(give, "never starts")
        runner.submit(give, "neither")
        return runner

    with ThreadPoolExecutor(1) as pool:
        runner = pool.submit(asyncio.run, main()).result(PATIENCE_S)
    with pytest.raises(InboxFull):
        runner.submit_blocking(give)
    assert runner.cancel(1) == 1
    assert not runner.drain().is_drained
    assert runner.pause().quiesced()
    assert runner.close().unfinished == [2]
    ended = [(one.id, one.reason) for one in runner.take_ready()]
    assert ended == [(0, Reason.ACCEPTED), (1, Reason.REQUESTED), (2, Reason.CLOSED)]
    assert runner.ledger().adds_up()


def test_a_drain_whose_call_the_ending_loop_does_not_make_any_more_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = Runner(probe_s=None).start()
    loop, called = runner._kernel.loop, threading.Event()
    assert loop is not None
    runner.submit(wait_for_ever)
    monkeypatch.setattr(runner._kernel, "call_loop", lambda act: called.set())
    draining = threading.Thread(target=runner.drain, daemon=True)
    draining.start()
    assert called.wait(PATIENCE_S)
    loop.call_soon_threadsafe(loop.stop)
    draining.join(PATIENCE_S)
    assert not draining.is_alive()
    runner.close()


def test_a_signal_drains_and_then_reaches_the_handler_from_before() -> None:
    reached = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda number, frame: reached.set())
    try:
        with Runner(probe_s=None) as runner:
            started, release = threading.Event(), threading.Event()

            async def work() -> str:
                started.set()
                await turn_until(release.is_set, 0.001)
                return "finished"

            handle = runner.submit(work)
            started.wait(PATIENCE_S)
            with runner.drain_on_signal(PATIENCE_S, (signal.SIGUSR1,)):
                signal.raise_signal(signal.SIGUSR1)
                while runner.health().state != "draining":
                    time.sleep(0.001)
                assert not reached.is_set()
                release.set()
                assert handle.result(PATIENCE_S).value == "finished"
                while not reached.is_set():  # handlers run in this very thread
                    time.sleep(0.001)
            assert signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_reaches_a_main_thread_that_waits_after_the_budget() -> None:
    class Told(Exception):
        pass

    def tell(number: int, frame: Any) -> None:
        raise Told

    before = signal.signal(signal.SIGUSR1, tell)
    try:
        with Runner(probe_s=None) as runner:
            runner.submit(wait_for_ever)
            with runner.drain_on_signal(0.05, (signal.SIGUSR1,)):
                signal.raise_signal(signal.SIGUSR1)
                with pytest.raises(Told):
                    runner.wait(1, PATIENCE_S)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_that_cannot_be_handled_leaves_the_others_as_they_were() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    signals = (signal.SIGUSR1, signal.SIGKILL)
    with pytest.raises(OSError, match="Invalid"), Runner().drain_on_signal(1.0, signals):
        pass
    assert signal.getsignal(signal.SIGUSR1) is before


def test_a_drain_in_no_known_mode_is_refused_and_ends_nothing() -> None:
    with Runner(probe_s=None) as runner:
        with pytest.raises(SettingError, match="finish, checkpoint, cancel"):
            runner.drain(PATIENCE_S, "finsih")  # type: ignore[arg-type]
        assert runner.submit(give, 1).result(PATIENCE_S).value == 1


def test_importing_the_package_starts_and_installs_nothing(tmp_path: Any) -> None:
    import subprocess
    import sys

    program = (
        "import random, signal, sys, threading\n"
        "before = random.getstate(), threading.active_count(), signal.getsignal(signal.SIGTERM)\n"
        "import rollscope.runner, rollscope.rollout\n"
        "after = random.getstate(), threading.active_count(), signal.getsignal(signal.SIGTERM)\n"
        "assert before == after\n"
        "heavy = {'uvloop', 'torch', 'ray', 'openai', 'numpy', 'duckdb'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
