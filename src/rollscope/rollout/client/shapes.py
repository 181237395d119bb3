"""What clients answer with: attributes named as in the openai SDK, without needing it.

Fields that some servers leave out have defaults; those that none of our code reads are dropped.
"""

import time
from typing import Any, Self

import msgspec

__all__ = [
    "ChatCompletion",
    "ChatCompletionChunk",
    "ChatMessage",
    "Choice",
    "ChunkChoice",
    "Completion",
    "CompletionChoice",
    "CompletionLogprobs",
    "CompletionUsage",
    "Delta",
    "FunctionCall",
    "Response",
    "ResponseItem",
    "ResponsePart",
    "ResponseUsage",
    "Shape",
    "ToolCall",
    "ToolCallDelta",
]


def _now() -> int:
    return int(time.time())


class Shape(msgspec.Struct, kw_only=True):
    """Base of all: can be turned into plain values, as pydantic's models can."""

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        """Give it as plain dicts and lists."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return _without_none(plain) if exclude_none else plain

    def model_dump_json(self) -> str:
        """Give it as JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, value: object) -> Self:
        """Read what a server sent; numbers may come as text.

        Raises:
            ValueError: It does not have this shape.
        """
        return msgspec.convert(value, cls, strict=False)


def _without_none(value: Any) -> Any:  # noqa: ANN401  (any JSON)
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value


class FunctionCall(Shape):
    """Which function to call; its arguments are JSON, as the model wrote them."""

    name: str | None = None
    arguments: str | None = ""


class ToolCall(Shape):
    """One call that the model wants."""

    id: str | None = None
    type: str | None = "function"
    function: FunctionCall = msgspec.field(default_factory=FunctionCall)


class ToolCallDelta(ToolCall):
    """A piece of a call, in a stream."""

    index: int = 0


class ChatMessage(Shape):
    """What the assistant said."""

    role: str | None = "assistant"
    content: str | None = None
    tool_calls: list[ToolCall] | None = None
    reasoning_content: str | None = None
    refusal: str | None = None


class Delta(Shape):
    """What is new of a message, in a stream."""

    role: str | None = None
    content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None
    reasoning_content: str | None = None


class CompletionUsage(Shape):
    """How many tokens it took."""

    prompt_tokens: int = 0
    completion_tokens: int | None = 0
    total_tokens: int = 0


class Choice(Shape):
    """One answer."""

    message: ChatMessage
    index: int = 0
    finish_reason: str | None = None
    logprobs: Any = None
    token_ids: list[int] | None = None


class ChatCompletion(Shape):
    """The answer to a chat."""

    choices: list[Choice]
    id: str = ""
    object: str = "chat.completion"
    created: int | float = msgspec.field(default_factory=_now)
    model: str = ""
    usage: CompletionUsage | None = None
    prompt_token_ids: list[int] | None = None


class ChunkChoice(Shape):
    """A piece of one answer."""

    index: int = 0
    delta: Delta = msgspec.field(default_factory=Delta)
    finish_reason: str | None = None


class ChatCompletionChunk(Shape):
    """A piece of a streamed answer."""

    id: str = ""
    object: str = "chat.completion.chunk"
    created: int | float = msgspec.field(default_factory=_now)
    model: str = ""
    choices: list[ChunkChoice] = msgspec.field(default_factory=list)
    usage: CompletionUsage | None = None


class CompletionLogprobs(Shape):
    """How likely each token was."""

    tokens: list[str] = msgspec.field(default_factory=list)
    token_logprobs: list[float | None] = msgspec.field(default_factory=list)


class CompletionChoice(Shape):
    """One continuation of a text, or the next piece of it."""

    index: int = 0
    text: str = ""
    finish_reason: str | None = None
    logprobs: CompletionLogprobs | None = None
    token_ids: list[int] | None = None


class Completion(Shape):
    """The continuation of a text, or the next piece of it."""

    choices: list[CompletionChoice]
    id: str = ""
    object: str = "text_completion"
    created: int | float = msgspec.field(default_factory=_now)
    model: str = ""
    usage: CompletionUsage | None = None


class ResponsePart(Shape):
    """A part of what was said."""

    type: str = "output_text"
    text: str | None = None
    annotations: list[Any] = msgspec.field(default_factory=list)


class ResponseItem(Shape):
    """A message (`role`, `content`) or a function call (`call_id`, `name`, `arguments`)."""

    type: str = "message"
    id: str | None = None
    status: str | None = None
    role: str | None = None
    content: list[ResponsePart] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class ResponseUsage(Shape):
    """How many tokens it took."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class Response(Shape):
    """The answer of the responses API."""

    output: list[ResponseItem]
    id: str = ""
    object: str = "response"
    created_at: int | float = msgspec.field(default_factory=_now)
    model: str = ""
    status: str | None = "completed"
    usage: ResponseUsage | None = None
    previous_response_id: str | None = None

    @property
    def output_text(self) -> str:
        """All text that was said."""
        return "".join(
            part.text or ""
            for item in self.output
            for part in item.content or ()
            if item.type == "message" and part.type == "output_text"
        )
