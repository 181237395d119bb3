from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.errors import RunnerBroken
from rollscope.model.records import SpanRecord
from rollscope.runner import Retry, ctx
from rollscope.testing import capture
from tests.unit.runner.virtual import Stage, play

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.testing.capture import Capture

FLAKY = Retry(rules={OSError: "infra"}, per_task=2, base_s=60.0)


@pytest.fixture
def run() -> Iterator[Capture]:
    with capture() as run:
        yield run


async def hang() -> None:
    await asyncio.Event().wait()


async def fail() -> None:
    raise OSError("the text")


def sessions(run: Capture, key: str) -> list[SpanRecord]:
    found = [one for one in run.spans() if one.name == "session" and one.task_key == key]
    return sorted(found, key=lambda one: one.attrs.get("attempt", 0))


def verdict_of(session: SpanRecord) -> tuple[Any, ...]:
    return session.outcome, session.reason, str(session.status)


def whole_of(session: SpanRecord) -> float:
    parts = ("queue_wait_s", "runner_wait_s", "execution_s", "backoff_s", "post_wait_s")
    return float(sum(session.attrs.get(part, 0.0) for part in parts))


def test_a_task_that_is_cancelled_before_its_first_line_has_a_session(run: Capture) -> None:
    async def main(stage: Stage) -> None:
        handle = stage.runner.options(key="item").submit(hang)
        stage.runner._kernel.turn()  # it is admitted, and its code has had no turn yet
        stage.runner.cancel(handle.id)
        await handle

    play(main)
    (session,) = sessions(run, "item")
    assert verdict_of(session) == ("cancelled", "requested", "cancelled")
    assert session.start_ns == session.end_ns
    assert "queue_wait_s" in session.attrs
    assert "execution_s" not in session.attrs


def test_a_task_that_is_cancelled_between_attempts_keeps_them_apart(run: Capture) -> None:
    async def main(stage: Stage) -> None:
        handle = stage.runner.options(key="item").submit(fail)
        await asyncio.sleep(0.001)
        stage.runner.cancel(handle.id)
        await handle

    play(main, retry=FLAKY, seed=1)
    first, last = sessions(run, "item")
    assert verdict_of(first) == ("failed", "exception", "error")
    assert verdict_of(last) == ("cancelled", "requested", "cancelled")
    assert first.trace_id == last.trace_id
    assert last.attrs["backoff_s"] == pytest.approx(0.001)
    assert last.attrs["total_s"] == pytest.approx(whole_of(last))


def test_an_attempt_is_recorded_once_if_the_next_one_is_stopped_before_it_starts(
    run: Capture,
) -> None:
    async def fail_once() -> None:
        if ctx.attempt == 1:
            raise OSError("the text")

    async def main(stage: Stage) -> None:
        kernel = stage.runner._kernel
        handle = stage.runner.options(key="item").submit(fail_once)
        await asyncio.sleep(0.001)
        task = kernel.live[handle.id]
        kernel.attempts._come_back(task)
        kernel.turn()
        kernel.stops.abort(task)
        outcome = await handle
        assert [one.started_ns is None for one in outcome.history] == [False, True, False]

    play(main, retry=FLAKY, seed=1)
    ends = [one for one in run.records() if isinstance(one, SpanRecord) and one.end_ns is not None]
    assert [one.outcome for one in ends if one.name == "session"] == ["failed", "accepted"]


def test_a_task_that_never_starts_belongs_to_what_it_was_submitted_in(run: Capture) -> None:
    async def main(stage: Stage) -> None:
        stage.runner.pause("weights")
        with rs.step(7), rs.task("item"):
            handle = stage.runner.submit(hang)
        stage.runner.cancel(handle.id)
        await handle

    play(main)
    (session,) = sessions(run, "item")
    assert (session.step, session.parent_id) == (7, run.named("task").span_id)


def test_what_became_too_old_in_the_outbox_is_recorded_as_dropped(run: Capture) -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        handle = runner.options(key="item").submit(asyncio.sleep, 0)
        await asyncio.sleep(5.0)  # recorded meanwhile
        runner.set_version(2)
        await handle

    play(main, max_age=1, age_policy="drop")
    (session,) = sessions(run, "item")
    assert verdict_of(session) == ("dropped", "too_old", "ok")
    assert session.attrs["total_s"] == pytest.approx(5.0)


def test_the_members_of_a_group_wait_to_be_handed_over_too(run: Capture) -> None:
    async def main(stage: Stage) -> None:
        group = stage.runner.group(2, key="item")
        group.submit(asyncio.sleep, 0.25)
        group.submit(asyncio.sleep, 0.5)
        await stage.runner.await_outcomes(1)

    play(main)
    found = sessions(run, "item")
    assert [one.attrs["total_s"] for one in found] == pytest.approx([0.5, 0.5])
    assert sorted(one.attrs["post_wait_s"] for one in found) == pytest.approx([0.0, 0.25])
    assert [whole_of(one) for one in found] == pytest.approx([0.5, 0.5])


def test_the_end_of_the_loop_is_recorded_of_every_task(run: Capture) -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.options(key="running").submit(hang)
        await asyncio.sleep(1.0)
        runner.options(key="queued").submit(hang)
        runner._kernel.die(ValueError("a fault of ours"))
        runner.take_ready()
        with pytest.raises(RunnerBroken):
            await runner.await_outcomes(1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollscope.runner.kernel.log.error", lambda *_, **__: None)
        play(main, concurrency=1)
    for key in ("running", "queued"):
        (session,) = sessions(run, key)
        assert verdict_of(session) == ("failed", "lost", "error")
        assert "total_s" in session.attrs
