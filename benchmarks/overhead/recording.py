"""Rollscope itself, as a trainer uses it: through the module, into files."""

from __future__ import annotations

import asyncio
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import thread_time_ns

import rollscope as rs
from overhead.measure import Result, Scale, measure
from rollscope.instrument.binding import bind_span_types
from rollscope.instrument.buffers import Buffers
from rollscope.instrument.clock import SystemClock
from rollscope.instrument.ids import RandomIds
from rollscope.instrument.spans import NOOP
from rollscope.store.fold import read_run

__all__ = ["async_spans", "decorated_calls", "disabled", "memory", "sessions", "spans"]

_RUN = "bench"
_TASKS = 100


@contextmanager
def _recording(expected: int) -> Iterator[Path]:
    """Record into a temporary run; afterwards make sure that it holds every span."""
    with tempfile.TemporaryDirectory() as directory:
        run = Path(directory, _RUN)
        rs.init(run=_RUN, dir=directory)
        try:
            yield run
        finally:
            rs.shutdown()
        _check_complete(run, expected)


def _check_complete(run: Path, expected: int) -> None:
    found = read_run(run)
    if found.problems or any(found.drops.values()):
        raise RuntimeError(f"the run is damaged: {found.problems}, dropped {found.drops}")
    if len(found.spans) != expected:
        raise RuntimeError(f"{expected} spans were recorded, {len(found.spans)} read back")


def _flush() -> None:
    if not rs.flush():
        raise RuntimeError("the sink did not take everything in time")


def spans(scale: Scale) -> Result:
    """Measure a span with two attributes and a parent, and what it takes on disk."""

    def burst(count: int) -> int:
        with rs.span("weights.sync"):
            began = thread_time_ns()
            for i in range(count):
                with rs.span("weights.pack", category="comm", bytes=i, host="h1"):
                    pass
            return thread_time_ns() - began

    recorded = scale.bursts * (scale.burst + 1)
    with _recording(recorded) as run:
        result = measure(scale, burst, _flush)
        size = sum(log.stat().st_size for log in run.rglob("*.rsl"))
    result.figures["disk_bytes"] = [size / recorded]
    return result


def sessions(scale: Scale) -> Result:
    """Measure a whole session with three phases; the figures are per session."""

    def burst(count: int) -> int:
        with rs.task("gsm8k/8421"):
            began = thread_time_ns()
            for i in range(count):
                with rs.session(sample=1, version=3) as session:
                    with rs.phase("generate", tokens=i):
                        pass
                    with rs.phase("toolcall", tool="python"):
                        pass
                    with rs.phase("reward", judge="exact"):
                        pass
                    session.finish("accepted", reward=1.0)
            return thread_time_ns() - began

    scale = scale.shorten(4)
    with _recording(scale.bursts * (scale.burst * 4 + 1)):
        return measure(scale, burst, _flush)


def disabled(scale: Scale) -> Result:
    """Measure a span with two attributes when nothing is recorded."""

    def burst(count: int) -> int:
        began = thread_time_ns()
        for i in range(count):
            with rs.span("weights.pack", category="comm", bytes=i, host="h1"):
                pass
        return thread_time_ns() - began

    return measure(scale, burst, lambda: None)


def decorated_calls(scale: Scale) -> Result:
    """Measure what `trace` adds to a call."""

    def plain(value: int) -> int:
        return value

    traced = rs.trace("weights.pack", category="comm")(plain)

    def bare(count: int) -> int:
        began = thread_time_ns()
        for i in range(count):
            plain(i)
        return thread_time_ns() - began

    def burst(count: int) -> int:
        with rs.span("weights.sync"):
            began = thread_time_ns()
            for i in range(count):
                traced(i)
            return thread_time_ns() - began

    with _recording(scale.bursts * (scale.burst + 1)):
        return measure(scale, burst, _flush, bare)


async def _await_often(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def _await_often_in_spans(count: int) -> None:
    for i in range(count):
        with rs.span("weights.pack", category="comm", bytes=i, host="h1"):
            await asyncio.sleep(0)


def async_spans(scale: Scale) -> Result:
    """Measure spans that stay open over an await, in many tasks at a time."""

    async def bare(count: int) -> int:
        began = thread_time_ns()
        await asyncio.gather(*(_await_often(count // _TASKS) for _ in range(_TASKS)))
        return thread_time_ns() - began

    async def burst(count: int) -> int:
        with rs.span("weights.sync"):
            began = thread_time_ns()
            await asyncio.gather(*(_await_often_in_spans(count // _TASKS) for _ in range(_TASKS)))
            return thread_time_ns() - began

    with _recording(scale.bursts * (scale.burst + 1)), asyncio.Runner() as runner:
        return measure(
            scale,
            lambda count: runner.run(burst(count)),
            _flush,
            lambda count: runner.run(bare(count)),
        )


def memory(scale: Scale) -> Result:
    """Measure what a span takes while it waits for the writer."""
    count = scale.burst
    # The buffer alone: beside a writer it would never hold this many.
    current: ContextVar[rs.Span] = ContextVar("bench", default=NOOP)
    types = bind_span_types(Buffers(), current, RandomIds(), SystemClock())
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for i in range(count):
        with types.new_span("weights.pack", "comm", {"bytes": 1_000_000 + i, "host": "h1"}):
            pass
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Result(figures={"buffer_bytes": [(after - before) / count]})
