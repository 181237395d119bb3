"""The workflow in which the model uses tools until it has an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.instrument import default as tracing
from rollscope.rollout.chat import follow_up_ids, prompt_ids
from rollscope.rollout.phases import Sampler, Scorer
from rollscope.rollout.tool_calls import ToolBox, parse_tool_calls
from rollscope.rollout.transcript import Transcript
from rollscope.rollout.workflow import RolloutWorkflow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollscope.rollout.chat import Tokenizer
    from rollscope.rollout.engine import Engine, GenerationConfig, ModelResponse
    from rollscope.rollout.phases import RewardFunction
    from rollscope.rollout.tool_calls import ParseToolCalls, Tool, ToolCall
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["ToolUseWorkflow"]


class ToolUseWorkflow(RolloutWorkflow):
    """Generates, runs the tools that were asked for, and goes on until none is asked for."""

    def __init__(
        self,
        reward_fn: RewardFunction,
        gconfig: GenerationConfig,
        tokenizer: Tokenizer,
        tools: Mapping[str, Tool],
        max_turns: int = 8,
        tool_timeout_s: float | None = 30.0,
        tool_schemas: Sequence[Any] | None = None,
        parse: ParseToolCalls = parse_tool_calls,
        enable_thinking: bool = False,
        max_result_chars: int = 16_384,
    ) -> None:
        """Prepare the workflow.

        Args:
            reward_fn: As for `RLVRWorkflow`; the completion is all that follows the prompt, results
                of tools included.
            gconfig: How to sample each turn.
            tokenizer: A tokenizer with a chat template that knows the role `tool`.
            tools: Functions, plain or async, by the name that the model uses; they take the call's
                arguments by name. Plain ones run in threads.
            max_turns: How often the model may speak.
            tool_timeout_s: How long one call may take; None for no limit.
            tool_schemas: Told to the chat template as `tools`.
            parse: Reads the calls out of an answer's text.
            enable_thinking: Told to the chat template.
            max_result_chars: How much of a result the model gets to see.

        Raises:
            ValueError: No turn is allowed.
        """
        if max_turns <= 0:
            raise ValueError(f"max_turns must be positive, not {max_turns}")
        self._max_turns = max_turns
        self._parse = parse
        self._tokenizer = tokenizer
        self._sampler = Sampler(gconfig, tokenizer)
        self._scorer = Scorer(reward_fn, tokenizer)
        self._tools = ToolBox(tools, tool_timeout_s, max_result_chars)
        self._template: dict[str, Any] = {"enable_thinking": enable_thinking}
        if tool_schemas is not None:
            self._template["tools"] = list(tool_schemas)

    async def arun_episode(self, engine: Engine, data: Mapping[str, Any]) -> Trajectory | None:
        """Let the model and the tools take turns.

        A conversation that leaves no room for another answer ends as if turns had run out.
        """
        transcript = Transcript(prompt_ids(self._tokenizer, data["messages"], **self._template))
        prompt_len = len(transcript)
        turns = tool_calls = 0
        while True:
            turns += 1
            response = await self._sampler.sample(engine, transcript.input_ids)
            transcript.add_generated(response)
            calls = self._calls(response) if turns < self._max_turns else ()
            if not calls:
                break
            tool_calls += len(calls)
            if not await self._use_tools(calls, response, transcript):
                break
        tracing.current().set(turns=turns, tool_calls=tool_calls)
        tokens = transcript.input_ids
        reward = await self._scorer.score(tokens[:prompt_len], tokens[prompt_len:], data)
        return None if reward is None else transcript.to_trajectory(reward)

    def _calls(self, response: ModelResponse) -> Sequence[ToolCall]:
        # What was cut off by the length limit is no call that the model meant to make.
        if response.stop_reason == "length":
            return ()
        return self._parse(self._tokenizer.decode(response.output_tokens))

    async def _use_tools(
        self, calls: Sequence[ToolCall], response: ModelResponse, transcript: Transcript
    ) -> bool:
        """Run calls and write down their results; false if that leaves no room to go on."""
        messages = await self._tools.answer(calls)
        results = follow_up_ids(self._tokenizer, response.output_tokens, messages, **self._template)
        if self._sampler.gconfig.room_after(len(transcript) + len(results)) <= 0:
            return False
        transcript.add_given(results)
        return True
