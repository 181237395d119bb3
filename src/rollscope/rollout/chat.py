"""Between messages and tokens: the few things that are asked of a tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollscope.rollout.engine import GenerationConfig

__all__ = ["Message", "Tokenizer", "follow_up_ids", "one_sample", "prompt_ids", "prompt_text"]

Message = dict[str, Any]

_ANSWER = "ANSWER-THAT-WAS-GIVEN"


class Tokenizer(Protocol):
    """A tokenizer with a chat template, as Hugging Face's are."""

    @property
    def eos_token_id(self) -> int | None:
        """The token that ends an answer."""

    def apply_chat_template(self, conversation: Any, /, **settings: Any) -> Any:  # noqa: ANN401
        """Write a conversation as the model knows it, as text or as tokens."""

    def encode(self, text: str, /, *, add_special_tokens: bool = ...) -> list[int]:
        """Give the tokens of a text."""

    def decode(self, tokens: Any, /, *, skip_special_tokens: bool = ...) -> str:  # noqa: ANN401
        """Give the text of tokens."""


def prompt_ids(tokenizer: Tokenizer, messages: Sequence[Message], **settings: Any) -> list[int]:
    """Give the tokens of a conversation that the model is to answer.

    Args:
        tokenizer: Writes them.
        messages: The conversation.
        **settings: More for the chat template, such as `enable_thinking` or `tools`.
    """
    tokens = tokenizer.apply_chat_template(
        messages, tokenize=True, add_generation_prompt=True, return_dict=False, **settings
    )
    return list(tokens)


def prompt_text(tokenizer: Tokenizer, messages: Sequence[Message], **settings: Any) -> str:
    """Give the text of a conversation that the model is to answer."""
    text: str = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, **settings
    )
    return text


def follow_up_ids(
    tokenizer: Tokenizer, answer_ids: Sequence[int], messages: Sequence[Message], **settings: Any
) -> list[int]:
    """Give the tokens that lead from an answer over new messages to the next answer.

    The answer keeps the very tokens that were generated: what follows it is cut out of a made-up
    conversation. A template may write earlier answers in another way than the last one, so that two
    conversations of different length need not begin alike; what comes after an answer is the same.

    Raises:
        ValueError: The chat template leaves answers out.
    """
    made_up: list[Message] = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": _ANSWER},
        *messages,
    ]
    _, found, rest = prompt_text(tokenizer, made_up, **settings).partition(_ANSWER)
    if not found:
        raise ValueError("the chat template does not write out what the assistant said")
    tokens = list(tokenizer.encode(rest, add_special_tokens=False))
    is_ended = bool(answer_ids) and answer_ids[-1] == tokenizer.eos_token_id
    return tokens[1:] if is_ended and tokens[:1] == [tokenizer.eos_token_id] else tokens


def one_sample(gconfig: GenerationConfig, tokenizer: Tokenizer) -> GenerationConfig:
    """Give settings for one sample that ends where the tokenizer says that answers end."""
    stops: Mapping[int, None] = dict.fromkeys(gconfig.stop_token_ids)
    if tokenizer.eos_token_id is not None:
        stops = {**stops, tokenizer.eos_token_id: None}
    return gconfig.new(n_samples=1, stop_token_ids=tuple(stops))
