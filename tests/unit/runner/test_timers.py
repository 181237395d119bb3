"""Timers on a loop that goes by milliseconds, and so rings early by a part of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollscope.runner.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable


class CoarseLoop:
    """Rings when told to; keeps what it was asked for."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.asked: list[tuple[float, Callable[[], object]]] = []

    def call_later(self, delay_s: float, act: Callable[[], object], **_: Any) -> CoarseLoop:
        self.asked.append((delay_s, act))
        return self

    def cancel(self) -> None:
        self.asked.pop()

    def ring(self, at_ns: int) -> None:
        self.now_ns = at_ns
        self.asked.pop()[1]()


def fail(error: BaseException) -> None:
    raise error


@pytest.fixture
def loop() -> CoarseLoop:
    return CoarseLoop()


@pytest.fixture
def timers(loop: CoarseLoop) -> Timers:
    timers = Timers(lambda: loop.now_ns, fail)
    timers.bind(loop)  # type: ignore[arg-type]
    return timers


def test_a_timer_that_rings_early_asks_for_a_whole_tick(loop: CoarseLoop, timers: Timers) -> None:
    rang: list[int] = []
    timers.after(0.01, lambda: rang.append(loop.now_ns))
    loop.ring(9_700_000)
    assert rang == []
    assert [delay_s for delay_s, _ in loop.asked] == [0.001]
    loop.ring(10_700_000)
    assert rang == [10_700_000]
    assert loop.asked == []


def test_a_timer_that_is_due_after_another_rings_at_its_time(
    loop: CoarseLoop, timers: Timers
) -> None:
    rang: list[str] = []
    timers.after(0.01, lambda: rang.append("first"))
    timers.after(0.0103, lambda: rang.append("second"))
    loop.ring(10_000_000)
    assert rang == ["first"]
    assert [delay_s for delay_s, _ in loop.asked] == pytest.approx([0.0003])
