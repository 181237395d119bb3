"""A replica's engine: requests decode together, and new weights hand unfinished ones back."""

import asyncio

import pytest

from rollscope.demo import batching
from rollscope.demo.batching import BatchingEngine
from rollscope.demo.language import END, encode
from rollscope.demo.policy import Policy


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_TURN_S", 0.0)


def ending_policy() -> Policy:
    """Give a policy that ends every answer at once."""
    policy = Policy()
    policy.weights[:] = 0.0
    policy.weights[-1, :, END] = 50.0
    return policy


async def decoding(engine: BatchingEngine, *requests: tuple[list[int], int]) -> list[str]:
    running = asyncio.create_task(engine.run())
    answers = await asyncio.gather(
        *(engine.generate(prompt, frozenset({END}), most) for prompt, most in requests)
    )
    running.cancel()
    for tokens, logprobs, _ in answers:
        assert len(tokens) == len(logprobs)
    return [why for _, _, why in answers]


def test_an_answer_stops_where_it_should_or_at_its_limit() -> None:
    async def ask() -> list[str]:
        engine = BatchingEngine("replica_0", seed=1)
        engine.load(ending_policy().to_bytes(), 1)
        stopped = await decoding(engine, (encode("11*11="), 5))
        never = Policy()
        never.weights[-1, :, END] = -50.0
        engine.load(never.to_bytes(), 2)
        assert engine.version == 2
        return stopped + await decoding(engine, (encode("11*11="), 5), (encode("12*12="), 3))

    assert asyncio.run(ask()) == ["stop", "length", "length"]


def test_new_weights_hand_back_what_is_under_way() -> None:
    async def ask() -> tuple[list[int], list[float], str]:
        engine = BatchingEngine("replica_0", seed=1)
        asked = asyncio.create_task(engine.generate(encode("11*11="), frozenset(), 10_000))
        running = asyncio.create_task(engine.run())
        for _ in range(1000):
            if engine._active and len(engine._active[0].logprobs) >= 3:
                break
            await asyncio.sleep(0)
        engine.load(Policy().to_bytes(), 1)
        answer = await asked
        running.cancel()
        return answer

    tokens, logprobs, why = asyncio.run(ask())
    assert why == "abort"
    assert len(tokens) == len(logprobs) >= 3
