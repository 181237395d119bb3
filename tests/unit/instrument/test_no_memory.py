"""Where there is no memory for a record, the program goes on and the record is counted."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

import rollscope
from rollscope.instrument.binding import bind_span_types
from rollscope.instrument.buffers import ROW, Buffers
from rollscope.instrument.spans import NOOP, Span
from rollscope.testing import FakeClock, SequentialIds, capture

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollscope.instrument.binding import SpanTypes


class FullList(list[Any]):
    """Has no room."""

    def extend(self, items: Iterable[Any], /) -> None:
        raise MemoryError

    append = extend


class EmptyingClock(FakeClock):
    """Reads so many times; then there is no memory for what it would give."""

    reads = 10**9

    def mono_ns(self) -> int:
        self.reads -= 1
        if self.reads < 0:
            raise MemoryError
        return super().mono_ns()


class Bench:
    def __init__(self) -> None:
        self.buffers, self.clock = Buffers(), EmptyingClock()
        self.current: ContextVar[Span] = ContextVar("bench", default=NOOP)

    def bind(self) -> SpanTypes:
        return bind_span_types(self.buffers, self.current, SequentialIds(), self.clock)

    def spans(self, types: SpanTypes) -> dict[str, Span]:
        return {
            "span": types.new_span("s", "misc", {}),
            "phase": types.new_phase("p", {}),
            "state": types.new_state("s", "lane", {}),
            "step": types.new_step(1, None, {}),
            "task": types.new_task("k", None, None, {}),
            "session": types.new_session(0, None, None, None, {}),
        }

    def lost(self) -> dict[str, int]:
        counts = self.buffers.take_unrecorded()
        return {kind: number for kind, number in counts.items() if kind != "metric"}


KINDS = ["span", "phase", "state", "step", "task", "session"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reads", [0, 1], ids=["entering", "leaving"])
def test_a_span_that_cannot_be_timed_is_left_out_and_counted(kind: str, reads: int) -> None:
    bench = Bench()
    outer, span = bench.spans(types := bench.bind())["span"], bench.spans(types)[kind]
    with outer:
        bench.clock.reads = 2 * reads if kind == "step" else reads  # a step marks metrics too
        with span:
            pass
        bench.clock.reads = 10**9
        assert bench.current.get() is outer
    assert bench.lost() == {kind: 1}
    assert len(bench.buffers.rows) == ROW
    assert bench.buffers.open == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [None, ValueError()], ids=["ok", "error"])
def test_a_span_that_finds_no_room_at_its_end_is_counted(
    kind: str, error: ValueError | None
) -> None:
    bench = Bench()
    bench.buffers.rows = FullList()
    with bench.spans(bench.bind())[kind] as span:
        pass
    span.__enter__().__exit__(None if error is None else ValueError, error, None)
    assert bench.lost() == {kind: 2}
    assert bench.current.get() is NOOP
    assert bench.buffers.open == {}


def test_a_span_that_was_left_out_names_nothing() -> None:
    bench = Bench()
    span = bench.spans(bench.bind())["span"]
    bench.clock.reads = 0
    with span:
        assert span.ref is None
        span.set(a=1)
    assert bench.buffers.facts == []


def test_what_else_finds_no_memory_is_counted_and_reaches_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with capture(payloads=True) as run:
        recorder = run.tracer._recorder
        assert recorder is not None
        buffers, full = recorder.buffers, FullList()
        with rollscope.span("work") as span:
            was = buffers.facts, buffers.payloads, recorder.add_call
            buffers.facts = buffers.payloads = full
            recorder.add_call = full.extend
            rollscope.annotate(span, reward=1)
            rollscope.payload("p", "text")
            rollscope.count("c")
            rollscope.gauge("g", 1)
            run.tracer.observe("o", 1)
            buffers.facts, buffers.payloads, recorder.add_call = was
        run.tracer.shutdown()
        drops = {what: n for batch in run.batches() for what, n in batch.drops.items()}
    assert drops == {"fact.no_memory": 1, "metric.no_memory": 3, "payload.no_memory": 1}
    (told,) = caplog.messages
    assert "no memory" in told
