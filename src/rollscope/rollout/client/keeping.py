"""The interactions of one session: kept in order, linked, rewarded, exported."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from rollscope.rollout.chat import Message
from rollscope.rollout.client.interaction import Interaction
from rollscope.rollout.client.messages import conversation_keys
from rollscope.rollout.engine import ModelResponse

__all__ = ["ExportStyle", "InteractionKeeper"]

ExportStyle: TypeAlias = Literal["individual", "concat"]


class InteractionKeeper:
    """Base of clients: keeps what was asked and answered, in the order of asking."""

    def __init__(self) -> None:
        self._asked: dict[int, Interaction] = {}
        """By the number of the question, so that they stay in the order of asking."""
        self._asked_count = 0
        self._by_id: dict[str, Interaction] = {}
        """The answered ones, in the order of answering."""
        self._by_end: dict[int, Interaction] = {}
        """By the key of the whole conversation, answer included."""
        self._is_discounted = False

    @property
    def interactions(self) -> dict[str, Interaction]:
        """The answered ones, by id."""
        return {kept.id: kept for kept in self._asked.values() if kept.is_complete}

    def set_reward(self, interaction_id: str, reward: float, /) -> None:
        """Say what one answer was worth.

        Raises:
            KeyError: There is no such interaction.
        """
        if interaction_id not in self._by_id:
            raise KeyError(f"no interaction {interaction_id!r} was kept")
        self._by_id[interaction_id].reward = float(reward)

    def set_last_reward(self, reward: float, /) -> None:
        """Say what the last answer was worth.

        Raises:
            RuntimeError: Nothing was answered yet.
        """
        last = next((kept for kept in reversed(self._asked.values()) if kept.is_complete), None)
        if last is None:
            raise RuntimeError("there is no answer yet that could be given a reward")
        last.reward = float(reward)

    def apply_reward_discount(self, turn_discount: float = 1.0) -> dict[str, Interaction]:
        """Pass rewards on to earlier answers, backwards: `reward[i] += reward[i+1] * discount`.

        An answer without a reward counts as 0.

        Raises:
            RuntimeError: It was done before; twice would count rewards twice.
        """
        if self._is_discounted:
            raise RuntimeError("the reward discount was applied already")
        self._is_discounted = True
        later = 0.0
        for interaction in reversed(self.interactions.values()):
            later = interaction.reward = (interaction.reward or 0.0) + later * turn_discount
        return self.interactions

    def export_interactions(self, style: ExportStyle = "individual") -> dict[str, Interaction]:
        """Give what to train on, by id.

        Args:
            style: `individual`: each answer is a sample. `concat`: each conversation is one, with
                all its answers, under the id and with the reward of its last. A conversation is
                split where its tokens do not continue those before.

        Raises:
            ValueError: There is no such style.
        """
        if style == "individual":
            return self.interactions
        if style != "concat":
            raise ValueError(f"interactions are exported individual or concat, not {style!r}")
        continued = {
            id(kept.parent)
            for kept in self.interactions.values()
            if kept.parent is not None and kept.extends(kept.parent)
        }
        return {
            key: dataclasses.replace(kept, is_joined=True)
            for key, kept in self.interactions.items()
            if id(kept) not in continued
        }

    @contextmanager
    def _keeping(self, messages: list[Message]) -> Iterator[Interaction]:
        """Keep an interaction while it is made; without an answer it is removed again."""
        self._asked_count = number = self._asked_count + 1
        interaction = Interaction(f"asked-{number}", messages, [], parent=self._parent_of(messages))
        self._asked[number] = interaction
        try:
            yield interaction
        finally:
            if not interaction.is_complete:
                del self._asked[number]

    def _complete(
        self,
        interaction: Interaction,
        answer_id: str,
        answer: list[Message],
        response: ModelResponse | None = None,
    ) -> None:
        """Add the answer, under the id that the caller sees unless another answer has it."""
        if answer_id and answer_id not in self._by_id:
            interaction.id = answer_id
        interaction.answer, interaction.response = answer, response
        self._by_id[interaction.id] = interaction
        end = conversation_keys([*interaction.messages, *answer])[-1]
        self._by_end[end] = interaction

    def _after(self, previous_id: str | None, messages: list[Message]) -> list[Message]:
        """Give the conversation in which messages follow an earlier answer, if that is known."""
        previous = None if previous_id is None else self._by_id.get(previous_id)
        if previous is None:
            return messages
        return [*previous.messages, *previous.answer, *messages]

    def _parent_of(self, messages: list[Message]) -> Interaction | None:
        """Find the longest conversation that these messages go on from."""
        keys = conversation_keys(messages)[:-1]
        return next((self._by_end[key] for key in reversed(keys) if key in self._by_end), None)
