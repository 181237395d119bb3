from __future__ import annotations

from rollscope.rollout.engine import ModelResponse
from rollscope.rollout.trajectory import check_trajectory_format
from rollscope.rollout.transcript import Transcript


def test_given_and_generated_tokens_are_told_apart() -> None:
    transcript = Transcript([1, 2])
    transcript.add_generated(ModelResponse([1, 2], [3], [-0.5], [7]))
    transcript.add_given([4])
    transcript.add_generated(ModelResponse([], [5, 6], [-0.25, -1.0], [8, 9]))
    made = transcript.to_trajectory(0.5)
    assert {key: value.tolist() for key, value in made.items()} == {
        "input_ids": [[1, 2, 3, 4, 5, 6]],
        "loss_mask": [[0, 0, 1, 0, 1, 1]],
        "logprobs": [[0.0, 0.0, -0.5, 0.0, -0.25, -1.0]],
        "versions": [[-1, -1, 7, -1, 8, 9]],
        "attention_mask": [[True] * 6],
        "rewards": [0.5],
    }
    assert check_trajectory_format(made, batch_size=1)


def test_each_array_has_its_type() -> None:
    made = Transcript([1]).to_trajectory(1.0, ids_dtype="int64")
    assert {key: str(value.dtype).rpartition(".")[2] for key, value in made.items()} == {
        "input_ids": "int64",
        "loss_mask": "int32",
        "logprobs": "float32",
        "versions": "int32",
        "attention_mask": "bool",
        "rewards": "float32",
    }
