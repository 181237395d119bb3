"""Off-policy age stays bounded, with a runner, a trainer and dynamic batches together."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import TYPE_CHECKING

import pytest

from rollscope.runner import Reason, Runner, StalenessGate, Status, Verdict
from rollscope.runner.compat import StalenessManager
from tests.unit.runner.virtual import Stage, play, turn_until

if TYPE_CHECKING:
    from rollscope.runner import Outcome

BATCH, STALENESS = 8, 1


class Loop:
    """A trainer that takes batches of accepted and rejected items, and the ages it sees."""

    def __init__(self, stage: Stage, gate: StalenessGate, steps: int) -> None:
        self.runner, self.gate, self.steps = stage.runner, gate, steps
        self.rng = random.Random(3)
        self.ages: list[int] = []
        self.overtaken = 0
        self.window = 0

    async def rollout(self) -> object:
        await asyncio.sleep(self.rng.choice((1, 2, 3, 5, 8, 60)))
        return 1 if self.rng.random() < 0.3 else Verdict(Status.REJECTED, Reason.FILTERED)

    async def run(self) -> None:
        runner, newest, version = self.runner, -1, 0
        runner.set_version(0)
        while version < self.steps:
            while runner.ledger().queued < 2 * BATCH:
                runner.submit(self.rollout)
            batch: list[Outcome] = []
            for _ in range(BATCH):
                (outcome,) = await runner.await_outcomes(1)
                assert outcome.started_ns is not None
                assert outcome.version_start is not None
                if outcome.started_ns < newest:
                    self.overtaken += 1
                else:
                    self.ages.append(version - outcome.version_start)
                newest = max(newest, outcome.started_ns)
                batch.append(outcome)
                report = self.gate.consumed if outcome.is_ok else self.gate.filtered
                report(1)
                out = runner.ledger().running + runner.ledger().outbox + len(batch)
                self.window = max(self.window, out)
            if any(outcome.is_ok for outcome in batch):
                await asyncio.sleep(self.rng.uniform(0, 5))
                version += 1
                runner.set_version(version)


def test_dynamic_batches_stay_fresh_over_a_thousand_steps() -> None:
    gate = StalenessGate.bounded(STALENESS, batch=BATCH, dynamic=True)

    async def main(stage: Stage) -> Loop:
        loop = Loop(stage, gate, 1_000)
        await loop.run()
        return loop

    loop = play(main, gates=[gate])
    assert max(loop.ages) <= STALENESS
    assert loop.window <= (STALENESS + 1) * BATCH
    assert len(loop.ages) > 2_000
    assert loop.overtaken > 0


def test_a_version_change_starts_what_waits_at_once() -> None:
    gate = StalenessGate.bounded(0, batch=1)

    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        for _ in range(2):
            runner.submit(asyncio.sleep, 1.0)
        await runner.await_outcomes(1)
        await asyncio.sleep(10.0)
        assert runner.ledger().queued == 1
        before = stage.loop.clock_ns()
        runner.set_version(1)
        await turn_until(lambda: runner.ledger().running == 1)
        assert stage.loop.clock_ns() - before < 1_000_000
        await runner.await_outcomes(1)

    play(main, gates=[gate])


def test_a_version_that_nobody_announces_is_seen_within_a_fifth_of_a_second() -> None:
    class Source:
        version = 0
        asked = 0

        def get_version(self) -> int:
            self.asked += 1
            return self.version

    source = Source()
    gate = StalenessGate.bounded(0, batch=1, version_source=source)

    async def main(stage: Stage) -> None:
        runner = stage.runner
        for _ in range(2):
            runner.submit(asyncio.sleep, 1.0)
        await runner.await_outcomes(1)
        await asyncio.sleep(10.05)
        source.version = 1
        before = stage.loop.time()
        await turn_until(lambda: runner.ledger().running == 1, 0.001)
        assert stage.loop.time() - before <= 0.21
        await runner.await_outcomes(1)
        asked = source.asked
        await asyncio.sleep(1000.0)  # nothing waits, so nobody asks
        assert source.asked - asked < 5

    play(main, gates=[gate])


def test_capacity_comes_from_one_counter_set_whoever_is_asked() -> None:
    class Source:
        def get_version(self) -> int:
            return 0

    manager = StalenessManager(Source(), 4, 2, 1)
    gate = StalenessGate(manager)

    async def main(stage: Stage) -> None:
        runner, seen = stage.runner, deque([(4, 4)])
        for _ in range(3):
            manager.on_rollout_enqueued()
            runner.submit(asyncio.sleep, 1.0)
        await asyncio.sleep(0.5)
        seen.append((manager.get_capacity(), gate.available()))
        await runner.await_outcomes(3)
        seen.append((manager.get_capacity(), gate.available()))
        assert list(seen) == [(4, 4), (1, 1), (1, 1)]
        assert manager.get_stats().accepted == 3
        assert manager.get_stats().running == manager.get_stats().enqueued == 0

    play(main, gates=[gate])


def test_tasks_that_are_tried_again_or_cancelled_lose_no_room() -> None:
    gate = StalenessGate.bounded(0, batch=3)

    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        for _ in range(10):
            handles = [runner.submit(asyncio.sleep, 100.0) for _ in range(3)]
            await asyncio.sleep(1.0)
            assert gate.available() == 0
            async with runner.pause(mode="abort") as pause:
                assert await pause.aquiesced(10.0)
                assert gate.available() == 3
            await asyncio.sleep(1.0)
            for handle in handles:
                runner.cancel(handle.id)
            await runner.await_outcomes(3)
            assert gate.available() == 3

    play(main, gates=[gate])


def test_what_is_too_old_at_delivery_is_dropped_marked_or_run_again() -> None:
    async def outcome_of(runner: Runner) -> Outcome:
        runner.set_version(0)
        handle = runner.submit(asyncio.sleep, 1.0, 7)
        await asyncio.sleep(5.0)
        runner.set_version(2)  # time in the outbox counts
        return await handle

    def with_policy(policy: str) -> Outcome:
        return play(lambda stage: outcome_of(stage.runner), max_age=1, age_policy=policy)

    dropped = with_policy("drop")
    assert (dropped.status, dropped.reason) == (Status.STALE, Reason.TOO_OLD)
    marked = with_policy("mark")
    assert (marked.status, marked.age) == (Status.OK, 2)
    assert "2 versions old" in marked.detail
    accepted = with_policy("accept")
    assert (accepted.status, accepted.detail, accepted.age) == (Status.OK, "", 2)
    again = with_policy("requeue")
    assert (again.status, again.age, again.version_start) == (Status.OK, 0, 2)


def test_a_straggler_that_ends_too_old_is_run_again_without_reaching_who_waits() -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        handle = runner.submit(asyncio.sleep, 10.0)
        await asyncio.sleep(1.0)
        runner.set_version(2)
        outcome = await handle
        assert (outcome.age, outcome.versions, outcome.attempts) == (0, (2,), 2)
        assert stage.passed_s == pytest.approx(20.0, abs=0.01)
        assert runner.ledger().adds_up()
        assert runner.ledger().submitted == 1

    play(main, max_age=1, age_policy="requeue")


def test_what_is_run_again_takes_up_the_window_once() -> None:
    gate = StalenessGate.bounded(1, batch=2)

    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        runner.submit(asyncio.sleep, 1.0)
        runner.options(tier="eval").submit(asyncio.sleep, 1.0)
        await asyncio.sleep(2.0)
        assert gate.numbers()["outstanding"] == 1
        runner.set_version(2)
        await asyncio.sleep(2.0)
        assert gate.numbers()["outstanding"] == 1

    play(main, max_age=1, age_policy="requeue", gates=[gate])


def test_a_version_after_the_end_takes_no_outcome_back() -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        runner.submit(asyncio.sleep, 1.0, "finished")
        await asyncio.sleep(2.0)
        await runner.aclose()
        runner.set_version(9)
        assert [one.value for one in runner.take_ready()] == ["finished"]
        assert runner.ledger().unfinished == 0

    play(main, max_age=1, age_policy="requeue")


@pytest.mark.parametrize(
    ("policy", "counts"),
    [("drop", {"stale/too_old": 1, "ok/accepted": 1}), ("requeue", {"ok/accepted": 2})],
)
def test_statistics_count_each_task_once_as_it_was_handed_over(
    policy: str, counts: dict[str, int]
) -> None:
    async def main(stage: Stage) -> None:
        runner = stage.runner
        runner.set_version(0)
        runner.submit(asyncio.sleep, 1.0)
        await asyncio.sleep(2.0)
        runner.set_version(2)
        await runner.submit(asyncio.sleep, 1.0)
        await runner.await_outcomes(1)
        assert runner.stats().outcomes == counts
        by_status = (await runner.adrain()).outcomes
        assert by_status == {key.split("/")[0]: count for key, count in counts.items()}

    play(main, max_age=1, age_policy=policy)
