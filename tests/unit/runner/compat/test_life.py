from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rollscope.runner import CloseReport
from rollscope.runner.compat import AsyncTaskRunner

PATIENCE_S = 20.0


@pytest.fixture
def runner() -> Iterator[AsyncTaskRunner[Any]]:
    runner: AsyncTaskRunner[Any] = AsyncTaskRunner(8)
    runner.initialize()
    yield runner
    runner.destroy()


async def echo(value: Any = None) -> Any:
    return value


def is_over(runner: AsyncTaskRunner[Any]) -> bool:
    assert runner.thread is not None
    return not runner.thread.is_alive()


def cancelled_by_itself() -> None:
    raise asyncio.CancelledError


def leave() -> None:
    raise SystemExit(1)


async def cancel_a_helper() -> None:
    helper = asyncio.ensure_future(asyncio.sleep(PATIENCE_S))
    helper.cancel()
    await helper


async def leave_later() -> None:
    raise SystemExit(1)


@pytest.mark.parametrize("callback", [cancelled_by_itself, leave, cancel_a_helper, leave_later])
def test_what_a_callback_raises_stops_neither_the_others_nor_the_end(
    runner: AsyncTaskRunner[Any], callback: Any, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    async def hook() -> None:
        seen.append("hook")

    runner.register_loop_cleanup(lambda: seen.append("cleanup"))
    runner.register_loop_cleanup(callback)
    runner.register_shutdown_hook(hook)
    runner.register_shutdown_hook(callback)
    runner.destroy()

    assert seen == ["hook", "cleanup"]
    assert is_over(runner)
    assert caplog.text.count("called at the end, raised an error") == 2


def test_hooks_that_take_too_long_are_given_up_together(
    runner: AsyncTaskRunner[Any], caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    async def next_one() -> None:
        seen.append("next")

    async def endless() -> None:
        await asyncio.sleep(PATIENCE_S)

    runner.register_shutdown_hook(next_one)
    runner.register_shutdown_hook(endless)
    runner.destroy(timeout=0.1)

    assert seen == []
    assert "shutdown hooks did not end" in caplog.text


def test_destroy_ends_what_the_exiting_flag_was_set_of(runner: AsyncTaskRunner[Any]) -> None:
    runner.exiting.set()
    assert runner.destroy() == []
    assert is_over(runner)


def test_a_task_cannot_destroy_its_own_runner_and_does_it_no_harm(
    runner: AsyncTaskRunner[Any],
) -> None:
    async def suicide() -> str:
        with pytest.raises(RuntimeError, match="block the loop"):
            runner.destroy()
        return "alive"

    async def hook() -> None:
        """Would be waited for on the loop that has to run it."""

    runner.register_shutdown_hook(hook)
    runner.submit(suicide, task_id=1)
    assert runner.wait(1, PATIENCE_S) == ["alive"]
    assert not runner.exiting.is_set()
    runner.destroy()
    assert is_over(runner)


def test_an_interrupted_destroy_is_finished_by_the_next(
    runner: AsyncTaskRunner[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(timeout_s: float) -> CloseReport:
        raise KeyboardInterrupt

    assert runner._runner is not None
    with monkeypatch.context() as patched:
        patched.setattr(runner._runner, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runner.destroy()
    runner.destroy()
    assert is_over(runner)


def test_destroy_does_not_mind_a_wait_that_has_what_it_has_cut(
    runner: AsyncTaskRunner[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel_runner = runner._runner
    assert kernel_runner is not None
    close, taken = kernel_runner.close, list[Any]()

    def close_and_poll(timeout_s: float) -> CloseReport:
        report = close(timeout_s)
        taken.extend(runner.wait(1, 0))
        return report

    monkeypatch.setattr(kernel_runner, "close", close_and_poll)
    runner.pause()
    runner.submit(echo, task_id=1)
    runner.submit(echo, task_id=2)
    left = runner.destroy()

    assert taken == [None]
    assert len(left) == 1


def test_waiting_for_one_task_tells_that_the_thread_has_died(runner: AsyncTaskRunner[Any]) -> None:
    started = threading.Event()

    async def work() -> None:
        started.set()
        await asyncio.sleep(PATIENCE_S)

    runner.submit(work, task_id=1)
    assert started.wait(PATIENCE_S)
    assert runner._runner is not None
    kernel = runner._runner._kernel
    caught: list[str] = []

    def wait() -> None:
        try:
            runner.wait_for_task(1)
        except RuntimeError as error:
            caught.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not kernel.outbox.wanted():
        pass
    assert kernel.loop is not None
    kernel.loop.call_soon_threadsafe(kernel.loop.stop)
    waiting.join(PATIENCE_S)

    assert len(caught) == 1
    assert "thread has died" in caught[0]


def test_a_task_may_have_any_name(runner: AsyncTaskRunner[Any]) -> None:
    assert runner.submit(echo, "named", task_id="first") == "first"
    assert runner.wait_for_task("first", PATIENCE_S) == "named"  # type: ignore[arg-type]
    assert runner.submit_batch([(echo, ("counted",), {})]) == [0]
    assert runner.wait(1, PATIENCE_S) == ["counted"]
