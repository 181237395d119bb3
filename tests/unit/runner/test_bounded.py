"""Callers that gave up and tasks that are gone leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rollscope.errors import InboxFull, WaitTimeout
from rollscope.runner import Runner
from rollscope.testing import capture
from tests.unit.runner.virtual import Stage, play

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def give(value: int = 0) -> int:
    return value


async def never() -> None:
    await asyncio.Event().wait()


_OURS = ("rollscope", "tests", "asyncio", "_asyncio", "_contextvars", "uvloop")


def _objects() -> Counter[str]:
    """Count what a runner may leave behind; other tests may have started imports of their own."""
    gc.collect()
    # Not by isinstance: an odd object of another test may have a class that raises.
    kinds = (type(one) for one in gc.get_objects() if not issubclass(type(one), type))
    return Counter(
        kind.__name__
        for kind in kinds
        if kind.__module__.startswith(_OURS) or kind.__name__ == "coroutine"
    )


async def _growth(act: Callable[[], Awaitable[object]]) -> dict[str, int]:
    """Do something many times, and give the kinds of objects there are many more of then."""
    for _ in range(50):
        await act()
    before = _objects()
    for _ in range(400):
        await act()
    return {kind: n for kind, n in (_objects() - before).items() if n > 150}


def test_finished_tasks_leave_nothing() -> None:
    async def main(stage: Stage) -> dict[str, int]:
        async def act() -> None:
            await stage.runner.submit(give)
            stage.runner.submit(give)
            await stage.runner.await_outcomes(1)

        return await _growth(act)

    assert play(main, concurrency=2) == {}


def test_callers_that_gave_up_leave_nothing() -> None:
    async def main(stage: Stage) -> dict[str, int]:
        runner = stage.runner
        held = runner.submit(never)
        await asyncio.sleep(0.1)
        pause = runner.pause("test")
        runner.submit(give)

        async def act() -> None:
            for waiting in (
                runner.await_outcomes(1, 0.01),
                runner.await_for(held.id, 0.01),
                runner.options(room_s=0.0).asubmit(give),
            ):
                with pytest.raises((WaitTimeout, InboxFull)):
                    await waiting
            assert not await pause.aquiesced(0.01)

        return await _growth(act)

    assert play(main, inbox=1) == {}


def test_tasks_that_are_cancelled_behind_one_that_waits_leave_nothing() -> None:
    async def main(stage: Stage) -> dict[str, int]:
        runner = stage.runner
        runner.pause("test")
        runner.submit(give)

        async def act() -> None:
            for priority in (0, 1):
                handle = runner.options(priority=priority, queue_timeout_s=1e9).submit(give)
                runner.cancel(handle.id)
                await handle

        return await _growth(act)

    assert play(main) == {}


def test_groups_that_have_ended_leave_no_retry_budget() -> None:
    async def main(stage: Stage) -> dict[str, int]:
        numbers = iter(range(1_000_000))

        async def act() -> None:
            await stage.runner.options(group=f"g{next(numbers)}").submit(give)

        return await _growth(act)

    assert play(main) == {}


def test_recorded_tasks_leave_nothing_either() -> None:
    async def main() -> dict[str, int]:
        async with Runner(probe_s=None) as runner:

            async def act() -> None:
                await runner.submit(give)

            return await _growth(act)

    with capture() as captured:
        kept = asyncio.run(main())
        captured.sink.frames.clear()
    # What is recorded waits for the writer for a moment; nothing of the runner's may.
    assert {
        kind for kind in kept if kind in ("Task", "Outcome", "Handle", "Rare", "Timer")
    } == set()


def test_an_id_may_be_used_again_and_again() -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.pause("test")
        runner.options(priority=1).submit(give)  # keeps the queue in use
        for _ in range(50):
            handle = runner.options(id=7, priority=1).submit(give)  # at the very same time
            assert runner.cancel(7) == 1
            await handle
        assert runner.health().state == "paused"

    play(main)
