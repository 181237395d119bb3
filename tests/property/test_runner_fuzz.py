"""Whatever is done to a runner, in whatever order, its ledger, permits and ages are right.

A failing seed is in the test's name or message and fails again in the same way. A long run:
`RUNNER_FUZZ_OPERATIONS=200000 pytest tests/property/test_runner_fuzz.py`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import OutcomeTaken, RunnerClosed, UnknownTask, WaitTimeout
from rollscope.runner import Status
from rollscope.testing import VirtualTimeLoop, run_virtual
from tests.property.runner_world import CLEANUP_S, CheckedLoop, World, operations_to_run

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from rollscope.runner.ending import DrainMode
    from rollscope.runner.pausing import PauseMode

OPERATIONS = operations_to_run(32_000)
BATCHES = 8
"""Into how many tests they are split."""
LIFE = 200
"""Operations in one world."""

MOVES = {
    "submit": 20,
    "submit_many": 3,
    "let_time_pass": 14,
    "let_loop_turn": 6,
    "train": 16,
    "wait": 8,
    "wait_for": 4,
    "give_up_waiting": 2,
    "take_ready": 10,
    "cancel": 4,
    "pause": 1,
    "resume": 4,
    "quiesce": 1,
    "move_limit": 2,
}


class Fuzz:
    """One life of a runner in a world."""

    def __init__(self, world: World) -> None:
        self.world, self.rng, self.runner = world, world.rng, world.runner
        self._waiting: list[asyncio.Task[Any]] = []
        self._resumes = 0

    async def live(self, operations: int) -> None:
        names, weights = list(MOVES), list(MOVES.values())
        async with self.runner:
            self.runner.set_version(0)
            for _ in range(operations):
                (name,) = self.rng.choices(names, weights)
                await getattr(self, name)()
                self.world.check()
                self.world.check_bodies()
            if self.rng.random() < 0.6:
                await self._drain()
        self._check_end()
        await self._end_waiting()

    def _spawn(self, waiting: Coroutine[Any, Any, None]) -> None:
        self._waiting.append(asyncio.ensure_future(waiting))

    # --- moves -----------------------------------------------------------------------------------

    async def submit(self) -> None:
        rng = self.rng
        self.world.submit(
            tier=rng.choice(("train", "train", "eval")),
            priority=rng.choice((0, 0, 0, 1, 5)),
            group=rng.choice((None, "a", "b")),
            queue_timeout_s=rng.choice((None, None, None, 0.5, 5.0)),
            attempt_timeout_s=rng.choice((None, None, None, 1.0)),
            timeout_s=rng.choice((None, None, 0.1, 3.0)),
            children=rng.choice(("keep", "cancel")),
        )

    async def submit_many(self) -> None:
        calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
            (fn, args, {}) for _, fn, args in (self.world.pick_call() for _ in range(5))
        ]
        try:
            handles = self.runner.submit_many(calls)
        except RuntimeError:  # full
            return
        self.world.submitted.update(handle.id for handle in handles)

    async def let_time_pass(self) -> None:
        await asyncio.sleep(self.rng.choice((0.001, 0.1, 1.0, 7.0)))

    async def let_loop_turn(self) -> None:
        await asyncio.sleep(0)

    async def train(self) -> None:
        if self.world.trainer is not None:
            self._spawn(self.world.trainer.step(self.runner))
            await asyncio.sleep(0)

    async def wait(self) -> None:
        rng = self.rng
        order = rng.choice(("arrival", "started", "submitted", "shuffled", "oldest_shuffled"))
        where = rng.choice((None, None, lambda one: one.is_ok, lambda one: one.tier == "eval"))
        self._spawn(self._wait(rng.randint(1, 4), rng.choice((0.0, 0.5, 3.0)), order, where))

    async def _wait(self, count: int, timeout_s: float, order: Any, where: Any) -> None:
        loop = self.world.loop
        due = loop.time() + timeout_s
        try:
            outcomes = await self.runner.await_outcomes(count, timeout_s, order, where)
        except WaitTimeout as error:
            assert loop.time() >= due - 1e-6
            assert error.wanted == count  # noqa: PT017  (one of several ways it may end)
            return
        except RunnerClosed:
            return
        assert len(outcomes) == count
        assert where is None or all(map(where, outcomes))
        self.world.take(outcomes)

    async def wait_for(self) -> None:
        if self.world.submitted:
            task_id = self.rng.choice(list(self.world.submitted)[-30:])
            self._spawn(self._wait_for(task_id, self.rng.choice((0.0, 1.0, 10.0))))

    async def _wait_for(self, task_id: int, timeout_s: float) -> None:
        try:
            outcome = await self.runner.await_for(task_id, timeout_s)
        except UnknownTask:
            raise
        except (WaitTimeout, OutcomeTaken, RunnerClosed):
            return
        assert outcome.id == task_id
        self.world.take([outcome])

    async def give_up_waiting(self) -> None:
        """Cancel somebody who waits, at any moment, also when the outcome is on its way."""
        for _ in range(self.rng.randint(0, 3)):
            await asyncio.sleep(0)
        waiting = [one for one in self._waiting if not one.done()]
        if waiting:
            chosen = self.rng.choice(waiting)
            if "Trainer" not in repr(chosen):
                chosen.cancel()

    async def take_ready(self) -> None:
        self.world.take(self.runner.take_ready(self.rng.choice((None, 1, 5))))

    async def cancel(self) -> None:
        rng, runner = self.rng, self.runner
        way = rng.choice(("id", "group", "tag", "where", "older_than", "cut"))
        before = runner.ledger().unfinished
        if way == "id":
            count = runner.cancel(rng.choice(list(self.world.submitted) or [0]))
        elif way == "group":
            count = runner.cancel(group=rng.choice(("a", "b", "nobody")))
        elif way == "tag":
            count = runner.cancel(tag=("kind", rng.choice(("never", "ok", "children"))))
        elif way == "where":
            count = runner.cancel(where=lambda task: task.id % 5 == 0)
        elif way == "older_than":
            count = runner.cancel(older_than=runner.version)
        else:
            count = runner.cut((runner.version or 0) - 1)
        assert 0 <= count <= before

    async def pause(self) -> None:
        modes: tuple[PauseMode, ...] = ("finish", "hold", "abort")
        owner, mode = self.rng.choice("xyz"), self.rng.choice(modes)
        self.runner.pause(owner, mode)
        assert self.runner.is_paused

    async def resume(self) -> None:
        self._resumes += 1
        if self.rng.random() < 0.5:
            assert self.runner.resume(all=True)
        else:
            self.runner.resume(self.rng.choice("xyz"))

    async def quiesce(self) -> None:
        async def pause_until_quiet() -> None:
            async with self.runner.pause(object(), self.rng.choice(("finish", "abort"))) as pause:
                resumes = self._resumes
                is_quiet = await pause.aquiesced(self.rng.choice((0.1, 5.0)))
                if is_quiet and resumes == self._resumes:
                    assert self.runner.ledger().running == 0
                await asyncio.sleep(0.5)

        self._spawn(pause_until_quiet())

    async def move_limit(self) -> None:
        if self.world.limit is not None:
            self.world.slots.set_limit(self.rng.choice((0, 1, 3, 20)))

    # --- the end ---------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Drain with somebody who fetches outcomes and trains: it must come to an end."""
        modes: tuple[DrainMode, ...] = ("finish", "finish", "checkpoint", "cancel")
        mode = self.rng.choice(modes)
        if mode == "finish":
            self.runner.cancel(where=lambda task: "never" in task.args)
            self.world.slots.set_limit(2)
            for waiting in self._waiting:  # those who pause too
                waiting.cancel()
            await asyncio.gather(*self._waiting, return_exceptions=True)
            if self.world.trainer is not None:
                self.world.trainer.is_training = False
            self.runner.resume(all=True)
        draining = asyncio.ensure_future(self.runner.adrain(100_000.0, mode))
        while not draining.done():
            self.world.take(self.runner.take_ready())
            if self.world.trainer is not None:
                await self.world.trainer.step(self.runner)
            await asyncio.sleep(1.0)
        assert (await draining).is_drained

    def _check_end(self) -> None:
        """Everything has ended, exactly once, and holds nothing."""
        assert self.runner.ledger().unfinished == 0
        for waiting in self._waiting:
            if waiting.done() and not waiting.cancelled():
                waiting.result()

    async def _end_waiting(self) -> None:
        world = self.world
        await asyncio.sleep(CLEANUP_S)  # the last who wait learn that it is over
        for waiting in self._waiting:
            if "Trainer" in repr(waiting) or "quiet" in repr(waiting):
                waiting.cancel()
        ended = await asyncio.wait_for(
            asyncio.gather(*self._waiting, return_exceptions=True), timeout=20.0
        )
        faults = [one for one in ended if isinstance(one, Exception)]
        assert not faults, faults
        world.take(self.runner.take_ready())
        assert world.given == world.submitted
        ledger = self.runner.ledger()
        assert (ledger.outbox, ledger.delivered) == (0, ledger.submitted)
        assert world.slots.numbers()["held"] == 0


def fuzz(seed: int, operations: int) -> World:
    worlds: list[World] = []

    async def main(loop: VirtualTimeLoop) -> None:
        assert isinstance(loop, CheckedLoop)
        world = World(seed, loop)
        worlds.append(world)
        loop.check = world.check
        await Fuzz(world).live(operations)
        loop.check = None

    run_virtual(main, CheckedLoop)
    return worlds[0]


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_task_has_one_outcome_and_every_permit_comes_back(batch: int) -> None:
    ended: Counter[str] = Counter()
    consumed = 0
    worlds = max(1, OPERATIONS // BATCHES // LIFE)
    for seed in range(batch * worlds, (batch + 1) * worlds):
        try:
            world = fuzz(seed, LIFE)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        ended += world.ended
        consumed += world.trainer.consumed if world.trainer is not None else 0
    # It has to have been wild enough to mean something.
    statuses = {name.split("/")[0] for name in ended}
    assert statuses >= {Status.OK, Status.FAILED, Status.CANCELLED, Status.TIMEOUT}
    assert consumed > 50
