"""A replica's engine: decodes all its requests together, a token each per turn.

Requests join and leave between turns, as in any engine with continuous batching. New weights are
taken between turns too; requests under way are then handed back unfinished, and their owner asks
again for the rest, which the new weights make.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

import rollscope as rs
from rollscope.demo.policy import Policy, windows

__all__ = ["BatchingEngine", "Generation"]

_TURN_S: Final = 0.03
"""What a turn takes, as if the policy were large; a larger batch takes a little longer."""
_PER_REQUEST_S: Final = 0.00004


class Generation(msgspec.Struct):
    """One request and what there is of its answer."""

    tokens: list[int]
    """The prompt, and behind it what was generated."""
    stops: frozenset[int]
    left: int
    done: asyncio.Future[str]
    """Gets why it ended."""
    logprobs: list[float] = msgspec.field(default_factory=list)


class BatchingEngine:
    """Decodes, with one set of weights at a time."""

    def __init__(self, lane: str, seed: int) -> None:
        self.version = 0
        self._lane = lane
        self._policy = Policy()
        self._random = np.random.default_rng(seed)
        self._active: list[Generation] = []
        self._wake = asyncio.Event()

    async def generate(
        self, prompt: Sequence[int], stops: frozenset[int], most: int
    ) -> tuple[list[int], list[float], str]:
        """Give new tokens, their log-probabilities and why they end."""
        end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        one = Generation(list(prompt), stops, most, end)
        self._active.append(one)
        self._wake.set()
        try:
            why = await end
        finally:
            if one in self._active:  # nobody waits for it any more
                self._active.remove(one)
        return one.tokens[len(prompt) :], one.logprobs, why

    def load(self, weights: bytes, version: int) -> None:
        """Take new weights; what is under way is handed back.

        Raises:
            ValueError: They are not weights of this policy.
        """
        self._policy, self.version = Policy.from_bytes(weights), version
        for one in self._active:
            if not one.done.done():
                one.done.set_result("abort")
        self._active.clear()

    async def run(self) -> None:
        """Decode until cancelled."""
        while True:
            with rs.state("idle", lane=self._lane):
                await self._wake.wait()
            with rs.state("generate", lane=self._lane):
                while self._active:
                    self._turn()
                    rs.gauge("engine.running", len(self._active), replica=self._lane)
                    await asyncio.sleep(_TURN_S + _PER_REQUEST_S * len(self._active))
            self._wake.clear()

    def _turn(self) -> None:
        """Give every request its next token."""
        contexts = np.concatenate([windows(one.tokens, [len(one.tokens)]) for one in self._active])
        chosen, logprobs = self._policy.sample(contexts, self._random)
        for one, token, logprob in zip(self._active, chosen, logprobs, strict=True):
            one.tokens.append(int(token))
            one.logprobs.append(float(logprob))
            one.left -= 1
            if token in one.stops:
                one.done.set_result("stop")
            elif one.left <= 0:
                one.done.set_result("length")
        self._active = [one for one in self._active if not one.done.done()]
