"""Calls that users make and that must type-check; mypy reads this file, nothing runs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import rollscope as rs
from rollscope.config import Settings
from rollscope.instrument.sinks import Frame, Opening, Sink
from rollscope.testing import Capture, FakeClock, SequentialIds, capture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from concurrent.futures import Executor


class QueueSink:
    """A sink of the user's own."""

    def open(self, opening: Opening) -> None: ...
    def write(self, frame: Frame) -> None: ...
    def close(self) -> None: ...


def starting(path: Path) -> None:
    assert_type(rs.init(), rs.Tracer)
    rs.init(run="gsm8k-grpo", dir="runs", role="rollout", rank=0, sink="file", tags={"a": "b"})
    rs.init(dir=path, payloads=True, drain_s=0.5, sigterm=False)
    rs.init(sink=QueueSink())
    sink: Sink = QueueSink()
    with rs.Tracer(sink=sink, clock=FakeClock(), ids=SequentialIds()) as tracer:
        assert_type(tracer, rs.Tracer)
        assert_type(tracer.span("x"), rs.Span)
    assert_type(rs.flush(), bool)
    assert_type(rs.flush(timeout_s=1.0), bool)
    assert_type(rs.shutdown(), bool)
    assert_type(rs.enabled(), bool)
    assert_type(Settings().drain_s, float)
    assert_type(Settings().rank, int | None)
    rs.init(rank="first")  # type: ignore[arg-type]
    rs.init("gsm8k-grpo")  # type: ignore[call-arg]


def spans() -> None:
    with rs.step(41, version=12, lr=0.1) as step:
        assert_type(step, rs.Span)
    with rs.task("gsm8k/8421", group="g", step=41, anything=object()) as task:
        assert_type(task, rs.Span)
    with rs.session(sample=3, version=12) as session:
        assert_type(session, rs.Session)
        assert_type(session.finish("accepted", reward=1.0), rs.Session)
        session.finish("rejected", reason="stale", version=13)
        session.finish(outcome="failed")
    with rs.phase("generate", model="policy") as phase:
        assert_type(phase.set(tokens=7), rs.Span)
    with rs.span("weights.pack", category="comm", bytes=7), rs.span("pack", "io"):
        pass
    with rs.state("rollout", lane="trainer_0") as state:
        assert_type(state.ref, rs.SpanRef | None)
    assert_type(rs.current(), rs.Span)
    rs.state("rollout")  # type: ignore[call-arg]
    rs.step("41")  # type: ignore[arg-type]
    rs.span(name="x")  # type: ignore[call-arg]
    phase.finish("accepted")  # type: ignore[attr-defined]


async def async_spans() -> None:
    async with rs.step(1) as step, rs.task("t"), rs.session() as session, rs.phase("p"):
        assert_type(step, rs.Span)
        assert_type(session, rs.Session)
        async with rs.state("s", lane="l"), rs.span("x"):
            pass


def errors_are_not_swallowed() -> int:
    """A span never swallows an exception, so no path leads past it without a value."""
    with rs.span("x"):
        return 1


def facts_and_metrics(session: rs.Session, ref: rs.SpanRef) -> None:
    rs.annotate(session, reward=0.7)
    rs.annotate(session.ref, consumed_step=44)
    rs.annotate(ref, reward=0.7)
    rs.annotate(str(ref), reward=0.7)
    rs.annotate(None, reward=0.7)
    rs.event("weights.published", version=13)
    rs.payload("messages", [{"role": "user"}])
    rs.count("train_step_total", worker="t0")
    rs.count("tokens_total", 128)
    rs.gauge("reward_mean", 1.23)
    rs.observe("step_seconds", 42)
    rs.gauge("reward_mean")  # type: ignore[call-arg]
    rs.annotate(7)  # type: ignore[arg-type]


@rs.trace
def bare(a: int, *, b: str = "") -> float:
    return a + len(b)


@rs.trace()
def called(a: int) -> float:
    return a


@rs.trace("named", category="compute", attrs=lambda *args, **kwargs: {"n": len(args)})
async def named(a: int) -> str:
    return str(a)


@rs.trace
def generator(n: int) -> Iterator[int]:
    yield from range(n)


@rs.trace
async def async_generator(n: int) -> AsyncIterator[int]:
    for number in range(n):
        yield number


class Trainer:
    rank = 0

    @rs.trace("update", attrs=lambda self, batch: {"rank": self.rank})
    def update(self, batch: list[int]) -> int:
        return len(batch)


async def a_traced_function_keeps_its_type() -> None:
    assert_type(bare(1, b="x"), float)
    assert_type(called(1), float)
    assert_type(await named(1), str)
    assert_type(generator(1), Iterator[int])
    async for number in async_generator(3):
        assert_type(number, int)
    assert_type(Trainer().update([1]), int)
    bare("1")  # type: ignore[arg-type]
    named()  # type: ignore[call-arg, unused-coroutine]
    Trainer().update("x")  # type: ignore[arg-type]


def borders(executor: Executor, headers: dict[str, str]) -> None:
    assert_type(rs.inject(), dict[str, str])
    rs.inject(headers)
    with rs.attach(headers) as span:
        assert_type(span, rs.Span)
    rs.attach(os.environ)
    assert_type(rs.child_env(), dict[str, str])
    rs.child_env({"A": "b"})
    carried: Callable[[int], float] = rs.carry(called)
    assert_type(carried(1), float)
    executor.submit(rs.carry(bare), 1, b="x")
    rs.carry(bare)("1")  # type: ignore[arg-type]
    for stack in rs.stacks():
        assert_type(stack.frames, list[str])


def testing() -> None:
    with capture(clock=FakeClock()) as run:
        assert_type(run, Capture)
        attrs: dict[str, Any] = run.named("x").attrs
        attrs.clear()
