from __future__ import annotations

import contextlib
from contextvars import ContextVar

import pytest

from rollscope.instrument import watchdog as module
from rollscope.instrument.binding import bind_span_types
from rollscope.instrument.buffers import Buffers
from rollscope.instrument.spans import NOOP, Span
from rollscope.instrument.stacks import SpanStack
from rollscope.instrument.watchdog import Watchdog
from rollscope.testing import FakeClock, SequentialIds

CURRENT: ContextVar[Span] = ContextVar("watched", default=NOOP)


class Bench:
    def __init__(self, after_s: float) -> None:
        self.clock = FakeClock()
        self.buffers = Buffers()
        self.types = bind_span_types(self.buffers, CURRENT, SequentialIds(), self.clock)
        self.watchdog = Watchdog(self.buffers, CURRENT, self.clock, after_s)
        self.watched: set[int] = set()

    def due_after(self, seconds: float) -> list[int]:
        """Let time pass and give the ids of the spans whose stack is taken."""
        fresh = [one for one in self.buffers.open if one not in self.watched]
        self.watched.update(fresh)
        self.watchdog.watch(fresh)
        self.clock.advance(seconds)
        return [stack.span_id for stack in self.watchdog.due()]


@pytest.fixture(autouse=True)
def plain_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each span a stack; how stacks are taken is tested elsewhere."""

    def capture(current: ContextVar[Span], spans: list[Span]) -> list[SpanStack]:
        return [SpanStack(span.id, "thread", []) for span in spans]

    monkeypatch.setattr(module, "capture_stacks", capture)


def test_a_stack_is_taken_once_a_span_is_open_for_too_long() -> None:
    bench = Bench(after_s=10)
    with bench.types.new_phase("hangs", {}) as span:
        assert bench.due_after(9.9) == []
        assert bench.due_after(0.6) == [span.id]


def test_stacks_come_at_twice_the_age_each_time() -> None:
    bench = Bench(after_s=10)
    with bench.types.new_phase("hangs", {}):
        ages = [second for second in range(1, 1001) if bench.due_after(1)]
    assert ages == [10, 20, 40, 80, 160, 320, 640]


def test_a_day_of_hanging_leaves_a_dozen_stacks() -> None:
    bench = Bench(after_s=10)
    with bench.types.new_phase("hangs", {}):
        assert sum(len(bench.due_after(60)) for _ in range(24 * 60)) <= 14


def test_a_look_that_came_late_takes_one_stack_not_several() -> None:
    bench = Bench(after_s=10)
    with bench.types.new_phase("hangs", {}) as span:
        assert bench.due_after(1000) == [span.id]
        assert bench.due_after(1) == []
        assert bench.due_after(278) == []
        assert bench.due_after(2) == [span.id]


def test_spans_are_looked_at_one_by_one() -> None:
    bench = Bench(after_s=10)
    with bench.types.new_phase("first", {}) as first:
        bench.clock.advance(5)
        with bench.types.new_phase("second", {}) as second:
            assert bench.due_after(5) == [first.id]
            assert bench.due_after(5) == [second.id]
            assert bench.due_after(5) == [first.id]


def test_a_span_that_was_left_is_forgotten() -> None:
    bench = Bench(after_s=10)
    with bench.types.new_phase("hangs", {}):
        assert len(bench.due_after(10)) == 1
    assert bench.due_after(20) == []
    assert not bench.watchdog._due
    assert not bench.watchdog._young


def test_spans_are_not_looked_at_more_than_twice_a_second() -> None:
    bench = Bench(after_s=0.1)
    with bench.types.new_phase("hangs", {}):
        assert len(bench.due_after(0.2)) == 1
        assert bench.due_after(0.4) == []
        assert len(bench.due_after(0.2)) == 1


def test_zero_turns_it_off() -> None:
    bench = Bench(after_s=0)
    with bench.types.new_phase("hangs", {}):
        assert bench.due_after(10_000) == []


def test_a_span_that_is_being_entered_is_passed_over() -> None:
    bench = Bench(after_s=1)
    with bench.types.new_phase("slow to start", {}) as span:
        start_ns = span.start_ns
        del span.start_ns
        assert bench.watchdog.capture_all() == []
        span.start_ns = start_ns
        assert bench.due_after(10) == [span.id]


def test_spans_that_have_ended_are_not_kept_behind_one_that_hangs() -> None:
    bench = Bench(after_s=600)
    with bench.types.new_phase("hangs", {}) as hangs:
        for _ in range(100):
            with contextlib.ExitStack() as brief:
                for number in range(100):
                    brief.enter_context(bench.types.new_phase(f"brief {number}", {}))
                assert bench.due_after(1) == []
        assert len(bench.watchdog._young) < 2_000
        assert bench.due_after(600) == [hangs.id]


def test_all_open_spans_can_be_asked_for_at_any_age() -> None:
    bench = Bench(after_s=10)
    with bench.types.new_phase("a", {}) as a, bench.types.new_phase("b", {}) as b:
        assert [stack.span_id for stack in bench.watchdog.capture_all()] == [a.id, b.id]


def test_a_fault_while_taking_stacks_is_kept_from_the_writer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(current: object, spans: object) -> list[SpanStack]:
        raise RuntimeError("dictionary changed size")

    monkeypatch.delenv("ROLLSCOPE_RAISE")
    monkeypatch.setattr(module, "capture_stacks", fail)
    bench = Bench(after_s=1)
    with bench.types.new_phase("hangs", {}):
        assert bench.due_after(2) == []
    assert len(caplog.messages) == 1
