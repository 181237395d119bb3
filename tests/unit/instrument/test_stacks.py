from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.model.records import StackRecord
from rollscope.testing import FakeClock, capture

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from rollscope.instrument.stacks import SpanStack


def functions(stack: SpanStack) -> list[str]:
    """Give the bare names of the functions of a stack, outermost first."""
    return [frame.rpartition(".")[2].rpartition(" ")[2] for frame in stack.frames]


def stacks_of(span: rs.Span) -> list[SpanStack]:
    return [stack for stack in rs.stacks() if stack.span_id == span.id]


async def innermost(release: asyncio.Event) -> None:
    await release.wait()


async def middle(release: asyncio.Event) -> None:
    await innermost(release)


def test_nothing_hangs_where_nothing_is_open() -> None:
    assert rs.stacks() == []
    with capture():
        assert rs.stacks() == []


def test_a_task_that_waits_shows_its_chain_of_awaits() -> None:
    async def main() -> None:
        release = asyncio.Event()

        async def session() -> None:
            with rs.session() as span:
                spans.append(span)
                await middle(release)

        spans: list[rs.Span] = []
        task = asyncio.create_task(session(), name="rollout-7")
        await asyncio.sleep(0)
        (stack,) = stacks_of(spans[0])
        assert stack.task == "rollout-7"
        assert functions(stack) == ["session", "middle", "innermost", "wait"]
        file, line = stack.frames[2].split(" ")[0].rsplit(":", 1)
        assert file == __file__
        assert int(line) == innermost.__code__.co_firstlineno + 1
        release.set()
        await task

    with capture():
        asyncio.run(main())


def test_the_innermost_open_span_of_a_task_gets_its_stack() -> None:
    async def main() -> None:
        release = asyncio.Event()

        async def work() -> None:
            with rs.task("t") as outer, rs.phase("generate") as inner:
                spans.extend([outer, inner])
                await release.wait()

        spans: list[rs.Span] = []
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        found = {stack.span_id for stack in rs.stacks()}
        assert spans[1].id in found
        assert spans[0].id not in found
        release.set()
        await task

    with capture():
        asyncio.run(main())


def test_a_span_that_waits_for_many_tasks_shows_a_few_of_them() -> None:
    async def main() -> None:
        release = asyncio.Event()
        with rs.task("t") as span:
            tasks = [asyncio.create_task(middle(release)) for _ in range(50)]
            await asyncio.sleep(0)
            stacks = [stack for stack in stacks_of(span) if "innermost" in functions(stack)]
            assert 1 <= len(stacks) <= 4
            release.set()
            await asyncio.gather(*tasks)

    with capture():
        asyncio.run(main())


def test_an_await_inside_an_async_generator_is_seen() -> None:
    async def main() -> None:
        release = asyncio.Event()

        async def stream() -> AsyncGenerator[int, None]:
            yield 1
            await innermost(release)

        async def consume() -> None:
            with rs.phase("generate") as span:
                spans.append(span)
                async for _ in stream():
                    pass

        spans: list[rs.Span] = []
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        (stack,) = stacks_of(spans[0])
        assert functions(stack) == ["consume", "stream", "innermost", "wait"]
        release.set()
        await task

    with capture():
        asyncio.run(main())


def block_thread(entered: threading.Event, release: threading.Event, spans: list[rs.Span]) -> None:
    with rs.span("outer"), rs.span("blocked") as span:
        spans.append(span)
        entered.set()
        release.wait(30)


def test_a_thread_that_blocks_shows_its_calls_once_for_its_innermost_span() -> None:
    entered, release = threading.Event(), threading.Event()
    spans: list[rs.Span] = []
    with capture():
        arguments = (entered, release, spans)
        thread = threading.Thread(target=block_thread, args=arguments, name="worker-3")
        thread.start()
        entered.wait(30)
        stacks = rs.stacks()
        release.set()
        thread.join()
    assert [stack.span_id for stack in stacks] == [spans[0].id]
    assert stacks[0].task == "worker-3"
    assert "block_thread" in functions(stacks[0])
    assert functions(stacks[0])[-1] == "wait"


def test_a_task_that_blocks_its_loop_shows_the_calls_of_the_thread() -> None:
    entered, release = threading.Event(), threading.Event()
    spans: list[rs.Span] = []

    async def blocks() -> None:
        block_thread(entered, release, spans)

    with capture():
        thread = threading.Thread(target=asyncio.run, args=(blocks(),), name="loop")
        thread.start()
        entered.wait(30)
        (stack,) = stacks_of(spans[0])
        release.set()
        thread.join()
    assert stack.task == "loop"
    assert functions(stack)[-4:-1] == ["blocks", "block_thread", "wait"]


def test_of_a_very_deep_stack_the_inner_end_is_kept() -> None:
    async def down(depth: int, release: asyncio.Event) -> None:
        if depth:
            await down(depth - 1, release)
        else:
            await release.wait()

    async def main() -> None:
        release = asyncio.Event()

        async def work() -> None:
            with rs.span("deep") as span:
                spans.append(span)
                await down(200, release)

        spans: list[rs.Span] = []
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        (stack,) = stacks_of(spans[0])
        assert len(stack.frames) == 64
        assert functions(stack)[-2:] == ["down", "wait"]
        release.set()
        await task

    with capture():
        asyncio.run(main())


@pytest.mark.parametrize("enabled", [True, False])
def test_taking_stacks_leaves_the_garbage_collector_as_it_was(enabled: bool) -> None:
    with capture(), rs.span("x"):
        was_enabled = gc.isenabled()
        try:
            (gc.enable if enabled else gc.disable)()
            rs.stacks()
            assert gc.isenabled() is enabled
        finally:
            (gc.enable if was_enabled else gc.disable)()


def test_a_span_that_hangs_leaves_its_stack_in_the_run() -> None:
    clock = FakeClock()
    with capture(clock=clock, stack_after_s=5) as run:
        with rs.session() as span:
            rs.flush()
            clock.advance(6)
            rs.flush()
        stacks = [record for record in run.records() if isinstance(record, StackRecord)]
        assert [stack.span_id for stack in stacks] == [f"{span.id:016x}"]
        assert any("flush" in frame for frame in stacks[0].frames)
