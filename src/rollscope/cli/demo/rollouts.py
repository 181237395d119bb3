"""The demo's rollouts: instrumented as a user's would be, with sleeps instead of GPUs.

Generation and tools have heavy tails, tools fail now and then, and one browser never answers.
"""

import asyncio
import time
from random import Random

import rollscope as rs
from rollscope.cli.demo.talk import Conversation

__all__ = ["RolloutWorker", "ToolError"]


class ToolError(Exception):
    """A tool's sandbox went away."""


class RolloutWorker:
    """Rolls out tasks, a few sessions at a time."""

    def __init__(self, seed: int, slots: int = 16) -> None:
        self._random = Random(seed)  # noqa: S311  (wants repetition, not secrecy)
        self.slots = slots
        self._free = asyncio.Semaphore(slots)
        self._never = asyncio.Event()

    async def run_task(
        self, key: str, *, step: int, version: int, hangs: bool = False
    ) -> list[rs.SpanRef]:
        """Roll out one prompt four times and name the sessions that are worth training on."""
        async with rs.task(key, step=step), asyncio.TaskGroup() as group:
            samples = [
                group.create_task(
                    self._run_session(
                        sample, version, Conversation(key), hangs=hangs and sample == 2
                    )
                )
                for sample in range(4)
            ]
        return [ref for sample in samples if (ref := sample.result()) is not None]

    async def _run_session(
        self, sample: int, version: int, talk: Conversation, *, hangs: bool
    ) -> rs.SpanRef | None:
        submitted = time.monotonic()
        async with self._free:
            waited_s = round(time.monotonic() - submitted, 6)
            try:
                async with rs.session(
                    sample=sample, version=version, queue_wait_s=waited_s
                ) as session:
                    for turn in range(self._random.randint(1, 3)):
                        tool = self._choose_tool(hangs=hangs)
                        await self._generate(turn, talk, tool)
                        await self._use_tool(tool, talk)
                    with rs.phase("reward", function="judge"):
                        await self._pass_time(20, 0.5)
                    if self._random.random() < 0.2:
                        session.finish("rejected", reason="equal_rewards", reward=0.0)
                        return None
                    session.finish("accepted", reward=round(self._random.random(), 2))
                    return session.ref
            except ToolError:
                return None  # a failed rollout is a record, not the end of the run

    def _choose_tool(self, *, hangs: bool) -> str:
        return "browser" if hangs else self._random.choice(("python", "search"))

    async def _generate(self, turn: int, talk: Conversation, tool: str) -> None:
        with rs.phase("generate", model="policy", turn=turn) as phase:
            rs.payload("messages", talk.so_far())
            tokens = await self._pass_time(90, 0.7)
            phase.set(tokens=tokens)
            rs.observe("answer.tokens", tokens, model="policy")
            rs.payload("completion", [talk.call(tool)])

    async def _use_tool(self, tool: str, talk: Conversation) -> None:
        rs.count("tool.calls", tool=tool)
        with rs.phase("toolcall", tool=tool):
            if tool == "browser":
                await self._browse()
            await self._pass_time(30, 1.0)
            if self._random.random() < 0.02:
                raise ToolError("sandbox is gone")
            talk.answer(tool)

    async def _browse(self) -> None:
        await self._never.wait()

    async def _pass_time(self, median_ms: float, spread: float) -> int:
        delay_s = self._random.lognormvariate(0.0, spread) * median_ms / 1000
        if self._random.random() < 0.02:
            delay_s *= 6
        await asyncio.sleep(delay_s)
        return int(delay_s * 1000)
