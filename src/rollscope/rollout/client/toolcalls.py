"""Tool calls in the text of an answer, turned into the calls that OpenAI's API speaks of."""

import json
import uuid
from collections.abc import Callable, Sequence

from rollscope.rollout.client.shapes import ChatMessage, FunctionCall, ToolCall
from rollscope.rollout.tool_calls import ToolCall as ReadCall
from rollscope.rollout.tool_calls import parse_tool_calls

__all__ = ["SplitToolCalls", "read_answer", "split_tool_calls"]

SplitToolCalls = Callable[[str], tuple[str, Sequence[ReadCall]]]
"""Gives what an answer says besides its tool calls, and the calls."""


def split_tool_calls(text: str) -> tuple[str, Sequence[ReadCall]]:
    """Split off calls written as `<tool_call>{json}</tool_call>`; unreadable ones stay text."""
    calls = [call for call in parse_tool_calls(text) if call.error is None]
    return (text.partition("<tool_call>")[0].rstrip() if calls else text), calls


def read_answer(text: str, split: SplitToolCalls | None) -> ChatMessage:
    """Give the message of an answer; without `split` there are no calls in it."""
    if split is None:
        return ChatMessage(content=text)
    content, calls = split(text)
    if not calls:
        return ChatMessage(content=content)
    return ChatMessage(content=content or None, tool_calls=[_shaped(call) for call in calls])


def _shaped(call: ReadCall) -> ToolCall:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return ToolCall(
        id=f"call_{uuid.uuid4().hex[:24]}",
        function=FunctionCall(name=call.name, arguments=arguments),
    )
