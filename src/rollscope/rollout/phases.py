"""The phases that all workflows share, timed: generating an answer and rating it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from rollscope.instrument import default as tracing
from rollscope.rollout.chat import one_sample
from rollscope.rollout.engine import ModelRequest, generate
from rollscope.rollout.threads import is_async

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollscope.rollout.chat import Tokenizer
    from rollscope.rollout.engine import Engine, GenerationConfig, ModelResponse

__all__ = ["RewardFunction", "Sampler", "Scorer"]

RewardFunction = Callable[..., Any] | str
"""A function, an import path to one, or something awaitable that is called as it is."""

_NAMES = ("prompt", "completions", "prompt_ids", "completion_ids")
_OURS = {*_NAMES, "completion"}


class Sampler:
    """Asks an engine for one answer at a time, in phase `generate`."""

    def __init__(
        self,
        gconfig: GenerationConfig,
        tokenizer: Tokenizer,
        processor: Any = None,  # noqa: ANN401  (only handed on)
    ) -> None:
        self.gconfig = one_sample(gconfig, tokenizer)
        self._tokenizer = tokenizer
        self._processor = processor

    async def sample(
        self, engine: Engine, input_ids: Sequence[int], image_data: Sequence[str] | None = None
    ) -> ModelResponse:
        """Generate one whole answer."""
        request = ModelRequest(
            input_ids=list(input_ids),
            gconfig=self.gconfig,
            tokenizer=self._tokenizer,
            image_data=image_data,
            processor=self._processor,
        )
        with tracing.phase("generate", tokens_in=len(input_ids)) as phase:
            response = await generate(engine, request)
            phase.set(tokens_out=response.output_len, stop_reason=response.stop_reason)
            return response


class Scorer:
    """Rates answers, in phase `reward`."""

    def __init__(self, reward_fn: RewardFunction, tokenizer: Tokenizer) -> None:
        self._rate = _awaitable(reward_fn)
        self._tokenizer = tokenizer

    async def score(
        self,
        prompt_ids: Sequence[int],
        completion_ids: Sequence[int],
        data: Mapping[str, Any],
        *,
        by_name: bool = False,
    ) -> float | None:
        """Rate an answer; None if the reward failed and the sample is to be rejected.

        Args:
            prompt_ids: The tokens of the prompt.
            completion_ids: The tokens of the answer.
            data: The data item, whose fields the function takes by name; those that are called as
                one of our own arguments are left out.
            by_name: Whether the function takes prompt and `completions` by name too.
        """
        prompt = self._tokenizer.decode(prompt_ids)
        completion = self._tokenizer.decode(completion_ids)
        args = (prompt, completion, list(prompt_ids), list(completion_ids))
        fields = {key: value for key, value in data.items() if key not in _OURS}
        with tracing.phase("reward") as phase:
            tracing.payload("prompt", prompt)
            tracing.payload("completion", completion)
            if by_name:
                reward = await self._rate(**fields, **dict(zip(_NAMES, args, strict=True)))
            else:
                reward = await self._rate(*args, **fields)
            if reward is None:
                return None
            phase.set(reward=float(reward))
            return float(reward)


def _awaitable(reward_fn: RewardFunction) -> Callable[..., Awaitable[float | None]]:
    if not isinstance(reward_fn, str) and is_async(reward_fn):
        return reward_fn
    from rollscope.rollout.reward import AsyncRewardWrapper

    return AsyncRewardWrapper(reward_fn)
