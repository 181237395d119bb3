"""The workflow that lets the model try again, for less, after an answer that earned nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollscope.instrument import default as tracing
from rollscope.rollout.chat import follow_up_ids, prompt_ids
from rollscope.rollout.phases import Sampler, Scorer
from rollscope.rollout.transcript import Transcript
from rollscope.rollout.workflow import RolloutWorkflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollscope.rollout.chat import Tokenizer
    from rollscope.rollout.engine import Engine, GenerationConfig
    from rollscope.rollout.phases import RewardFunction
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["RETRY_MESSAGE", "MultiTurnWorkflow"]

RETRY_MESSAGE = (
    "That answer did not count: it is wrong, or it was not in the form that was asked for. "
    "Read the task once more, look for the mistake, and give a new answer."
)


class MultiTurnWorkflow(RolloutWorkflow):
    """Repeats a prompt with a retry message until an answer earns something or turns run out."""

    def __init__(
        self,
        reward_fn: RewardFunction,
        gconfig: GenerationConfig,
        tokenizer: Tokenizer,
        max_turns: int,
        turn_discount: float,
    ) -> None:
        """Prepare the workflow.

        Args:
            reward_fn: As for `RLVRWorkflow`; it sees one turn, with the conversation so far as the
                prompt.
            gconfig: How to sample each turn.
            tokenizer: A tokenizer with a chat template.
            max_turns: How many answers may be given.
            turn_discount: What each retry multiplies the reward with.

        Raises:
            ValueError: No turn is allowed, or the discount is not in (0, 1].
        """
        if max_turns <= 0:
            raise ValueError(f"max_turns must be positive, not {max_turns}")
        if not 0 < turn_discount <= 1:
            raise ValueError(f"turn_discount must be in (0, 1], not {turn_discount}")
        self._max_turns = max_turns
        self._turn_discount = turn_discount
        self._tokenizer = tokenizer
        self._sampler = Sampler(gconfig, tokenizer)
        self._scorer = Scorer(reward_fn, tokenizer)

    async def arun_episode(self, engine: Engine, data: Mapping[str, Any]) -> Trajectory | None:
        """Answer the item, again if need be.

        A conversation that leaves no room for another answer ends as if turns had run out.
        """
        transcript = Transcript(prompt_ids(self._tokenizer, data["messages"]))
        turns = 0
        while True:
            turns += 1
            reward, answer_ids = await self._take_turn(engine, data, transcript)
            if reward is None or reward != 0 or turns == self._max_turns:
                break
            retry = follow_up_ids(
                self._tokenizer, answer_ids, [{"role": "user", "content": RETRY_MESSAGE}]
            )
            if self._sampler.gconfig.room_after(len(transcript) + len(retry)) <= 0:
                break
            transcript.add_given(retry)
        tracing.current().set(turns=turns)
        if reward is None:
            return None
        return transcript.to_trajectory(reward * self._turn_discount ** (turns - 1))

    async def _take_turn(
        self, engine: Engine, data: Mapping[str, Any], transcript: Transcript
    ) -> tuple[float | None, list[int]]:
        input_ids = list(transcript.input_ids)
        response = await self._sampler.sample(engine, input_ids)
        transcript.add_generated(response)
        reward = await self._scorer.score(input_ids, response.output_tokens, data)
        return reward, response.output_tokens
