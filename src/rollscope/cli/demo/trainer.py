"""The demo's trainer: steps, weight updates, a hanging rollout, and a worker that gets killed."""

import asyncio
import contextlib
import sys

import rollscope as rs
from rollscope.cli.demo.rollouts import RolloutWorker

__all__ = ["Trainer"]

_TASKS_PER_STEP = 8


class Trainer:
    """Runs the steps and, beside them, a second process of rollouts."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._worker = RolloutWorker(seed)
        self._hanging: asyncio.Task[list[rs.SpanRef]] | None = None
        self._neighbour: asyncio.subprocess.Process | None = None

    async def train(self, steps: int) -> None:
        """Train; the hanging rollout and the killed worker are left as they are."""
        await self._start_neighbour()
        rs.gauge("slots", self._worker.slots, pool="trainer 0")
        for step in range(steps):
            with rs.step(step, version=step):
                with rs.state("rollout", lane="trainer_0"), rs.span("batch.wait", category="sync"):
                    await self._roll_out(step)
                if step == steps - 1 and self._neighbour is not None:
                    self._neighbour.kill()
                    await self._neighbour.wait()
                await self._update(step)
            print(f"  step {step} done")

    async def _roll_out(self, step: int) -> None:
        if step == 0:
            task = self._worker.run_task("browse/1", step=step, version=step, hangs=True)
            self._hanging = asyncio.create_task(task)
        async with asyncio.TaskGroup() as group:
            for number in range(_TASKS_PER_STEP):
                key = f"gsm8k/{step * _TASKS_PER_STEP + number}"
                group.create_task(self._roll_out_task(key, step))

    async def _roll_out_task(self, key: str, step: int) -> None:
        for session in await self._worker.run_task(key, step=step, version=step):
            rs.annotate(session, consumed_step=step)

    async def _update(self, step: int) -> None:
        with rs.state("train", lane="trainer_0"), rs.span("trainer.update", category="compute"):
            await asyncio.sleep(0.25)
        with (
            rs.state("sync", lane="trainer_0"),
            rs.span("weights.publish", category="comm", bytes=15_000_000_000),
        ):
            await asyncio.sleep(0.08)
        rs.event("weights.published", version=step + 1)
        rs.gauge("policy_version", step + 1)
        rs.count("train_step_total")

    async def _start_neighbour(self) -> None:
        env = rs.child_env() | {"ROLLSCOPE_ROLE": "rollout", "ROLLSCOPE_RANK": "1"}
        program = [sys.executable, "-m", "rollscope.cli.demo.neighbour", str(self._seed + 1)]
        self._neighbour = await asyncio.create_subprocess_exec(*program, env=env)

    async def stop(self) -> None:
        """End what still runs."""
        if self._neighbour is not None and self._neighbour.returncode is None:
            self._neighbour.kill()
            await self._neighbour.wait()
        if self._hanging is not None:
            self._hanging.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._hanging
