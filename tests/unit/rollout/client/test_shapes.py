from __future__ import annotations

import json

import openai.types
import openai.types.chat
import pytest

from rollscope.rollout.client.shapes import (
    ChatCompletion,
    ChatMessage,
    Choice,
    Completion,
    CompletionUsage,
    FunctionCall,
    Response,
    ToolCall,
)


def test_an_answer_is_one_for_the_sdk_too() -> None:
    call = ToolCall(id="t1", function=FunctionCall(name="look", arguments="{}"))
    ours = ChatCompletion(
        id="c1",
        model="m",
        choices=[Choice(message=ChatMessage(tool_calls=[call]), finish_reason="tool_calls")],
        usage=CompletionUsage(prompt_tokens=1, completion_tokens=2, total_tokens=3),
    )
    theirs = openai.types.chat.ChatCompletion.model_validate(ours.model_dump(), strict=True)
    assert theirs.choices[0].message.tool_calls is not None
    assert theirs.choices[0].message.tool_calls[0].id == "t1"
    assert theirs.usage is not None
    assert theirs.usage.total_tokens == 3
    again = ChatCompletion.read(theirs.model_dump())
    assert again == ours
    assert ChatCompletion.read(json.loads(ours.model_dump_json())) == ours


def test_nothing_can_be_left_out_of_a_dump() -> None:
    message = ChatMessage(content="a")
    assert message.model_dump()["tool_calls"] is None
    assert message.model_dump(exclude_none=True) == {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("shape", "sent"),
    [
        (ChatCompletion, {"choices": [{"message": {"content": 3}}]}),
        (ChatCompletion, {}),
        (Completion, {"choices": "many"}),
        (Response, {"output": None}),
        (Response, []),
    ],
)
def test_another_form_is_refused(shape: type[ChatCompletion], sent: object) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        shape.read(sent)


def test_only_what_was_said_is_the_text_of_a_response() -> None:
    parts = [{"type": "output_text", "text": "a"}, {"type": "refusal", "text": "no"}]
    items = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "hm"}]},
        {"type": "message", "content": parts},
        {"type": "function_call", "name": "look"},
        {"type": "message", "content": [{"text": "b"}]},
    ]
    assert Response.read({"output": items}).output_text == "ab"
