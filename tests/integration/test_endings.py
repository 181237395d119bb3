"""How cancellation, time limits and errors close spans, and what they make of a session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.testing import capture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from pathlib import Path

    from rollscope.testing import Capture


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Capture]:
    with capture(dir=str(tmp_path)) as captured:
        yield captured


async def _roll_out(entered: asyncio.Event, name: str = "") -> None:
    async with rs.task(f"item{name}"), rs.session():
        with rs.phase(f"generate{name}"):
            entered.set()
            await asyncio.sleep(60)


def _ends(captured: Capture) -> dict[str, tuple[str, str | None, str | None]]:
    """Give status, outcome and the kind of reason of each span by its name."""
    return {
        span.name: (
            span.status,
            span.outcome,
            None if span.reason is None else span.reason.partition(":")[0],
        )
        for span in captured.spans()
    }


def test_a_cancelled_task_closes_its_spans_as_cancelled(captured: Capture) -> None:
    async def main() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(_roll_out(entered))
        await entered.wait()
        task.cancel("no longer wanted")
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())

    assert _ends(captured) == {
        "task": ("cancelled", None, "CancelledError"),
        "session": ("cancelled", "cancelled", "CancelledError"),
        "generate": ("cancelled", None, "CancelledError"),
    }
    assert captured.named("session").reason == "CancelledError: no longer wanted"


async def _with_timeout(work: Coroutine[None, None, None]) -> None:
    async with asyncio.timeout(0.02):
        await work


async def _with_wait_for(work: Coroutine[None, None, None]) -> None:
    await asyncio.wait_for(work, 0.02)


@pytest.mark.parametrize("limit", [_with_timeout, _with_wait_for])
def test_a_time_limit_cancels_what_is_inside_and_times_out_what_is_around(
    captured: Capture, limit: Callable[[Coroutine[None, None, None]], Coroutine[None, None, None]]
) -> None:
    async def main() -> None:
        async with rs.session() as around:
            around.name = "around"
            with rs.span("caller"):
                await limit(_roll_out(asyncio.Event()))

    with pytest.raises(TimeoutError):
        asyncio.run(main())

    assert _ends(captured) == {
        "around": ("error", "timeout", "TimeoutError"),
        "caller": ("error", None, "TimeoutError"),
        "task": ("cancelled", None, "CancelledError"),
        "session": ("cancelled", "cancelled", "CancelledError"),
        "generate": ("cancelled", None, "CancelledError"),
    }


def test_one_failure_in_a_group_cancels_the_others_and_fails_the_group(captured: Capture) -> None:
    async def fail(others: list[asyncio.Event]) -> None:
        for other in others:
            await other.wait()
        async with rs.session() as session:
            session.name = "failing"
            raise ValueError("bad reward")

    async def main() -> None:
        entered = [asyncio.Event(), asyncio.Event()]
        with rs.span("around"):
            async with asyncio.TaskGroup() as group:
                group.create_task(_roll_out(entered[0], "0"))
                group.create_task(_roll_out(entered[1], "1"))
                group.create_task(fail(entered))

    with pytest.raises(ExceptionGroup):
        asyncio.run(main())

    ends = _ends(captured)
    assert ends["failing"] == ("error", "failed", "ValueError")
    assert ends["generate0"] == ends["generate1"] == ("cancelled", None, "CancelledError")
    assert ends["around"] == ("error", None, "ExceptionGroup")
    outcomes = [span.outcome for span in captured.spans() if span.name == "session"]
    assert outcomes == ["cancelled", "cancelled"]


def test_a_verdict_given_before_an_exception_stands(captured: Capture) -> None:
    async def main() -> None:
        async with rs.session() as session:
            session.finish("rejected", reason="stale", reward=0.0)
            raise RuntimeError("afterwards")

    with pytest.raises(RuntimeError):
        asyncio.run(main())

    assert _ends(captured) == {"session": ("error", "rejected", "stale")}
    assert captured.named("session").attrs == {"reward": 0.0}


def test_a_shielded_session_outlives_the_cancellation_of_its_waiter(captured: Capture) -> None:
    async def work(go_on: asyncio.Event) -> None:
        async with rs.session() as session:
            await go_on.wait()
            session.finish("accepted")

    async def wait(inner: asyncio.Future[None]) -> None:
        async with asyncio.timeout(0.02):
            with rs.span("waiter"):
                await asyncio.shield(inner)

    async def main() -> None:
        go_on = asyncio.Event()
        inner = asyncio.ensure_future(work(go_on))
        with pytest.raises(TimeoutError):
            await wait(inner)
        go_on.set()
        await inner

    asyncio.run(main())

    assert _ends(captured) == {
        "waiter": ("cancelled", None, "CancelledError"),
        "session": ("ok", "accepted", None),
    }


def test_a_loop_that_ends_with_tasks_running_closes_their_spans(captured: Capture) -> None:
    async def main() -> None:
        entered = asyncio.Event()
        background = asyncio.create_task(_roll_out(entered))
        await entered.wait()
        assert not background.done()

    asyncio.run(main())  # which cancels what is left

    assert _ends(captured)["session"] == ("cancelled", "cancelled", "CancelledError")


def test_abandoned_generators_close_their_spans_as_ordinary_ends(captured: Capture) -> None:
    @rs.trace("numbers")
    def numbers() -> Iterator[int]:
        with rs.span("inside"):
            yield 1
            yield 2

    @rs.trace("stream")
    async def stream() -> AsyncIterator[int]:
        with rs.span("inside stream"):
            yield 1
            yield 2

    async def main() -> None:
        generator = stream()
        async for _ in generator:
            break
        await generator.aclose()  # type: ignore[attr-defined]  # of every async generator

    for _ in numbers():
        break
    asyncio.run(main())

    assert set(_ends(captured).values()) == {("ok", None, None)}
    assert len(_ends(captured)) == 4
