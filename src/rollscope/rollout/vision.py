"""One prompt with images, one answer, one reward."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

from rollscope.rollout.arrays import choose_arrays
from rollscope.rollout.chat import prompt_text
from rollscope.rollout.phases import Sampler, Scorer
from rollscope.rollout.threads import call_in_thread
from rollscope.rollout.trajectory import MULTI_MODAL
from rollscope.rollout.transcript import Transcript
from rollscope.rollout.workflow import RolloutWorkflow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollscope.rollout.chat import Tokenizer
    from rollscope.rollout.engine import Engine, GenerationConfig
    from rollscope.rollout.phases import RewardFunction
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["VisionRLVRWorkflow", "encode_image"]

_TYPES = "mm_token_type_ids"
_PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")


class VisionRLVRWorkflow(RolloutWorkflow):
    """Answers a prompt with images once and rates the answer."""

    def __init__(
        self,
        reward_fn: RewardFunction,
        gconfig: GenerationConfig,
        tokenizer: Tokenizer,
        processor: Any,  # noqa: ANN401  (each model brings its own)
        enable_thinking: bool = False,
    ) -> None:
        """Prepare the workflow.

        Args:
            reward_fn: Called by name with `prompt`, `completions`, `prompt_ids`, `completion_ids`
                and the item's fields.
            gconfig: How to sample.
            tokenizer: A tokenizer with a chat template.
            processor: Makes tokens and pixel values of text and images, as Hugging Face's do.
            enable_thinking: Told to the chat template.
        """
        self._tokenizer = tokenizer
        self._processor = processor
        self._enable_thinking = enable_thinking
        self._sampler = Sampler(gconfig, tokenizer, processor)
        self._scorer = Scorer(reward_fn, tokenizer)

    async def arun_episode(self, engine: Engine, data: Mapping[str, Any]) -> Trajectory | None:
        """Answer the item once; images are read off the event loop."""
        processed = await call_in_thread(self._process, data)
        image_data = await call_in_thread(lambda: [encode_image(i) for i in data["images"]])
        input_ids = _first_row(processed["input_ids"])
        response = await self._sampler.sample(engine, input_ids, image_data)
        reward = await self._scorer.score(input_ids, response.output_tokens, data, by_name=True)
        if reward is None:
            return None
        transcript = Transcript(input_ids)
        transcript.add_generated(response)
        return {
            **transcript.to_trajectory(reward, ids_dtype="int64"),
            MULTI_MODAL: [_seen(processed)],
            **self._token_types(processed, input_ids, response.output_len),
        }

    def _process(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        text = data["messages"]
        if not isinstance(text, str):
            text = prompt_text(self._tokenizer, text, enable_thinking=self._enable_thinking)
        processed: Mapping[str, Any] = self._processor(
            images=data["images"],
            text=text,
            padding=False,
            return_tensors=choose_arrays().tensor_format,
        )
        return processed

    def _token_types(
        self, processed: Mapping[str, Any], input_ids: Sequence[int], output_len: int
    ) -> Trajectory:
        """Say which tokens stand for images; nothing where neither processor nor ids tell."""
        if _TYPES in processed:
            types = _first_row(processed[_TYPES])
        elif (image_token := getattr(self._processor, "image_token_id", None)) is not None:
            types = [int(token == image_token) for token in input_ids]
        else:
            return {}
        return {_TYPES: choose_arrays().array([[*types, *[0] * output_len]], "int64")}


def encode_image(image: Any) -> str:  # noqa: ANN401  (Pillow's type, without Pillow)
    """Make of an image what an engine takes: base64 of its bytes, of a picture's PNG.

    Text and paths pass through: the engine knows base64, addresses and files.
    """
    if isinstance(image, bytes):
        return base64.b64encode(image).decode()
    if not hasattr(image, "save"):
        return str(image)
    if image.mode not in _PNG_MODES:
        image = image.convert("RGB")
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _seen(processed: Mapping[str, Any]) -> dict[str, Any]:
    """Give what the model sees of the images when it is trained."""
    seen = {"pixel_values": processed["pixel_values"]}
    if "image_grid_thw" in processed:
        seen["image_grid_thw"] = processed["image_grid_thw"]
    return seen


def _first_row(values: Any) -> list[int]:  # noqa: ANN401  (an array or lists)
    rows = values.tolist() if hasattr(values, "tolist") else values
    row = rows[0] if rows and isinstance(rows[0], list) else rows
    return list(row)
