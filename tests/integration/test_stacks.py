"""Where open spans hang: on request and by the watchdog, for coroutines and for threads."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.testing import capture
from tests.integration.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator

    from rollscope.instrument.stacks import SpanStack
    from rollscope.testing import Capture

_LINES = Path(__file__).read_text().splitlines()


def _place(mark: str) -> str:
    """Give `file:line` of the line that ends with a mark."""
    (number,) = [at for at, line in enumerate(_LINES, 1) if line.endswith(f"# {mark}")]
    return f"{__file__}:{number}"


def _places(stack: SpanStack) -> list[str]:
    """Give the frames of a stack that are in this file, outermost first."""
    return [frame.split(" ")[0] for frame in stack.frames if frame.startswith(__file__)]


def _stacks_at(mark: str) -> list[SpanStack]:
    """Give the stacks whose innermost line in this file has a mark."""
    return [stack for stack in rs.stacks() if _places(stack)[-1:] == [_place(mark)]]


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Capture]:
    with capture(dir=str(tmp_path), stack_after_s=0) as captured:
        yield captured


async def _nested(gate: asyncio.Event) -> None:
    await _deeper(gate)  # nested


async def _deeper(gate: asyncio.Event) -> None:
    await gate.wait()  # deeper


async def _stream(gate: asyncio.Event) -> AsyncIterator[int]:
    yield 1
    await gate.wait()  # stream
    yield 2


async def _consume(gate: asyncio.Event) -> None:
    async for _ in _stream(gate):  # consume
        pass


async def _next(gate: asyncio.Event) -> None:
    stream = _stream(gate)
    await anext(stream, None)
    await anext(stream, None)  # next


class _Awaitable:
    def __init__(self, gate: asyncio.Event) -> None:
        self._gate = gate

    def __await__(self) -> Generator[None]:
        yield from self._gate.wait().__await__()  # awaitable


async def _custom(gate: asyncio.Event) -> None:
    await _Awaitable(gate)  # custom


async def _limited(gate: asyncio.Event) -> None:
    async with asyncio.timeout(600):
        await gate.wait()  # limited


_WAYS = {
    _nested: ["nested", "deeper"],
    _consume: ["consume", "stream"],
    _next: ["next", "stream"],
    _custom: ["custom", "awaitable"],
    _limited: ["limited"],
}


@contextmanager
def _hanging(number: int) -> Iterator[dict[int, list[str]]]:
    """Run coroutines that hang in a loop in a thread; give what to find, by id of the span."""
    expected: dict[int, list[str]] = {}
    ready, loop = threading.Event(), asyncio.new_event_loop()
    gate = asyncio.Event()

    async def session(at: int) -> None:
        way, marks = list(_WAYS.items())[at % len(_WAYS)]
        with rs.task(f"item{at}"), rs.session(sample=at), rs.phase("generate") as phase:
            assert phase.ref is not None
            expected[phase.ref.span_id] = [_place(mark) for mark in ("session", *marks)]
            await way(gate)  # session

    async def main() -> None:
        tasks = [asyncio.create_task(session(at)) for at in range(number)]
        for _ in range(3):  # rounds of the loop: each starts, and goes as far as it can
            await asyncio.sleep(0)
        assert len(expected) == number
        ready.set()
        await asyncio.gather(*tasks)

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    try:
        assert ready.wait(30)
        yield expected
    finally:
        loop.call_soon_threadsafe(gate.set)
        thread.join()
        loop.close()


def test_all_of_two_thousand_hung_coroutines_tell_the_line_they_await(captured: Capture) -> None:
    with _hanging(1000) as first, _hanging(1000) as second:
        took = []
        for _ in range(5):
            before = time.perf_counter()
            stacks = rs.stacks()
            took.append((time.perf_counter() - before) * 1e3)
    print(f"2,000 stacks: best {min(took):.1f} ms, worst {max(took):.1f} ms")  # noqa: T201

    found = {stack.span_id: _places(stack) for stack in stacks}
    assert len(stacks) == 2000
    assert found == first | second
    assert len(captured.spans()) == 3 * 2000


def test_a_span_whose_children_hang_shows_the_children_too(captured: Capture) -> None:
    async def child(gate: asyncio.Event) -> None:
        await gate.wait()  # child

    async def main() -> list[SpanStack]:
        gate = asyncio.Event()

        async def gatherer() -> None:
            with rs.span("gatherer"):
                await asyncio.gather(*(child(gate) for _ in range(3)))  # gather

        task = asyncio.create_task(gatherer(), name="the gatherer")
        for _ in range(3):
            await asyncio.sleep(0)
        stacks = rs.stacks()
        gate.set()
        await task
        return stacks

    stacks = asyncio.run(main())

    assert sorted(_places(stack)[-1] for stack in stacks) == sorted(
        [_place("gather"), *[_place("child")] * 3]
    )
    assert "the gatherer" in {stack.task for stack in stacks}


def test_a_span_in_a_thread_shows_the_stack_of_that_thread(captured: Capture) -> None:
    gate = threading.Event()

    def work() -> None:
        with rs.span("in thread"):
            gate.wait()  # in thread

    async def main() -> None:
        with rs.span("waiting"):
            await asyncio.to_thread(work)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        (stack,) = eventually(lambda: _stacks_at("in thread"), "the thread hangs")
    finally:
        gate.set()
        thread.join()

    assert stack.span_id == int(captured.named("in thread").span_id, 16)
    assert _places(stack)[-1] == _place("in thread")
    assert stack.task.startswith("asyncio_")


def test_a_coroutine_that_blocks_its_loop_shows_the_blocking_call(captured: Capture) -> None:
    gate = threading.Event()

    async def main() -> None:
        with rs.span("blocking"):
            gate.wait()  # blocks

    thread = threading.Thread(target=lambda: asyncio.run(main()), name="the loop")
    thread.start()
    try:
        (stack,) = eventually(lambda: _stacks_at("blocks"), "the loop is blocked")
    finally:
        gate.set()
        thread.join()

    assert stack.task == "the loop"
    assert stack.span_id == int(captured.named("blocking").span_id, 16)


def test_stacks_can_be_taken_while_tasks_come_and_go(captured: Capture) -> None:
    async def short() -> None:
        with rs.span("short"):
            await asyncio.sleep(0)

    async def main(stop: threading.Event) -> None:
        while not stop.is_set():
            await asyncio.gather(*(short() for _ in range(100)))

    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(main(stop)))
    thread.start()
    try:
        with _hanging(10) as expected:
            for _ in range(100):
                found = {stack.span_id: _places(stack) for stack in rs.stacks()}
                assert found.keys() >= expected.keys()
                assert {span_id: found[span_id] for span_id in expected} == expected
    finally:
        stop.set()
        thread.join()


def test_the_watchdog_writes_where_a_coroutine_and_a_thread_hang(tmp_path: Path) -> None:
    with capture(dir=str(tmp_path), stack_after_s=0.2) as captured, _hanging(5) as expected:
        gate = threading.Event()

        def work() -> None:
            with rs.span("stuck thread"):
                gate.wait()  # stuck thread

        thread = threading.Thread(target=work)
        thread.start()
        try:
            stacks = eventually(
                lambda: len(found := captured.fold().stacks) >= 6 and found, "six stacks"
            )
        finally:
            gate.set()
            thread.join()

    last = {stack.span_id: stack.frames for stack in stacks}
    for span_id, places in expected.items():
        frames = [frame.split(" ")[0] for frame in last[f"{span_id:016x}"]]
        assert [frame for frame in frames if frame.startswith(__file__)] == places
    stuck = captured.named("stuck thread")
    assert any(frame.startswith(_place("stuck thread")) for frame in last[stuck.span_id])


def test_spans_that_do_not_hang_leave_no_stack(tmp_path: Path) -> None:
    with capture(dir=str(tmp_path), stack_after_s=0.2, drain_s=0.01) as captured:
        until = time.monotonic() + 1.2  # the watchdog has looked twice by then
        while time.monotonic() < until:
            with rs.span("quick"):
                time.sleep(0.01)
        folded = captured.fold()
    # On a busy machine one of them may have waited that long for the processor.
    told = [folded.spans[stack.span_id] for stack in folded.stacks]
    assert [one for one in told if (one.end_ns or 0) - one.start_ns < 200_000_000] == []
