"""The plain workflow of reinforcement learning with verifiable rewards: one prompt, one answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rollscope.rollout.chat import prompt_ids
from rollscope.rollout.imports import import_object
from rollscope.rollout.phases import Sampler, Scorer
from rollscope.rollout.transcript import Transcript
from rollscope.rollout.workflow import RolloutWorkflow

if TYPE_CHECKING:
    from rollscope.rollout.chat import Tokenizer
    from rollscope.rollout.engine import Engine, GenerationConfig
    from rollscope.rollout.phases import RewardFunction
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["RLVRWorkflow", "extract_messages", "get_input_ids"]

GetInputIds = Callable[[Any, Any, bool], list[int]]
ExtractPrompt = Callable[[Any], Any]


def extract_messages(data: Mapping[str, Any]) -> Any:  # noqa: ANN401  (what the item holds)
    """Give the conversation of an item: its `messages`."""
    return data["messages"]


def get_input_ids(
    messages: Any,  # noqa: ANN401  (what `data_extract_prompt_fn` gave)
    tokenizer: Tokenizer,
    enable_thinking: bool,
) -> list[int]:
    """Give the tokens of a conversation that the model is to answer."""
    return prompt_ids(tokenizer, messages, enable_thinking=enable_thinking)


class RLVRWorkflow(RolloutWorkflow):
    """Answers a prompt once and rates the answer."""

    def __init__(
        self,
        reward_fn: RewardFunction,
        gconfig: GenerationConfig,
        tokenizer: Tokenizer,
        enable_thinking: bool = False,
        get_input_ids_fn: GetInputIds | str = get_input_ids,
        data_extract_prompt_fn: ExtractPrompt | str = extract_messages,
    ) -> None:
        """Prepare the workflow; functions may be given as import paths.

        Args:
            reward_fn: Called with prompt, completion, both as tokens, and the item's fields by
                name. It runs in another process, unless it is awaitable.
            gconfig: How to sample.
            tokenizer: A tokenizer with a chat template.
            enable_thinking: Told to the chat template.
            get_input_ids_fn: Makes tokens of what the next function gives.
            data_extract_prompt_fn: Takes the prompt out of an item.
        """
        self._tokenizer = tokenizer
        self._sampler = Sampler(gconfig, tokenizer)
        self._scorer = Scorer(reward_fn, tokenizer)
        self._enable_thinking = enable_thinking
        self._get_input_ids: GetInputIds = _function(get_input_ids_fn)
        self._extract_prompt: ExtractPrompt = _function(data_extract_prompt_fn)

    async def arun_episode(self, engine: Engine, data: Mapping[str, Any]) -> Trajectory | None:
        """Answer the item once."""
        prompt = self._extract_prompt(data)
        input_ids = list(self._get_input_ids(prompt, self._tokenizer, self._enable_thinking))
        response = await self._sampler.sample(engine, input_ids)
        reward = await self._scorer.score(input_ids, response.output_tokens, data)
        if reward is None:
            return None
        transcript = Transcript(input_ids)
        transcript.add_generated(response)
        return transcript.to_trajectory(reward)


def _function(given: Callable[..., Any] | str) -> Callable[..., Any]:
    found: Callable[..., Any] = import_object(given) if isinstance(given, str) else given
    return found
