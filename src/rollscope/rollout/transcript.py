"""The tokens of one sample in order, those that were given and those that the policy made.

A workflow writes its turns into one and asks it for the trajectory at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollscope.rollout.arrays import choose_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollscope.rollout.arrays import Dtype
    from rollscope.rollout.engine import ModelResponse
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["NO_VERSION", "Transcript"]

NO_VERSION = -1
"""The version of tokens that no policy made."""


class Transcript:
    """The tokens of one sample so far."""

    def __init__(self, prompt_ids: Sequence[int] = ()) -> None:
        self.input_ids: list[int] = []
        self._loss_mask: list[int] = []
        self._logprobs: list[float] = []
        self._versions: list[int] = []
        self.add_given(prompt_ids)

    def __len__(self) -> int:
        return len(self.input_ids)

    def add_given(self, tokens: Sequence[int]) -> None:
        """Add tokens that are not trained on: prompts, retry messages, results of tools."""
        self.input_ids += tokens
        self._loss_mask += [0] * len(tokens)
        self._logprobs += [0.0] * len(tokens)
        self._versions += [NO_VERSION] * len(tokens)

    def add_generated(self, response: ModelResponse) -> None:
        """Add what an engine answered."""
        self.input_ids += response.output_tokens
        self._loss_mask += [1] * response.output_len
        self._logprobs += response.output_logprobs
        self._versions += response.output_versions

    def to_trajectory(self, reward: float, ids_dtype: Dtype = "int32") -> Trajectory:
        """Give the sample as arrays of shape [1, tokens], and its reward of shape [1]."""
        array = choose_arrays().array
        return {
            "input_ids": array([self.input_ids], ids_dtype),
            "loss_mask": array([self._loss_mask], "int32"),
            "logprobs": array([self._logprobs], "float32"),
            "versions": array([self._versions], "int32"),
            "attention_mask": array([[True] * len(self)], "bool"),
            "rewards": array([reward], "float32"),
        }
