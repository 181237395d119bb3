"""Conversations as plain messages: read from what callers hand over, and compared.

Everything is kept in the form of the chat API; the responses API is translated at the border.
"""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rollscope.rollout.chat import Message
from rollscope.rollout.client.shapes import ChatMessage, Response

__all__ = [
    "answer_message",
    "chat_tools",
    "conversation_keys",
    "read_input",
    "read_messages",
    "response_messages",
]


def read_messages(messages: Iterable[Any]) -> list[Message]:
    """Give messages as dicts; models of any SDK, which can dump themselves, are messages too.

    Raises:
        ValueError: There are none.
        TypeError: One is neither a dict nor a model.
    """
    # The caller may change what he handed over; what was asked stays what it was.
    plain = [copy.deepcopy(_plain(message)) for message in messages]
    if not plain:
        raise ValueError("messages cannot be empty")
    return plain


def read_input(given: Any, instructions: str | None = None) -> list[Message]:  # noqa: ANN401
    """Give the input of the responses API as messages."""
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages: list[Message] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    for item in read_messages(items):
        _add_item(messages, item)
    return read_messages(messages)


def chat_tools(tools: Sequence[Any] | None) -> list[dict[str, Any]] | None:
    """Give tools in the form of the chat API, whichever form they have."""
    if not tools:
        return None
    plain = [_plain(tool) for tool in tools]
    return [
        tool
        if "function" in tool or tool.get("type") != "function"
        else {"type": "function", "function": {k: v for k, v in tool.items() if k != "type"}}
        for tool in plain
    ]


def answer_message(message: ChatMessage) -> Message:
    """Give what the assistant said as a message of the conversation."""
    return message.model_dump(exclude_none=True)


def response_messages(response: Response) -> list[Message]:
    """Give the output of the responses API as messages."""
    messages: list[Message] = []
    for item in response.output:
        _add_item(messages, item.model_dump(exclude_none=True))
    return messages


def conversation_keys(messages: Sequence[Message]) -> list[int]:
    """Give a key for each beginning of a conversation: equal beginnings have equal keys."""
    keys: list[int] = []
    key = 0
    for message in messages:
        key = hash((key, _canonical(message)))
        keys.append(key)
    return keys


def _canonical(message: Message) -> str:
    """Write a message so that the ways to say "nothing" do not differ."""
    said = {name: value for name, value in message.items() if value not in (None, "", [])}
    if said.get("role") == "assistant":
        said = {name: said[name] for name in ("role", "content", "tool_calls") if name in said}
    return json.dumps(said, sort_keys=True, default=repr)


def _plain(value: Any) -> dict[str, Any]:  # noqa: ANN401  (from outside; checked here)
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a message must be a dict, not {type(value).__name__}")
    plain: dict[str, Any] = dump(exclude_none=True)
    return plain


def _add_item(messages: list[Message], item: Message) -> None:
    """Add an item of the responses API to a conversation; what the model thought is left out."""
    kind = item.get("type", "message")
    if kind == "message":
        messages.append({"role": item.get("role", "user"), "content": _text(item.get("content"))})
    elif kind == "function_call_output":
        told = {"tool_call_id": item.get("call_id"), "content": item.get("output")}
        messages.append({"role": "tool", **told})
    elif kind == "function_call":
        if not messages or messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant"})
        function = {"name": item.get("name"), "arguments": item.get("arguments", "")}
        call = {"id": item.get("call_id"), "type": "function", "function": function}
        calls = [*messages[-1].get("tool_calls", ()), call]
        messages[-1] = {**messages[-1], "tool_calls": calls}


def _text(content: Any) -> Any:  # noqa: ANN401  (text, or parts of which some are not text)
    if isinstance(content, str) or content is None:
        return content or ""
    if all("text" in part for part in content):
        return "".join(part["text"] for part in content)
    return content
