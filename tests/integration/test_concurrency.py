"""Threads and asyncio: every span once, under the right parent, whatever runs at the same time."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.model.records import SpanRecord
from rollscope.testing import capture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from rollscope.testing import Capture


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Capture]:
    with capture(dir=str(tmp_path), drain_s=0.01) as captured:
        yield captured


class _Tree:
    """The spans that were captured, by the path of names that leads to each."""

    def __init__(self, captured: Capture) -> None:
        self._spans = {span.span_id: span for span in captured.spans()}
        ended = [
            record.span_id
            for record in captured.records()
            if isinstance(record, SpanRecord) and record.status != "open"
        ]
        assert len(ended) == len(set(ended)) == len(self._spans)

    def path(self, span: SpanRecord) -> str:
        if span.parent_id is None:
            return span.name
        return f"{self.path(self._spans[span.parent_id])}/{span.name}"

    def paths(self) -> list[str]:
        return sorted(self.path(span) for span in self._spans.values())


def test_eight_threads_with_nested_spans_keep_every_parent_right(captured: Capture) -> None:
    def work(thread: int) -> None:
        for number in range(200):
            with rs.span(f"t{thread}.{number}"), rs.span("a"):
                with rs.span("b"):
                    pass
                with rs.span("c"):
                    pass

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    roots = [f"t{thread}.{number}" for thread in range(8) for number in range(200)]
    expected = [f"{root}{rest}" for root in roots for rest in ("", "/a", "/a/b", "/a/c")]
    assert _Tree(captured).paths() == sorted(expected)


def test_tasks_and_groups_inherit_the_span_that_started_them(captured: Capture) -> None:
    async def leaf(name: str) -> None:
        with rs.span(name):
            await asyncio.sleep(0)
            with rs.span("inner"):
                await asyncio.sleep(0.001)

    async def main() -> None:
        with rs.span("root"):
            with rs.span("gather"):
                await asyncio.gather(*(leaf(f"g{number}") for number in range(50)))
            with rs.span("create"):
                task = asyncio.create_task(leaf("created"))
            with rs.span("group"):
                async with asyncio.TaskGroup() as group:
                    group.create_task(leaf("in group"))
                    with rs.span("later in group"):
                        group.create_task(leaf("nested"))
            with rs.span("thread"):
                await asyncio.to_thread(asyncio.run, leaf("in thread"))
            await task

    asyncio.run(main())

    started = {
        "root/create/created",
        "root/group/in group",
        "root/group/later in group/nested",
        "root/thread/in thread",
        *(f"root/gather/g{number}" for number in range(50)),
    }
    expected = {"root", "root/group/later in group"}
    expected |= {f"root/{name}" for name in ("gather", "create", "group", "thread")}
    expected |= started | {f"{path}/inner" for path in started}
    assert _Tree(captured).paths() == sorted(expected)


def test_carry_takes_the_span_into_executors_and_threads_and_nowhere_else(
    captured: Capture,
) -> None:
    def work(name: str) -> None:
        with rs.span(name):
            pass

    async def main(pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        with rs.span("root"):
            await asyncio.gather(
                *(loop.run_in_executor(pool, rs.carry(work), f"c{n}") for n in range(50)),
                *(loop.run_in_executor(pool, work, f"bare{n}") for n in range(50)),
            )
            carried = rs.carry(work)
            thread = threading.Thread(target=carried, args=("thread",))
            thread.start()
            list(pool.map(carried, ["mapped"] * 50))
            thread.join()

    with ThreadPoolExecutor(4) as pool:
        asyncio.run(main(pool))

    expected = ["root", "root/thread", *["root/mapped"] * 50]
    expected += [f"root/c{number}" for number in range(50)]
    expected += [f"bare{number}" for number in range(50)]
    assert _Tree(captured).paths() == sorted(expected)


def test_two_event_loops_in_two_threads_do_not_mix(captured: Capture) -> None:
    async def session(loop: int, number: int) -> None:
        async with rs.task(f"{loop}.{number}"), rs.session(sample=number):
            for name in ("generate", "reward"):
                async with rs.phase(f"{name} {loop}.{number}"):
                    await asyncio.sleep(0)

    async def main(loop: int) -> None:
        await asyncio.gather(*(session(loop, number) for number in range(100)))

    threads = [threading.Thread(target=asyncio.run, args=(main(n),)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    spans = {span.span_id: span for span in captured.spans()}
    phases = [span for span in spans.values() if span.kind == "phase"]
    assert len(phases) == 2 * 100 * 2
    for phase in phases:
        session_span = spans[str(phase.parent_id)]
        key = phase.name.split()[1]
        assert (session_span.kind, session_span.task_key) == ("session", key)
        assert phase.session_id == session_span.span_id
        assert spans[str(session_span.parent_id)].task_key == key
        assert phase.sample == int(key.split(".")[1])


def test_spans_left_in_another_order_or_task_than_entered_still_end_once(
    captured: Capture,
) -> None:
    async def leave(span: rs.Span) -> None:
        span.__exit__(None, None, None)

    async def main() -> None:
        with rs.span("root"):
            outer, inner = rs.span("outer").__enter__(), rs.span("inner").__enter__()
            outer.__exit__(None, None, None)
            with rs.span("under inner"):
                pass
            inner.__exit__(None, None, None)
            with rs.span("under root"):
                pass
            elsewhere = rs.span("elsewhere").__enter__()
            await asyncio.create_task(leave(elsewhere))
            elsewhere.__exit__(None, None, None)

    asyncio.run(main())

    assert _Tree(captured).paths() == [
        "root",
        "root/elsewhere",
        "root/outer",
        "root/outer/inner",
        "root/outer/inner/under inner",
        "root/under root",
    ]


def test_an_async_generator_keeps_its_spans_apart_from_its_consumers(captured: Capture) -> None:
    @rs.trace("numbers")
    async def numbers() -> AsyncIterator[int]:
        for number in range(2):
            with rs.span(f"make {number}"):
                await asyncio.sleep(0)
            yield number

    async def main() -> None:
        with rs.span("root"):
            async for number in numbers():
                with rs.span(f"use {number}"):
                    await asyncio.sleep(0)

    asyncio.run(main())

    assert _Tree(captured).paths() == [
        "root",
        "root/numbers",
        "root/numbers/make 0",
        "root/numbers/make 1",
        "root/use 0",
        "root/use 1",
    ]
