"""One rollout of the demo: think, ask the calculator or not, answer, be rated."""

import asyncio
from typing import Any, Final

import aiohttp

import rollscope as rs
from rollscope import rollout
from rollscope.demo.language import ASK, END, decode, encode
from rollscope.demo.policy import MODEL
from rollscope.demo.replicas import Replicas
from rollscope.demo.sandbox import Sandbox

__all__ = ["Multiply"]

_MOST_TOKENS: Final = 24
_PATIENCE_S: Final = 5.0


class Multiply(rollout.RolloutWorkflow):
    """Multiplies two numbers.

    Args:
        scorer: Address of the reward service.
        sandbox: Where the calculator runs.
    """

    def __init__(self, scorer: str, sandbox: Sandbox) -> None:
        self._scorer = scorer
        self._sandbox = sandbox
        self._client: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def arun_episode(self, engine: Any, data: Any) -> Any:  # noqa: ANN401
        """Run one episode."""
        self._loop = asyncio.get_running_loop()
        problem: str = data["problem"]
        transcript = rollout.Transcript(encode(f"{problem}="))
        thought = await self._generate(engine, transcript, (ASK, END))
        answer = decode(thought)
        turns = 1
        if thought and thought[-1] == ASK:
            result = await self._sandbox.multiply(problem)
            transcript.add_given(encode(f"{result:0>4}:"))
            answer, turns = decode(await self._generate(engine, transcript, (END,))), 2
        answer = answer.lstrip(".").removesuffix("$")
        reward = await self._rate(problem, answer)
        rs.current().set(turns=turns, answer=answer)
        rs.payload("transcript", decode(transcript.input_ids))
        return transcript.to_trajectory(reward)

    async def _generate(
        self,
        engine: rollout.Engine,
        transcript: rollout.Transcript,
        stops: tuple[int, ...],
    ) -> list[int]:
        sampling = rollout.GenerationConfig(max_new_tokens=_MOST_TOKENS, stop_token_ids=stops)
        request = rollout.ModelRequest(list(transcript.input_ids), sampling)
        with rs.phase("generate", model=MODEL, tokens_in=len(transcript)) as phase:
            response = await rollout.generate(engine, request)
            phase.set(tokens_out=response.output_len)
        transcript.add_generated(response)
        return response.output_tokens

    async def _rate(self, problem: str, answer: str) -> float:
        if self._client is None:
            self._client = aiohttp.ClientSession()
        with rs.phase("reward", function="digits") as phase:
            body = {"problem": problem, "answer": answer}
            async with self._client.post(
                f"{self._scorer}/score", json=body, headers=rs.inject()
            ) as response:
                response.raise_for_status()
                reward = float((await response.json())["reward"])
            phase.set(reward=reward)
        return reward

    def close(self, replicas: Replicas) -> None:
        """Close all connections, from another thread than the one in which episodes run."""
        if self._loop is not None and self._loop.is_running():
            closing = asyncio.run_coroutine_threadsafe(self._close(replicas), self._loop)
            closing.result(_PATIENCE_S)

    async def _close(self, replicas: Replicas) -> None:
        if self._client is not None:
            await self._client.close()
        await replicas.close()
        await self._sandbox.close()
