"""Time limits, to the moment: in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from rollscope.runner import Reason, Retry, Status, ctx
from tests.unit.runner.virtual import Stage, play

FLAKY = Retry(rules={OSError: "infra"}, per_task=5, base_s=1000.0, cap_s=1000.0)


async def sleep(delay_s: float) -> str:
    await asyncio.sleep(delay_s)
    return "slept"


async def fail() -> None:
    raise OSError("flaky")


async def swallow(until_s: float) -> str:
    loop = asyncio.get_running_loop()
    until = loop.time() + until_s
    while (left_s := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left_s)
        except asyncio.CancelledError:
            continue
    return "too late"


@pytest.mark.parametrize("limit", ["timeout_s", "attempt_timeout_s", "stall_s"])
def test_a_limit_is_met_and_no_earlier(limit: str) -> None:
    async def main(stage: Stage) -> None:
        outcome = await stage.runner.options(**{limit: 100.0}).submit(sleep, 1e6)
        assert outcome.status is Status.TIMEOUT
        assert 100.0 <= stage.passed_s < 126.0  # progress is looked for four times in a limit
        in_time = await stage.runner.options(**{limit: 100.0}).submit(sleep, 99.0)
        assert in_time.is_ok

    play(main)


def test_the_limit_of_a_task_counts_over_attempts_and_back_offs() -> None:
    async def main(stage: Stage) -> None:
        outcome = await stage.runner.options(timeout_s=50.0, retry=FLAKY).submit(fail)
        assert (outcome.status, outcome.reason) == (Status.TIMEOUT, Reason.DEADLINE)
        assert stage.passed_s == pytest.approx(50.0, abs=0.01)
        assert stage.runner.ledger().backoff == 0

    play(main, seed=4)


def test_the_limit_of_a_task_counts_while_its_next_attempt_waits_for_a_place() -> None:
    async def main(stage: Stage) -> None:
        retry = Retry(rules={OSError: "infra"}, per_task=5, base_s=0.1)
        handle = stage.runner.options(timeout_s=50.0, retry=retry).submit(fail)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        stage.runner.pause("test")
        outcome = await handle
        assert outcome.reason is Reason.DEADLINE
        assert stage.passed_s == pytest.approx(50.0, abs=0.01)

    play(main)


def test_only_the_no_progress_clock_stops_during_a_pause() -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        stalled = runner.options(stall_s=10.0).submit(sleep, 1e6)
        limited = runner.options(timeout_s=100.0).submit(sleep, 1e6)
        await asyncio.sleep(5.0)
        runner.pause("test")
        assert (await limited).reason is Reason.DEADLINE
        assert stage.passed_s == pytest.approx(100.0, abs=0.01)
        runner.resume("test")
        assert (await stalled).reason is Reason.NO_PROGRESS
        assert 105.0 <= stage.passed_s < 109.0

    play(main)


def test_checkpoints_and_progress_are_progress() -> None:
    async def get_on(say: str) -> str:
        for number in range(10):
            await asyncio.sleep(9.0)
            if say == "progress":
                ctx.progress()
            else:
                ctx.checkpoint(number)
        return "there"

    async def main(stage: Stage) -> None:
        for say in ("progress", "checkpoint"):
            assert (await stage.runner.options(stall_s=12.0).submit(get_on, say)).is_ok

    play(main)


def test_what_does_not_end_when_told_to_is_given_up_after_its_clean_up_time() -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        outcome = await runner.options(timeout_s=10.0).submit(swallow, 500.0)
        assert (outcome.status, outcome.value) == (Status.TIMEOUT, None)
        assert stage.passed_s == pytest.approx(13.0, abs=0.01)
        assert runner.health().zombies == 1
        await asyncio.sleep(1000.0)
        assert runner.health().zombies == 0
        assert runner.stats().late_results == 1
        assert runner.take_ready() == []

    play(main, cleanup_s=3.0)


def test_what_ends_within_its_clean_up_time_is_not_given_up() -> None:
    async def main(stage: Stage) -> None:
        outcome = await stage.runner.options(timeout_s=10.0).submit(swallow, 12.0)
        assert (outcome.status, outcome.value) == (Status.TIMEOUT, "too late")
        assert stage.runner.health().zombies == 0

    play(main, cleanup_s=3.0)


def test_a_queue_limit_counts_from_submit_to_start_only() -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        first = runner.options(queue_timeout_s=5.0).submit(sleep, 100.0)
        second = runner.options(queue_timeout_s=5.0).submit(sleep, 1.0)
        outcome = await second
        assert (outcome.status, outcome.reason) == (Status.TIMEOUT, Reason.QUEUE_DEADLINE)
        assert stage.passed_s == pytest.approx(5.0, abs=0.01)
        assert (await first).is_ok

    play(main, concurrency=1)


def test_limits_that_did_not_run_out_leave_no_timer() -> None:
    async def main(stage: Stage) -> None:
        submitter = stage.runner.options(timeout_s=1e6, stall_s=1e6, queue_timeout_s=1e6)
        for _ in range(500):
            submitter.submit(sleep, 1.0)
        await stage.runner.await_outcomes(500)
        assert len(stage.runner._kernel.timers) == 0

    play(main)
