"""Time on a GPU, with a stand-in for torch whose device runs late."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rollscope.integrations import cuda
from rollscope.testing import Capture, FakeClock, capture

SECOND = 1_000_000_000


class Device:
    """A GPU that does what it is given only when told, at times of its own."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.events: list[Event] = []
        self.is_available = True

    def finish(self, *after_s: float) -> None:
        """Let events happen so many seconds after the clock's beginning."""
        waiting = [event for event in self.events if event.at_ns is None]
        for event, at_s in zip(waiting, after_s, strict=True):
            event.at_ns = SECOND + round(at_s * SECOND)


class Event:
    def __init__(self, device: Device) -> None:
        self._device = device
        self.at_ns: int | None = None

    def record(self) -> None:
        self._device.events.append(self)

    def synchronize(self) -> None:
        self.at_ns = self._device.clock.mono_ns()

    def query(self) -> bool:
        return self.at_ns is not None

    def elapsed_time(self, other: Event) -> float:
        assert self.at_ns is not None
        assert other.at_ns is not None
        return (other.at_ns - self.at_ns) / 1e6


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def device(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device(clock)
    idle = SimpleNamespace(query=lambda: all(event.query() for event in made.events))
    torch = SimpleNamespace(
        cuda=SimpleNamespace(
            Event=lambda enable_timing: Event(made),
            is_available=lambda: made.is_available,
            is_initialized=lambda: True,
            current_device=lambda: 0,
            current_stream=lambda device: idle,
            device=lambda device: _nothing(),
            synchronize=lambda: None,
        )
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(cuda, "_devices", cuda._Devices())
    return made


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def run(clock: FakeClock) -> Iterator[Capture]:
    with capture(clock=clock) as captured:
        yield captured


def lanes(run: Capture) -> list[tuple[Any, ...]]:
    return [
        (row.name, row.lane, row.start_ns - FakeClock().wall_ns(), row.duration_s)
        for row in run.spans()
        if row.lane is not None
    ]


def plain(run: Capture) -> list[float | None]:
    return [row.duration_s for row in run.spans() if row.lane is None]


def span_of(clock: FakeClock, name: str, seconds: float) -> None:
    with cuda.span(name, layer=3):
        clock.advance(seconds)


def test_work_is_shown_when_the_device_did_it(
    clock: FakeClock, device: Device, run: Capture
) -> None:
    span_of(clock, "forward", 0.1)
    assert lanes(run) == []

    device.finish(0.5, 2.0)
    span_of(clock, "backward", 0.1)

    assert lanes(run) == [("forward", "cuda:0", SECOND // 2, 1.5)]
    assert plain(run) == [0.1, 0.1]


def test_flush_records_the_rest(clock: FakeClock, device: Device, run: Capture) -> None:
    span_of(clock, "forward", 0.1)
    device.finish(0.2, 0.3)
    cuda.flush()

    assert len(lanes(run)) == 1


def test_an_old_anchor_is_replaced_without_waiting_for_the_device(
    clock: FakeClock, device: Device, run: Capture
) -> None:
    span_of(clock, "a", 1.0)
    span_of(clock, "b", 9.0)
    device.finish(0.0, 8.0, 8.5, 9.5)
    span_of(clock, "c", 0.1)
    device.finish(10.0, 10.5)
    span_of(clock, "d", 0.1)

    assert [(name, start // 10**8) for name, _, start, _ in lanes(run)] == [
        ("a", 0), ("b", 85), ("c", 100)
    ]  # fmt: skip


def test_without_a_device_it_is_a_plain_span(
    clock: FakeClock, device: Device, run: Capture
) -> None:
    device.is_available = False
    span_of(clock, "forward", 0.1)

    assert lanes(run) == []
    assert len(plain(run)) == 1


def test_a_torch_that_fails_does_not_reach_the_program(
    clock: FakeClock, device: Device, run: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROLLSCOPE_RAISE")

    def fail() -> bool:
        raise RuntimeError("CUDA error")

    monkeypatch.setattr(sys.modules["torch"].cuda, "is_available", fail)
    span_of(clock, "forward", 0.1)

    assert len(plain(run)) == 1


def test_beyond_the_bound_work_is_counted_not_held(
    clock: FakeClock, device: Device, run: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "_MOST_PENDING", 2)
    for _ in range(5):
        span_of(clock, "forward", 0.1)

    assert cuda._devices.untimed == 3
