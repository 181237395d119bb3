"""Reading tool calls out of an answer, running them, and telling the model how it went.

Nothing that a tool does ends the episode: its errors, and the calls that cannot be read, become
messages to the model.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollscope.instrument import default as tracing
from rollscope.rollout.threads import call_in_thread, is_async

if TYPE_CHECKING:
    from rollscope.rollout.chat import Message

__all__ = ["ParseToolCalls", "Tool", "ToolBox", "ToolCall", "parse_tool_calls"]

Tool = Callable[..., Any]
"""A function, plain or async, that takes a call's arguments by name."""

_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model wants."""

    name: str
    arguments: Mapping[str, Any]
    error: str | None = None
    """Why it cannot be read, if so; it is not run then."""


ParseToolCalls = Callable[[str], Sequence[ToolCall]]


def parse_tool_calls(text: str) -> list[ToolCall]:
    """Read the calls written as `<tool_call>{"name": …, "arguments": {…}}</tool_call>`."""
    return [_read_call(block) for block in _BLOCK.findall(text)]


def _read_call(block: str) -> ToolCall:
    try:
        call = json.loads(block)
    except (ValueError, RecursionError) as error:  # deeply nested brackets end in the latter
        return ToolCall("", {}, f"the call is not valid JSON: {error}")
    name = call.get("name") if isinstance(call, dict) else None
    if not isinstance(name, str):
        return ToolCall("", {}, 'a call needs a "name" and "arguments"')
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        return ToolCall(name, {}, '"arguments" must be an object')
    return ToolCall(name, arguments)


class ToolBox:
    """The tools that a model may use."""

    def __init__(
        self, tools: Mapping[str, Tool], timeout_s: float | None, max_result_chars: int
    ) -> None:
        """Prepare the tools.

        Args:
            tools: By the name that the model uses.
            timeout_s: How long one call may take. A plain function cannot be stopped: its thread
                runs on, and what it returns is thrown away.
            max_result_chars: How much of a result the model gets to see.
        """
        self._tools = dict(tools)
        self._timeout_s = timeout_s
        self._max_result_chars = max_result_chars

    async def answer(self, calls: Sequence[ToolCall]) -> list[Message]:
        """Run calls side by side and give a message for each, in their order."""
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(self._answer_one(call)) for call in calls]
        return [task.result() for task in running]

    async def _answer_one(self, call: ToolCall) -> Message:
        try:
            with tracing.phase("toolcall", tool=call.name):
                content = _as_text(await self._run(call))
        except (Exception, SystemExit) as error:  # what goes wrong in a tool the model shall hear
            content = json.dumps({"error": _describe(error)}, ensure_ascii=False)
        if len(content) > self._max_result_chars:
            content = f"{content[: self._max_result_chars]}… ({len(content)} characters in all)"
        return {"role": "tool", "name": call.name, "content": content}

    async def _run(self, call: ToolCall) -> object:
        if call.error is not None:
            raise ValueError(call.error)
        tool = self._tools.get(call.name)
        if tool is None:
            raise LookupError(f"there is no tool {call.name!r}; there are {sorted(self._tools)}")
        deadline = asyncio.timeout(self._timeout_s)
        try:
            async with deadline:
                return await _call(tool, call.arguments)
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise TimeoutError(f"no result within {self._timeout_s} s") from error


async def _call(tool: Tool, arguments: Mapping[str, Any]) -> object:
    if is_async(tool):
        return await tool(**arguments)
    result = await call_in_thread(tool, **arguments)
    return await result if inspect.isawaitable(result) else result


def _as_text(result: object) -> str:
    return (
        result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    )


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # the error's own __str__ is the tool's code and may fail
        return type(error).__name__
