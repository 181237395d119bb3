from __future__ import annotations

import asyncio
import base64
import io
from pathlib import Path
from typing import Any

import pytest

from rollscope.rollout.arrays import choose_arrays
from rollscope.rollout.engine import GenerationConfig
from rollscope.rollout.trajectory import check_trajectory_format, concat_padded
from rollscope.rollout.vision import VisionRLVRWorkflow, encode_image
from tests.unit.rollout.fakes import EOS, FakeEngine, FakeTokenizer

IMAGE_TOKEN = 4
MESSAGES = [{"role": "user", "content": "what?"}]
TEXT = "<|user|>what?<|end|>\n<|assistant|>"


class Picture:
    """Saves itself as a Pillow image does."""

    def __init__(self, mode: str = "RGB") -> None:
        self.mode = mode

    def convert(self, mode: str) -> Picture:
        return Picture(mode)

    def save(self, file: io.BytesIO, *, format: str) -> None:
        file.write(f"{format} in {self.mode}".encode())


class Processor:
    """Puts one token per image before the text."""

    def __init__(self, *, tells_types: bool = True, has_grid: bool = True) -> None:
        self.tells_types, self.has_grid = tells_types, has_grid
        self.calls: list[dict[str, Any]] = []

    def __call__(self, **call: Any) -> dict[str, Any]:
        self.calls.append(call)
        array, images = choose_arrays().array, len(call["images"])
        tokens = [IMAGE_TOKEN] * images + FakeTokenizer().encode(call["text"])
        made = {
            "input_ids": array([tokens], "int64"),
            "pixel_values": array([[0.5, 0.25]] * images, "float32"),
        }
        if self.has_grid:
            made["image_grid_thw"] = array([[1, 2, 2]] * images, "int64")
        if self.tells_types:
            made["mm_token_type_ids"] = array(
                [[2] * images + [0] * (len(tokens) - images)], "int64"
            )
        return made


class Reward:
    def __init__(self, value: float | None = 1.0) -> None:
        self.value = value
        self.seen: dict[str, Any] = {}

    async def __call__(self, **seen: Any) -> float | None:
        self.seen = seen
        return self.value


def run(
    processor: Any, *, reward: Reward | None = None, messages: Any = None, **more: Any
) -> tuple[Any, FakeEngine, dict[str, Any]]:
    engine = FakeEngine("a cat")
    data = {"messages": messages or MESSAGES, "images": [Picture(), Picture("CMYK")], "answer": 4}
    workflow = VisionRLVRWorkflow(
        reward or Reward(), GenerationConfig(), FakeTokenizer(), processor, **more
    )
    return asyncio.run(workflow.arun_episode(engine, data)), engine, data


def test_a_trajectory_takes_the_pixels_along() -> None:
    made, _, _ = run(Processor())
    prompt = [IMAGE_TOKEN, IMAGE_TOKEN, *FakeTokenizer().encode(TEXT)]
    answer = [*FakeTokenizer().encode("a cat"), EOS]
    assert made["input_ids"].tolist() == [[*prompt, *answer]]
    assert made["mm_token_type_ids"].tolist() == [[2, 2] + [0] * (len(prompt) - 2 + len(answer))]
    for name in ("input_ids", "mm_token_type_ids"):
        assert str(made[name].dtype).endswith("int64")
    assert str(made["loss_mask"].dtype).endswith("int32")
    (seen,) = made["multi_modal_input"]
    assert seen["pixel_values"].tolist() == [[0.5, 0.25]] * 2
    assert seen["image_grid_thw"].tolist() == [[1, 2, 2]] * 2
    assert check_trajectory_format(made, batch_size=1)
    assert len(concat_padded([made, made])["multi_modal_input"]) == 2


def test_images_reach_the_engine_as_base64_and_the_processor_as_they_are() -> None:
    processor = Processor()
    _, engine, data = run(processor)
    (request,) = engine.requests
    assert [base64.b64decode(image) for image in request.image_data or ()] == [b"PNG in RGB"] * 2
    assert request.processor is processor
    (call,) = processor.calls
    assert call["images"] is data["images"]
    assert call["text"] == TEXT
    assert call["return_tensors"] == choose_arrays().tensor_format


def test_a_prompt_that_is_text_already_stays_as_it_is() -> None:
    processor = Processor()
    run(processor, messages="written out")
    assert processor.calls[0]["text"] == "written out"


def test_the_reward_is_called_by_name() -> None:
    reward = Reward()
    _, _, data = run(Processor(), reward=reward)
    assert reward.seen["completions"] == "a cat<|end|>"
    assert reward.seen["prompt"].endswith(TEXT)
    assert reward.seen["completion_ids"] == [*FakeTokenizer().encode("a cat"), EOS]
    assert reward.seen["prompt_ids"][:2] == [IMAGE_TOKEN, IMAGE_TOKEN]
    assert {name: reward.seen[name] for name in data} == data


def test_a_reward_of_none_rejects_the_sample() -> None:
    assert run(Processor(), reward=Reward(None))[0] is None


def test_image_tokens_are_found_by_their_id_where_the_processor_does_not_tell() -> None:
    processor: Any = Processor(tells_types=False, has_grid=False)
    made, _, _ = run(processor)
    assert "mm_token_type_ids" not in made
    assert made["multi_modal_input"][0].keys() == {"pixel_values"}
    processor.image_token_id = IMAGE_TOKEN
    made, _, _ = run(processor)
    assert made["mm_token_type_ids"].tolist()[0][:3] == [1, 1, 0]


@pytest.mark.parametrize(
    ("image", "sent"),
    [
        (b"raw", base64.b64encode(b"raw").decode()),
        ("aGk=", "aGk="),
        (Path("/data/cat.png"), "/data/cat.png"),
    ],
)
def test_bytes_are_encoded_and_names_pass_through(image: Any, sent: str) -> None:
    assert encode_image(image) == sent
