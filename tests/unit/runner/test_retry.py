"""What is tried again, when, and for how long."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from itertools import pairwise

import pytest

from rollscope.errors import RunnerBroken
from rollscope.runner import Reason, Retry, Status, ctx
from rollscope.runner.retry import RetryBudget
from rollscope.runner.task import Task, TaskOptions
from tests.unit.runner.virtual import Stage, play

RULES = Retry(rules={OSError: "infra", LookupError: "policy"}, per_task=4, base_s=8.0, cap_s=20.0)


async def fail_until(attempt: int) -> int:
    if (ctx.attempt or 0) < attempt:
        raise OSError("flaky")
    return ctx.attempt or 0


async def fail(kind: type[Exception]) -> None:
    raise kind("flaky")


def test_only_failures_of_the_infrastructure_are_tried_again() -> None:
    async def main(stage: Stage) -> list[tuple[int, str]]:
        kinds = (ConnectionError, KeyError, ValueError)  # of OSError, of LookupError, unknown
        outcomes = [await stage.runner.submit(fail, kind) for kind in kinds]
        return [(one.attempts, one.error.kind if one.error else "") for one in outcomes]

    assert play(main, retry=RULES) == [(5, "infra"), (1, "policy"), (1, "data")]


def test_back_offs_grow_up_to_their_cap_with_full_jitter() -> None:
    async def main(stage: Stage) -> list[list[float]]:
        gaps: list[list[float]] = [[], [], [], []]
        for _ in range(100):
            outcome = await stage.runner.submit(fail, OSError)
            for number, (before, after) in enumerate(pairwise(outcome.history)):
                assert before.finished_ns is not None
                assert after.started_ns is not None
                gaps[number].append((after.started_ns - before.finished_ns) / 1e9)
        return gaps

    for gaps, bound in zip(
        play(main, retry=RULES, seed=1, breaker=None), (8, 16, 20, 20), strict=True
    ):
        assert max(gaps) <= bound
        assert max(gaps) > 0.8 * bound
        assert min(gaps) < 0.2 * bound


def test_no_permit_is_held_during_a_back_off() -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        flaky = runner.submit(fail_until, 3)
        await asyncio.sleep(0.001)
        assert (runner.ledger().backoff, runner.ledger().running) == (1, 0)
        assert (await runner.submit(fail_until, 1)).is_ok
        assert stage.passed_s < 0.1
        assert (await flaky).value == 3

    play(main, retry=RULES, concurrency=1, seed=3)


def test_what_is_tried_again_goes_before_what_was_never_started() -> None:
    order: list[str] = []

    async def work(name: str) -> None:
        order.append(name)
        await asyncio.sleep(30.0)
        if name == "flaky" and ctx.attempt == 1:
            raise OSError

    async def main(stage: Stage) -> None:
        for name in ("flaky", "a", "b", "c"):
            stage.runner.submit(work, name)
        await stage.runner.await_outcomes(4)

    play(main, retry=RULES, concurrency=1)
    assert order == ["flaky", "a", "flaky", "b", "c"]


@pytest.mark.parametrize(
    ("retry", "named"),
    [
        (Retry(rules=RULES.rules, per_task=2), "per_task=2"),
        (Retry(rules=RULES.rules, per_task=9, per_group=3), "per_group=3"),
        (Retry(rules=RULES.rules, per_task=9, per_run=4), "per_run=4"),
    ],
)
def test_the_budget_that_is_spent_is_named(retry: Retry, named: str) -> None:
    async def main(stage: Stage) -> None:
        submitter = stage.runner.options(group="g")
        first, second = submitter.submit(fail, OSError), submitter.submit(fail, OSError)
        outcomes = [await first, await second]
        assert {outcome.reason for outcome in outcomes} == {Reason.EXCEPTION}
        assert all(named in outcome.detail for outcome in outcomes)
        retries = sum(outcome.attempts - 1 for outcome in outcomes)
        assert retries == {"per_task=2": 4, "per_group=3": 3, "per_run=4": 4}[named]
        assert stage.runner.stats().retries == retries

    play(main, retry=retry)


def test_a_task_in_back_off_can_be_cancelled() -> None:
    async def main(stage: Stage) -> None:
        handle = stage.runner.submit(fail, OSError)
        await asyncio.sleep(0.001)
        assert stage.runner.ledger().backoff == 1
        assert stage.runner.cancel(handle.id) == 1
        outcome = await handle
        assert (outcome.status, outcome.reason) == (Status.CANCELLED, Reason.REQUESTED)
        assert stage.passed_s < 0.1

    play(main, retry=RULES, seed=3)


def test_each_attempt_begins_in_the_context_of_the_submitter() -> None:
    mood: ContextVar[str] = ContextVar("mood")
    seen: list[str] = []

    async def work() -> None:
        seen.append(mood.get())
        mood.set("changed by the first attempt")
        if ctx.attempt == 1:
            raise OSError

    async def main(stage: Stage) -> None:
        mood.set("calm")
        handle = stage.runner.submit(work)
        mood.set("changed by the submitter")
        assert (await handle).is_ok

    play(main, retry=RULES)
    assert seen == ["calm", "calm"]


def test_failed_attempts_in_a_row_open_the_breaker_though_they_are_tried_again() -> None:
    async def main(stage: Stage) -> None:
        for _ in range(2):
            stage.runner.submit(fail, OSError)
        await asyncio.sleep(60.0)
        assert stage.runner.health().state == "broken"
        assert "OSError: flaky" in (stage.runner.health().error or "")

    play(main, retry=RULES, breaker=5)


def test_who_waits_is_told_that_the_breaker_opened_though_all_are_to_be_tried_again() -> None:
    async def main(stage: Stage) -> None:
        handles = [stage.runner.submit(fail, OSError) for _ in range(5)]
        general = asyncio.ensure_future(stage.runner.await_outcomes(1))
        own = asyncio.ensure_future(stage.runner.await_for(handles[0].id))
        await asyncio.wait([general, own], timeout=60.0)
        assert stage.runner.ledger().backoff == 5
        for waiting in (general, own):
            with pytest.raises(RunnerBroken, match="OSError: flaky"):
                await waiting

    slow = Retry(rules={OSError: "infra"}, per_task=9, base_s=1e6, cap_s=1e6)
    play(main, retry=slow, breaker=5, seed=1)


def test_a_failure_may_be_tried_again_thousands_of_times() -> None:
    budget = RetryBudget(Retry(kinds=frozenset({"infra"}), per_task=5_000, cap_s=30.0), seed=1)
    task = Task(fail, (), {}, None, TaskOptions(), 0)
    delays = [budget.delay_s(task, "infra") for _ in range(5_000)]
    assert all(delay is not None and 0 <= delay <= 30.0 for delay in delays)
    assert budget.delay_s(task, "infra") is None


@pytest.mark.parametrize("by", ["cancel", "close"])
def test_a_task_told_to_end_as_it_fails_gets_no_other_attempt(by: str) -> None:
    async def main(stage: Stage) -> None:
        runner, failed = stage.runner, stage.loop.create_future()

        async def fail_once() -> None:
            if ctx.attempt == 1:
                failed.set_result(None)
                raise OSError("flaky")

        handle = runner.submit(fail_once)
        await failed  # the runner does not know of it yet
        if by == "cancel":
            assert runner.cancel(handle.id) == 1
        else:
            await runner.aclose(10.0)
        (outcome,) = runner.take_ready()
        assert (outcome.status, outcome.attempts) == (Status.CANCELLED, 2)
        assert runner.ledger().unfinished == 0
        assert stage.passed_s < 1.0

    play(main, retry=RULES)


def test_a_task_that_fails_as_a_pause_aborts_it_is_tried_again() -> None:
    async def main(stage: Stage) -> None:
        runner, failed = stage.runner, stage.loop.create_future()

        async def fail_once() -> str:
            if ctx.attempt == 1:
                failed.set_result(None)
                raise OSError("flaky")
            return "again"

        handle = runner.submit(fail_once)
        await failed
        async with runner.pause(mode="abort") as pause:
            assert await pause.aquiesced(1.0)
        assert (await handle).value == "again"

    play(main, retry=RULES)
