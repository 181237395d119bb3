"""One call of a model, kept with everything that training needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollscope.rollout.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollscope.rollout.chat import Message
    from rollscope.rollout.engine import ModelResponse
    from rollscope.rollout.trajectory import Trajectory

__all__ = ["Interaction"]


@dataclass(eq=False, slots=True)
class Interaction:
    """A conversation, the answer to it, and what the answer was worth."""

    id: str
    """As in the answer that the caller got."""
    messages: list[Message]
    """What the model was asked."""
    answer: list[Message]
    """What it said; empty until it has."""
    response: ModelResponse | None = None
    """The tokens of prompt and answer; None if the server did not tell them."""
    reward: float | None = None
    parent: Interaction | None = None
    """The interaction that this one goes on from: its messages and answer come first in ours."""
    is_joined: bool = False
    """Whether the answers before this one count as part of the sample."""

    @property
    def is_complete(self) -> bool:
        """Whether the model has answered."""
        return bool(self.answer)

    @property
    def tokens(self) -> list[int]:
        """All tokens, of prompt and answer.

        Raises:
            ValueError: They are not known.
        """
        response = self._known()
        return [*response.input_tokens, *response.output_tokens]

    def extends(self, other: Interaction) -> bool:
        """Say whether the very tokens of another interaction are the beginning of ours.

        A chat template may write earlier answers otherwise than the model did, so a conversation
        that goes on need not have tokens that do.
        """
        if self.response is None or other.response is None:
            return False
        before = other.tokens
        return self.response.input_tokens[: len(before)] == before

    def to_tensor_dict(self) -> Trajectory:
        """Give it as a trajectory of shape [1, tokens]; without a reward it was worth 0.

        Raises:
            ValueError: The tokens are not known.
        """
        transcript = Transcript()
        for part in reversed(list(self._parts())):
            response = part._known()
            transcript.add_given(response.input_tokens[len(transcript) :])
            transcript.add_generated(response)
        return transcript.to_trajectory(self.reward or 0.0)

    def _parts(self) -> Iterator[Interaction]:
        yield self
        part = self
        while self.is_joined and part.parent is not None and part.extends(part.parent):
            part = part.parent
            yield part

    def _known(self) -> ModelResponse:
        if self.response is None:
            raise ValueError(
                f"the tokens of interaction {self.id} are not known; ask the server for them, as "
                "`HttpEngine` with a `RolloutClient` does"
            )
        return self.response
