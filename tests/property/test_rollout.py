"""Trajectories and answers against doing the same by hand: joined, padded, cut anywhere."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollscope.rollout.arrays import choose_arrays
from rollscope.rollout.engine import GenerationConfig, ModelRequest, ModelResponse, generate
from rollscope.rollout.trajectory import check_trajectory_format, concat_padded
from rollscope.rollout.transcript import Transcript

TOKENS = st.lists(st.integers(1, 99), min_size=1, max_size=6)
BATCHES = st.lists(TOKENS, min_size=1, max_size=5)


class CutEngine:
    """Answers with fixed tokens, interrupted after given numbers of them."""

    def __init__(self, tokens: list[int], cuts: list[int]) -> None:
        self.tokens, self.cuts, self.done = tokens, list(cuts), 0
        self.version = 0

    async def agenerate(self, req: ModelRequest) -> ModelResponse:
        assert req.input_ids == [100, *self.tokens[: self.done]]
        size = self.cuts.pop(0) if self.cuts else len(self.tokens)
        part = self.tokens[self.done :][: min(size, req.gconfig.max_new_tokens)]
        self.done += len(part)
        self.version += 1
        is_whole = self.done == len(self.tokens) and not self.cuts
        return ModelResponse(
            req.input_ids,
            part,
            [-float(token) for token in part],
            [self.version] * len(part),
            "stop" if is_whole else "abort",
        )

    def get_version(self) -> int:
        return self.version


@given(TOKENS, st.lists(st.integers(1, 4), max_size=3), st.integers(1, 8))
def test_an_answer_is_the_same_wherever_it_is_cut(
    tokens: list[int], cuts: list[int], limit: int
) -> None:
    cuts = cuts[: len(tokens) - 1]
    engine = CutEngine(tokens, cuts)
    config = GenerationConfig(max_new_tokens=limit)
    response = asyncio.run(generate(engine, ModelRequest([100], config)))
    assert response.output_tokens == tokens[:limit]
    assert response.output_logprobs == [-float(token) for token in tokens[:limit]]
    assert response.output_versions == sorted(response.output_versions)
    assert len(response.output_versions) == response.output_len
    assert response.stop_reason in ("stop", "length")


@given(BATCHES)
def test_joined_samples_are_those_that_went_in_and_nothing_else(samples: list[list[int]]) -> None:
    choose_arrays("numpy")
    made = [Transcript(tokens).to_trajectory(float(len(tokens))) for tokens in samples]
    joined: dict[str, Any] = concat_padded(made)
    longest = max(map(len, samples))
    assert check_trajectory_format(joined, batch_size=len(samples), expected_keys=made[0])
    for row, tokens in enumerate(samples):
        spare = longest - len(tokens)
        assert joined["input_ids"][row].tolist() == tokens + [0] * spare
        assert joined["attention_mask"][row].tolist() == [True] * len(tokens) + [False] * spare
        assert joined["rewards"][row] == len(tokens)


@given(BATCHES, st.integers(1, 4))
def test_joining_in_parts_is_joining_at_once(samples: list[list[int]], split: int) -> None:
    choose_arrays("numpy")
    made = [Transcript(tokens).to_trajectory(1.0) for tokens in samples]
    parts = [part for part in (made[:split], made[split:]) if part]
    at_once, in_parts = concat_padded(made), concat_padded([concat_padded(part) for part in parts])
    assert {key: value.tolist() for key, value in at_once.items()} == {
        key: value.tolist() for key, value in in_parts.items()
    }
