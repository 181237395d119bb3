"""Who starts next, and what holds the next one back."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import SettingError
from rollscope.runner import (
    BudgetGate,
    ConcurrencyGate,
    RateGate,
    Runner,
    StalenessGate,
    Status,
    Tier,
)
from rollscope.testing import VirtualTimeLoop, run_virtual
from tests.unit.runner.virtual import Stage, play

if TYPE_CHECKING:
    from collections.abc import Callable


def _started_order(tiers: tuple[Tier, ...], counts: dict[str, int], **settings: Any) -> list[str]:
    """Give the tiers of tasks in the order in which they start, one at a time."""
    order: list[str] = []

    async def work(tier: str) -> None:
        order.append(tier)
        await asyncio.sleep(1.0)

    async def main(stage: Stage) -> None:
        stage.runner.pause("test")
        for tier, count in counts.items():
            for _ in range(count):
                stage.runner.options(tier=tier).submit(work, tier)
        stage.runner.resume("test")
        await stage.runner.await_outcomes(sum(counts.values()))

    play(main, tiers=tiers, concurrency=1, **settings)
    return order


def test_freed_places_are_shared_by_weight() -> None:
    tiers = (Tier(name="a", weight=3.0), Tier(name="b", weight=1.0))
    order = _started_order(tiers, {"a": 100, "b": 100})
    assert Counter(order[:40]) == {"a": 30, "b": 10}
    assert Counter(order[:8]) == {"a": 6, "b": 2}


def test_a_strict_tier_is_always_first() -> None:
    tiers = (Tier(name="a"), Tier(name="first", strict=True))
    order = _started_order(tiers, {"a": 5, "first": 5})
    assert order == ["first"] * 5 + ["a"] * 5


def test_a_tier_that_was_idle_has_no_claim_to_what_it_did_not_use() -> None:
    order: list[str] = []

    async def work(tier: str) -> None:
        order.append(tier)
        await asyncio.sleep(1.0)

    async def main(stage: Stage) -> None:
        for _ in range(60):
            stage.runner.options(tier="train").submit(work, "train")
        await asyncio.sleep(30.5)
        for _ in range(30):
            stage.runner.options(tier="eval").submit(work, "eval")
        await stage.runner.await_outcomes(90)

    play(main, concurrency=1)
    assert Counter(order[31:51]) == {"train": 10, "eval": 10}


def test_waiting_adds_priority_so_that_nothing_starves() -> None:
    order: list[str] = []

    async def work(name: str) -> None:
        order.append(name)
        await asyncio.sleep(10.0)

    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.submit(work, "runs")
        await asyncio.sleep(0.1)
        runner.submit(work, "old")
        for number in range(20):
            runner.options(priority=2).submit(work, f"high{number}")
            await asyncio.sleep(10.0)
        await runner.await_outcomes(22)

    play(main, concurrency=1, ageing_s=30.0)
    # Two points of priority are sixty seconds of waiting, which six tasks of ten seconds take.
    assert 5 <= order.index("old") <= 8


def test_a_budget_is_kept_and_one_too_large_runs_alone() -> None:
    spent = peak = 0

    async def work(cost: int) -> None:
        nonlocal spent, peak
        spent += cost
        peak = max(peak, spent if cost <= 10 else 0)
        assert cost <= 10 or spent == cost
        await asyncio.sleep(1.0)
        spent -= cost

    async def main(stage: Stage) -> None:
        for cost in (4, 5, 3, 50, 6, 4, 1):
            stage.runner.submit(work, cost)
        outcomes = await stage.runner.await_outcomes(7, 100.0)
        assert {one.status for one in outcomes} == {Status.OK}

    gate = BudgetGate(10, lambda task: task.args[0])
    play(main, gates=[gate])
    assert peak == 10
    assert gate.numbers()["spent"] == 0


def test_a_cost_that_cannot_be_had_fails_that_task_only() -> None:
    async def work(cost: object) -> object:
        return cost

    def cost_of(task: Any) -> float:
        return 10.0 / float(task.args[0])

    async def main(stage: Stage) -> None:
        bad, good = stage.runner.submit(work, 0), stage.runner.submit(work, 2)
        assert (await good).is_ok
        assert (await bad).status is Status.FAILED
        assert stage.runner.health().state == "running"

    play(main, gates=[BudgetGate(10, cost_of)])


def test_starts_keep_to_a_rate() -> None:
    starts: list[float] = []

    async def main(loop: VirtualTimeLoop) -> None:
        async def work() -> None:
            starts.append(loop.time())

        gate = RateGate(2.0, burst=3, clock=loop.clock_ns)
        async with Runner(gates=[gate], clock=loop.clock_ns, probe_s=None) as runner:
            for _ in range(9):
                runner.submit(work)
            await runner.await_outcomes(9)
            assert "rate" in runner.stats().binding_s

    run_virtual(main)
    since = [round(start - starts[0], 6) for start in starts]
    assert since == pytest.approx([0, 0, 0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])


def test_a_gate_of_the_users_is_asked_and_given_its_permits_back() -> None:
    @dataclass
    class Pair:
        """Two at a time, by the plain protocol; no key of a dictionary."""

        name: str = "pair"
        out: int = 0
        peak: int = 0
        wakes: list[Any] = field(default_factory=list)

        def available(self) -> int:
            return 2 - self.out

        def acquire(self, task: Any) -> Permit:
            self.out += 1
            self.peak = max(self.peak, self.out)
            return Permit(self)

        def subscribe(self, wake: Any) -> None:
            self.wakes.append(wake)

    class Permit:
        def __init__(self, gate: Pair) -> None:
            self._gate: Pair | None = gate

        def release(self) -> None:
            gate, self._gate = self._gate, None
            if gate is not None:
                gate.out -= 1

    gate, slots = Pair(), ConcurrencyGate(5)

    async def main(stage: Stage) -> None:
        for _ in range(9):
            stage.runner.submit(asyncio.sleep, 1.0)
        await stage.runner.await_outcomes(9, 100.0)
        assert stage.passed_s == pytest.approx(5.0, abs=0.01)

    play(main, gates=[gate, slots])
    assert (gate.out, gate.peak) == (0, 2)
    assert slots.numbers()["held"] == 0


def test_a_task_without_a_tier_is_of_the_first_where_none_is_called_train() -> None:
    async def main(stage: Stage) -> None:
        assert (await stage.runner.submit(asyncio.sleep, 1.0)).tier == "a"
        group = stage.runner.group(1)
        group.submit(asyncio.sleep, 1.0)
        assert (await group).tier == "a"

    play(main, tiers=(Tier(name="a"), Tier(name="b")))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tier(name="a", weight=0),
        lambda: Tier(name="a", weight=-1.0),
        lambda: Tier(name="a", weight=math.nan),
        lambda: Tier(name="a", weight=math.inf),
        lambda: Tier(name="a", limit=-1),
        lambda: Runner(tiers=()),
        lambda: Runner(tiers=(Tier(name="a"), Tier(name="a", limit=2))),
        lambda: Runner(ageing_s=0),
        lambda: Runner(ageing_s=math.nan),
    ],
)
def test_tiers_that_places_cannot_be_shared_by_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(SettingError):
        make()


class _Flaky:
    """A version that cannot be had for a while, as of an engine that starts anew."""

    def __init__(self) -> None:
        self.is_away = False

    def get_version(self) -> int:
        if self.is_away:
            raise ConnectionError("the engine is away")
        return 0


def test_a_version_that_cannot_be_read_holds_tasks_back_and_loses_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = _Flaky()

    async def main(stage: Stage) -> None:
        runner = stage.runner
        await runner.submit(asyncio.sleep, 1.0)
        source.is_away = True
        handle = runner.submit(asyncio.sleep, 1.0)
        await asyncio.sleep(10.0)
        assert runner.health().state == "running"
        assert runner.stats().binding_gate == "staleness"
        source.is_away = False
        assert (await handle).is_ok
        assert stage.passed_s == pytest.approx(12.0, abs=0.25)

    play(main, gates=[StalenessGate.bounded(0, batch=9, version_source=source)])
    assert caplog.text.count("cannot tell what is free") == 1


def test_a_permit_that_cannot_be_given_back_and_numbers_that_cannot_be_had_end_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Permit:
        def release(self) -> None:
            raise ConnectionError("the permit is stuck")

    class Odd:
        name = "odd"
        is_open = True

        def available(self) -> int:
            return int(self.is_open)

        def acquire(self, task: Any) -> Permit:
            return Permit()

        def subscribe(self, wake: Any) -> None:
            pass

        def numbers(self) -> dict[str, float]:
            raise ConnectionError("no numbers")

    gate = Odd()

    async def main(stage: Stage) -> None:
        assert (await stage.runner.submit(asyncio.sleep, 1.0)).is_ok
        gate.is_open = False
        stage.runner.submit(asyncio.sleep, 1.0)
        waiting = asyncio.ensure_future(stage.runner.await_outcomes(1))
        await asyncio.sleep(100.0)
        assert stage.runner.health().state == "running"
        waiting.cancel()

    play(main, gates=[gate])
    assert "the permit is stuck" in caplog.text
    assert "held back by odd" in caplog.text


def test_a_tier_at_its_limit_is_named_as_what_holds_work_back() -> None:
    async def main(stage: Stage) -> None:
        for tier in "aabb":
            stage.runner.options(tier=tier).submit(asyncio.sleep, 4.0)
        await asyncio.sleep(1.0)
        assert stage.runner.stats().binding_gate == "tier:a"
        await stage.runner.await_outcomes(4)
        assert stage.runner.stats().binding_s["tier:a"] == pytest.approx(4.0, abs=0.01)
        assert stage.runner.stats().binding_gate == "queue_empty"

    play(main, tiers=(Tier(name="a", limit=1), Tier(name="b", limit=1)))


class _Source:
    version = 0

    def get_version(self) -> int:
        return self.version


class _EvalRate(RateGate):
    def applies_to(self, tier: str) -> bool:
        return tier == "eval"


@pytest.mark.parametrize("tiers", ["train eval", "eval train"])
def test_a_version_is_read_anew_while_a_rate_holds_another_tier_back(tiers: str) -> None:
    source = _Source()

    async def main(loop: VirtualTimeLoop) -> None:
        rate = _EvalRate(0.001, clock=loop.clock_ns)
        stale = StalenessGate.bounded(0, version_source=source)
        order = [Tier(name=tier) for tier in tiers.split()]
        settings: Any = {"clock": loop.clock_ns, "probe_s": None, "tiers": order}
        async with Runner(gates=[rate, stale], **settings) as runner:
            for tier in ("eval", "train") * 2:
                runner.options(tier=tier).submit(asyncio.sleep, 1.0)
            await runner.await_outcomes(2)
            source.version = 1
            (outcome,) = await runner.await_outcomes(1, 2.0)
            assert outcome.tier == "train"

    run_virtual(main)
