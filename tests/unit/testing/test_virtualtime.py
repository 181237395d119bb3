"""Time on the virtual loop passes at once, in order, and only when nothing else can happen."""

from __future__ import annotations

import asyncio
import time

import pytest

from rollscope.testing import VirtualDeadlock, VirtualTimeLoop, run_virtual


def test_an_hour_takes_no_time() -> None:
    async def main(loop: VirtualTimeLoop) -> float:
        began = loop.clock_ns()
        await asyncio.sleep(3600)
        return (loop.clock_ns() - began) / 1e9

    began = time.monotonic()
    assert 3600 <= run_virtual(main) < 3600.001
    assert time.monotonic() - began < 10


def test_sleepers_wake_in_the_order_of_their_times() -> None:
    async def main(_: VirtualTimeLoop) -> list[float]:
        woken: list[float] = []

        async def sleep(delay_s: float) -> None:
            await asyncio.sleep(delay_s)
            woken.append(delay_s)

        await asyncio.gather(*(sleep(delay_s) for delay_s in (0.3, 1e-6, 100.0, 0.2)))
        return woken

    assert run_virtual(main) == [1e-6, 0.2, 0.3, 100.0]


def test_no_time_passes_while_something_can_be_done() -> None:
    async def main(loop: VirtualTimeLoop) -> int:
        sleeper = asyncio.ensure_future(asyncio.sleep(1))
        began = loop.clock_ns()
        for _ in range(1000):
            await asyncio.sleep(0)
        passed = loop.clock_ns() - began
        await sleeper
        return passed

    assert run_virtual(main) == 0


def test_a_time_limit_is_met_to_the_microsecond() -> None:
    async def main(loop: VirtualTimeLoop) -> float:
        began = loop.time()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(86_400):
                await asyncio.Event().wait()
        return loop.time() - began

    assert run_virtual(main) == pytest.approx(86_400, abs=1e-6)


def test_waiting_for_what_can_never_happen_is_told() -> None:
    async def main(_: VirtualTimeLoop) -> None:
        await asyncio.Event().wait()

    with pytest.raises(VirtualDeadlock):
        run_virtual(main)
