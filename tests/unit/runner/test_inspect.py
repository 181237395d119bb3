"""A runner says what it is doing, what holds the next task back, and whose code blocks it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

import rollscope as rs
from rollscope.errors import RunnerBroken
from rollscope.instrument.sinks.memory import MemorySink
from rollscope.model.records import MetricRecord
from rollscope.runner import Reason, Retry, Runner, ctx, watcher
from rollscope.testing import capture
from rollscope.testing.capture import Capture
from tests.unit.runner.virtual import Stage, play, turn_until

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 20.0


async def give(value: int = 0) -> int:
    return value


async def innermost(event: asyncio.Event) -> None:
    await event.wait()


async def outer(event: asyncio.Event) -> None:
    await innermost(event)


def _eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_tasks_are_shown_with_where_they_hang() -> None:
    async def main(stage: Stage) -> None:
        runner, event = stage.runner, asyncio.Event()
        older = runner.options(tier="eval", group="g").submit(outer, event)
        await asyncio.sleep(10.0)
        younger = runner.submit(outer, event)
        queued = runner.submit(outer, event)
        await asyncio.sleep(5.0)
        reports = runner.inspect()
        assert [one.id for one in reports] == [older.id, younger.id, queued.id]
        assert [one.state for one in reports] == ["running", "running", "queued"]
        assert [round(one.age_s) for one in reports] == [15, 5, 5]
        assert (reports[0].tier, reports[0].group, reports[0].attempt) == ("eval", "g", 1)
        functions = [frame.rsplit(" ", 1)[1] for frame in reports[0].frames]
        assert functions == ["outer", "innermost", "Event.wait"]
        assert "test_inspect.py:" in reports[0].frames[0]
        assert [one.id for one in runner.inspect(limit=1)] == [older.id]
        assert [one.id for one in runner.inspect(where=lambda one: one.tier == "train")] == [
            younger.id,
            queued.id,
        ]
        event.set()
        await runner.await_outcomes(3)
        assert runner.inspect() == []

    play(main, concurrency=2)


def test_children_attempts_and_progress_are_shown() -> None:
    async def work(event: asyncio.Event) -> None:
        ctx.progress()
        child = asyncio.get_running_loop().create_task(innermost(event))
        await event.wait()
        await child

    async def set_(event: asyncio.Event) -> None:
        event.set()

    with Runner(probe_s=None) as runner:
        event = asyncio.Event()
        handle = runner.submit(work, event)
        _eventually(lambda: [one.children for one in runner.inspect()] == [1])
        (report,) = runner.inspect()
        assert report.since_progress_s is not None
        assert report.since_progress_s >= 0
        runner.submit(set_, event)
        assert handle.result(PATIENCE_S).is_ok


def test_the_phase_that_a_task_is_in_is_shown() -> None:
    async def work(event: asyncio.Event) -> None:
        with rs.phase("generate"):
            await event.wait()

    async def main() -> None:
        async with Runner(probe_s=None) as runner:
            event = asyncio.Event()
            handle = runner.submit(work, event)
            await turn_until(lambda: [one for one in runner.inspect() if one.phase])
            assert runner.inspect()[0].phase == "generate"
            event.set()
            await handle

    with capture():
        asyncio.run(main())


def test_a_phase_that_begins_or_ends_is_progress() -> None:
    async def work() -> str:
        for _ in range(10):
            with rs.phase("generate"):
                await asyncio.sleep(0.1)
        return "got on"

    async def hang() -> None:
        with rs.phase("generate"):
            await asyncio.Event().wait()

    async def main(stage: Stage) -> None:
        moving, stuck = stage.runner.submit(work), stage.runner.submit(hang)
        assert (await stuck).reason is Reason.NO_PROGRESS
        assert (await moving).value == "got on"

    with capture():
        play(main, stall_s=0.4)


@pytest.mark.parametrize("where", ["task", "child"])
def test_user_code_that_blocks_the_loop_is_named_and_no_other_task_is_ended_for_it(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    unseen = threading.Lock()
    unseen.acquire()

    def block_for_half_a_second() -> None:
        unseen.acquire(timeout=PATIENCE_S)  # the runner sees it after a quarter of a second
        time.sleep(0.35)

    async def block_soon() -> int | None:
        await asyncio.sleep(0.05)
        block_for_half_a_second()
        return ctx.id

    async def block_in_child() -> int | None:
        (task_id,) = await asyncio.gather(block_soon())
        return task_id

    async def innocent() -> str:
        await asyncio.sleep(0.4)
        ctx.progress()
        await asyncio.sleep(0.4)
        return "was not stalled"

    def is_caught(runner: Runner, task_id: int) -> bool:
        frames = [frame for one in runner.inspect() if one.id == task_id for frame in one.frames]
        is_named = any("block_for_half_a_second" in frame for frame in frames)
        # What a task shows is where itself hangs.
        return (is_named or where == "child") and runner.health().blocked_for_s > 0

    with capture() as captured, caplog.at_level(logging.WARNING):
        with Runner(probe_s=0.02) as runner:
            other = runner.options(stall_s=0.5).submit(innocent)
            culprit = runner.submit(block_soon if where == "task" else block_in_child)
            # A busy machine may have held the loop up before.
            _eventually(lambda: is_caught(runner, culprit.id))
            assert runner.health().state == "degraded"
            unseen.release()
            assert culprit.result(PATIENCE_S).is_ok
            assert other.result(PATIENCE_S).value == "was not stalled"
            _eventually(lambda: "block_for_half_a_second" in caplog.text)
            _eventually(lambda: runner.health().state == "running")
        told = [one for one in captured.fold().events if one.name == "loop_blocked"]
        (event,) = [one for one in told if one.attrs.get("task") == culprit.id]
        lags = [
            one.max
            for one in captured.records()
            if isinstance(one, MetricRecord) and one.name == "event_loop_lag_seconds"
        ]
    assert max(lag for lag in lags if lag is not None) > 0.3
    assert "block_for_half_a_second" in str(event.attrs["culprit"])
    assert 0.3 < float(str(event.attrs["blocked_s"])) < PATIENCE_S
    assert "was blocked" in caplog.text


def test_how_late_the_loop_is_goes_to_the_tracer_that_the_runner_records_with() -> None:
    sink = MemorySink()
    with rs.Tracer(sink=sink) as tracer:
        with Runner(tracer=tracer, probe_s=0.01) as runner:
            waiting = runner.submit(asyncio.sleep, PATIENCE_S)
            _eventually(lambda: runner.health().loop_lag_s > 0)
            runner.cancel(waiting.id)
        records = Capture(tracer, sink).records()
    lags = [one for one in records if isinstance(one, MetricRecord)]
    assert "event_loop_lag_seconds" in {one.name for one in lags}


def test_asyncio_knows_a_task_by_the_name_of_its_function() -> None:
    async def rollout() -> str:
        running = asyncio.current_task()
        return "" if running is None else running.get_name()

    with Runner(concurrency=1) as runner:
        assert runner.submit(rollout).result(PATIENCE_S).value == "rollout"
        assert runner.submit(partial(rollout)).result(PATIENCE_S).value.startswith("Task-")


def test_lags_are_told_together_once_in_a_while_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watcher, "_TELL_EVERY_S", 0.05)
    told: list[list[float]] = []
    asked: list[None] = []

    def answer(act: Callable[[], object]) -> None:
        asked.append(None)
        act()

    kernel = Mock(running=1, call_loop=answer, trace=Mock(lagged=told.append))
    watching = watcher.Watcher(kernel, 0.001, "test")
    watching.wake()
    _eventually(lambda: len(told) >= 3)
    watching.stop()
    _eventually(lambda: sum(map(len, told)) == len(asked))
    assert max(map(len, told)) > 1


def test_health_tells_the_oldest_and_the_last_progress() -> None:
    async def main(stage: Stage) -> None:
        runner, event = stage.runner, asyncio.Event()
        assert runner.health().state == "running"
        await runner.submit(give)
        await asyncio.sleep(3.0)
        running = runner.submit(outer, event)
        queued = runner.submit(outer, event)
        await asyncio.sleep(4.0)
        health = runner.health()
        assert health.error is None
        assert round(health.since_progress_s) == 7
        assert (round(health.oldest_running_s), round(health.oldest_queued_s)) == (4, 4)
        runner.raise_if_unhealthy()
        event.set()
        await running
        await queued

    play(main, concurrency=1)


def test_a_task_between_its_attempts_is_not_the_oldest_running_one() -> None:
    async def fail() -> None:
        raise OSError

    async def main(stage: Stage) -> None:
        stage.runner.submit(fail)
        await turn_until(lambda: stage.runner.ledger().backoff)
        await asyncio.sleep(1.0)
        assert stage.runner.health().oldest_running_s == 0.0

    retry = Retry(rules={OSError: "infra"}, per_task=1, base_s=1e6, cap_s=1e6)
    play(main, retry=retry, seed=1)


def test_states_from_start_to_close() -> None:
    runner = Runner(probe_s=None)
    states = [runner.health().state]
    runner.start()
    states.append(runner.health().state)
    with runner.pause():
        states.append(runner.health().state)
    runner.drain(PATIENCE_S)
    states.append(runner.health().state)
    runner.close()
    states.append(runner.health().state)
    assert states == ["starting", "running", "paused", "draining", "closed"]


def test_statistics_add_up() -> None:
    async def sleep() -> None:
        await asyncio.sleep(8.0)

    async def fail() -> None:
        raise ValueError

    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        for _ in range(4):
            runner.submit(sleep)
        runner.submit(fail)
        cancelled = runner.submit(sleep)
        runner.cancel(cancelled.id)
        await asyncio.sleep(4.0)
        assert runner.stats().binding_gate == "concurrency"
        await runner.await_outcomes(6)
        runner.set_version(2)
        stats = runner.stats()
        assert (stats.queued, stats.running, stats.outbox) == (0, 0, 0)
        assert stats.slot_seconds == pytest.approx(32.0, abs=0.01)
        assert stats.outcomes == {"ok/accepted": 4, "failed/exception": 1, "cancelled/requested": 1}
        assert (stats.cancels, stats.retries, stats.late_results) == (1, 0, 0)
        assert stats.binding_s["concurrency"] == pytest.approx(16.0, abs=0.1)
        assert stats.ages == {0: 5}
        assert stats.running_p50_s is not None
        assert 4.0 < stats.running_p50_s < 17.0

    play(main, concurrency=2)


class _Announced:
    """A version that nobody announces, and that stays as it is."""

    def get_version(self) -> int:
        return 0


@pytest.mark.parametrize("source", [None, _Announced()], ids=["told", "read"])
@pytest.mark.parametrize("waits_after_s", [0.0, 90.0])
def test_a_runner_that_is_held_up_for_a_minute_says_once_by_what(
    source: _Announced | None, waits_after_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    from rollscope.runner import StalenessGate

    gate = StalenessGate.bounded(0, batch=1, version_source=source)

    def told() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]

    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.submit(give)
        await runner.await_outcomes(1)
        runner.submit(give)
        runner.submit(give)
        await asyncio.sleep(waits_after_s)
        waiting = asyncio.ensure_future(runner.await_outcomes(2))
        await asyncio.sleep(300.0)
        assert len(told()) == 1
        assert "staleness" in told()[0]
        gate.discarded(1)  # one more may run, which ends the block
        await asyncio.sleep(300.0)
        assert len(told()) == 2
        waiting.cancel()

    play(main, gates=[gate])


def test_a_healthy_runner_raises_nothing_and_a_broken_one_its_cause() -> None:
    async def fail() -> None:
        raise ValueError("the cause")

    async def main(stage: Stage) -> None:
        for _ in range(3):
            await stage.runner.submit(fail)
        with pytest.raises(RunnerBroken, match="the cause"):
            stage.runner.raise_if_unhealthy()
        stage.runner.reset_breaker()
        stage.runner.raise_if_unhealthy()

    play(main, breaker=3)


def test_figures_can_be_read_from_any_thread_while_tasks_come_and_go() -> None:
    with Runner(probe_s=None, concurrency=50) as runner:
        faults: list[BaseException] = []
        is_over = threading.Event()

        def read() -> None:
            try:
                while not is_over.is_set():
                    assert runner.ledger().adds_up()
                    runner.inspect()
                    runner.health()
                    runner.stats()
            except BaseException as error:
                faults.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(3000):
            runner.submit_blocking(give, number)
        assert len(runner.wait(3000, PATIENCE_S)) == 3000
        is_over.set()
        for reader in readers:
            reader.join()
        assert faults == []
