"""What tasks start belongs to them, also on a loop that is not the runner's."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rollscope.runner import Retry, Runner, Status
from tests.unit.runner.virtual import Stage, play, turn_until

PATIENCE_S = 20.0


async def give(value: int = 0) -> int:
    return value


async def swallow(until_s: float) -> None:
    """Go on for some time, whoever cancels it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + until_s
    while (left_s := until - loop.time()) > 0:
        try:
            await asyncio.sleep(left_s)
        except asyncio.CancelledError:
            continue


def test_a_submitted_task_is_not_a_child_of_the_one_that_submitted_it() -> None:
    async def main(stage: Stage) -> None:
        async def parent() -> None:
            stage.runner.submit(give, 7)
            await asyncio.sleep(0)
            raise ValueError

        stage.runner.submit(parent)
        outcomes = await stage.runner.await_outcomes(2, 100.0)
        assert sorted(one.status for one in outcomes) == [Status.FAILED, Status.OK]

    play(main)


def test_children_of_children_end_too() -> None:
    ended: list[str] = []
    kept: list[asyncio.Task[None]] = []  # asyncio itself lets the garbage collector have them

    async def leaf() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1.0)
            ended.append("leaf")

    async def branch() -> None:
        kept.append(asyncio.get_running_loop().create_task(leaf()))
        await asyncio.Event().wait()

    async def root() -> None:
        kept.append(asyncio.get_running_loop().create_task(branch()))
        await asyncio.sleep(0.1)
        raise ValueError

    async def main(stage: Stage) -> None:
        assert (await stage.runner.submit(root)).status is Status.FAILED
        assert ended == ["leaf"]

    play(main)


def test_a_child_in_its_own_clean_up_is_not_cancelled_again() -> None:
    cancels = 0
    kept: list[asyncio.Task[None]] = []

    async def child() -> None:
        nonlocal cancels
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancels += 1
            try:
                await asyncio.sleep(2.0)
            except asyncio.CancelledError:
                cancels += 1

    async def work() -> None:
        kept.append(asyncio.get_running_loop().create_task(child()))
        await asyncio.sleep(0)
        raise ValueError

    async def main(stage: Stage) -> None:
        handle = stage.runner.submit(work)
        await asyncio.sleep(1.0)
        stage.runner.cancel(handle.id)
        await handle
        assert stage.passed_s == pytest.approx(2.0, abs=0.01)

    play(main)
    assert cancels == 1


def test_attempts_that_were_given_up_do_not_wait_for_each_other() -> None:
    async def work() -> None:
        asyncio.get_running_loop().create_task(swallow(50.0))
        await asyncio.Event().wait()

    async def main(stage: Stage) -> None:
        runner = stage.runner
        handle = runner.submit(work)
        for _ in range(2):
            await asyncio.sleep(1.0)
            async with runner.pause(mode="abort") as pause:
                assert await pause.aquiesced(100.0)
        await asyncio.sleep(1.0)
        runner.cancel(handle.id)
        outcome = await handle
        assert (outcome.status, outcome.attempts) == (Status.CANCELLED, 3)
        await asyncio.sleep(1000.0)  # by then every child has ended
        assert runner.health().zombies == 0

    play(main, cleanup_s=2.0)


def test_a_failed_attempt_whose_child_does_not_end_does_not_end_the_next_one() -> None:
    attempts = 0

    async def work() -> str:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            asyncio.get_running_loop().create_task(swallow(5.0))
            await asyncio.sleep(0)
            raise ConnectionError
        return "second"

    async def main(stage: Stage) -> None:
        runner = stage.runner
        retry = Retry(rules={ConnectionError: "infra"}, per_task=1, base_s=1e6, cap_s=1e6)
        handle = runner.options(retry=retry).submit(work)
        await asyncio.sleep(4.0)
        assert runner.health().zombies == 1
        await asyncio.sleep(2.0)  # the child has ended, and with it what was given up
        assert runner.health().zombies == 0
        assert runner.stats().late_results == 1
        outcome = await handle
        assert (outcome.value, outcome.attempts) == ("second", 2)
        assert outcome.execution_ns < 4e9

    play(main, cleanup_s=2.0)


def test_survivors_are_counted_and_end_with_the_runner() -> None:
    children: list[asyncio.Task[None]] = []

    async def work() -> None:
        children.append(asyncio.get_running_loop().create_task(asyncio.sleep(1e6)))

    async def main(stage: Stage) -> None:
        assert (await stage.runner.submit(work)).is_ok
        assert not children[0].done()
        assert stage.runner.health().orphans == 1
        (report,) = stage.runner.inspect()
        assert (report.id, report.state, report.children) == (0, "orphan", 0)
        assert [frame.rsplit(" ", 1)[1] for frame in report.frames] == ["sleep"]
        assert (await stage.runner.adrain(10.0)).is_drained
        await asyncio.sleep(0.1)
        assert children[0].cancelled()

    play(main)


def test_tasks_of_the_host_on_the_same_loop_are_left_alone() -> None:
    async def main() -> None:
        theirs = asyncio.ensure_future(asyncio.sleep(1e6))

        async def fail() -> None:
            raise ValueError

        async with Runner(probe_s=None) as runner:
            await runner.submit(fail)
            await runner.options(children="cancel").submit(give)
        await asyncio.sleep(0)
        assert not theirs.done()
        theirs.cancel()

    asyncio.run(main())


def test_tasks_that_end_together_share_a_look_for_their_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []
    all_tasks = asyncio.all_tasks

    def count(loop: Any) -> set[asyncio.Task[Any]]:
        looks.append(1)
        return all_tasks(loop)

    async def parent(ended: list[int], number: int) -> None:
        async def child() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(number)

        kept = asyncio.ensure_future(child())
        await asyncio.Event().wait()
        await kept

    async def main(stage: Stage) -> None:
        ended: list[int] = []
        for number in range(50):
            stage.runner.submit(parent, ended, number)
        await asyncio.sleep(1.0)
        with monkeypatch.context() as patching:
            patching.setattr(asyncio, "all_tasks", count)
            assert stage.runner.cancel(where=lambda task: True) == 50
            await stage.runner.await_outcomes(50)
        assert sorted(ended) == list(range(50))
        assert len(looks) == 2  # of the first, and of all others

    play(main)


def test_what_survivors_start_ends_with_the_runner_too() -> None:
    may_start, started, ended = threading.Event(), threading.Event(), threading.Event()
    kept: list[asyncio.Task[None]] = []

    async def leaf() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def branch() -> None:
        await turn_until(may_start.is_set, 0.001)
        kept.append(asyncio.get_running_loop().create_task(leaf()))

    async def root() -> None:
        kept.append(asyncio.get_running_loop().create_task(branch()))

    with Runner(probe_s=None) as runner:
        assert runner.submit(root).result(PATIENCE_S).is_ok
        may_start.set()
        assert started.wait(PATIENCE_S)
        frames = [frame for one in runner.inspect() for frame in one.frames]
        assert any(frame.endswith("leaf") for frame in frames)
        assert runner.drain(PATIENCE_S).is_drained
        assert ended.wait(PATIENCE_S)
