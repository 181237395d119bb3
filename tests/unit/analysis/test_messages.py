"""Payloads as messages."""

import json
from typing import Any

import pytest

from rollscope.analysis.messages import Message, split_payload

CALL = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at": "<b>"}'}}
TALK: list[dict[str, Any]] = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"},
    {"role": "tool", "content": "", "tool_call_id": "t1"},
]


def said(messages: list[Message]) -> list[tuple[str | None, str]]:
    return [(one.role, one.text) for one in messages]


def test_a_conversation_is_taken_apart() -> None:
    found = split_payload(json.dumps(TALK))
    assert said(found[:3]) == [
        ("system", "be kind"),
        ("user", "a\nb"),
        ("assistant reasoning", "hm"),
    ]
    assert found[3].role == "tool_call"
    assert json.loads(found[3].text) == {"id": "t1", "name": "look", "arguments": {"at": "<b>"}}
    assert said(found[4:]) == [("tool", "")]


def test_one_message_and_a_servers_answer_are_conversations_too() -> None:
    message = {"role": "assistant", "content": "yes"}
    assert said(split_payload(json.dumps(message))) == [("assistant", "yes")]
    answer = {"choices": [{"message": message}, {"index": 1}, 7]}
    assert said(split_payload(json.dumps(answer))) == [("assistant", "yes")]


def test_text_stays_text_and_the_rest_is_indented() -> None:
    assert split_payload('"</script>\\u202e"') == [Message(text="</script>\u202e")]
    (one,) = split_payload('{"a":[1]}')
    assert (one.is_json, json.loads(one.text), one.role) == (True, {"a": [1]}, None)
    assert "\n" in one.text


def test_a_conversation_cut_in_the_middle_is_read_as_far_as_it_goes() -> None:
    text = json.dumps(TALK)
    for length in range(1, len(text)):
        found = split_payload(text[:length], is_cut=True)
        assert found[-1].is_cut
    found = split_payload(text[: text.index('{"role": "assistant"') + 9])
    assert said(found) == [("system", "be kind"), ("user", "a\nb"), (None, '{"role": ')]


def test_cut_text_loses_only_what_is_missing() -> None:
    said = "aé🎉b\n" * 3
    whole = json.dumps(said)
    for length in range(1, len(whole)):
        (one,) = split_payload(whole[:length], is_cut=True)
        assert one.is_cut
        kept = one.text.rstrip("\ufffd")  # half of a character at the end
        assert said.startswith(kept)
        assert len(json.dumps(kept)) >= length - 12


@pytest.mark.parametrize(
    "text",
    ["", "[", "[" * 100_000, "nonsense", "[1, 2", '{"role": "us', "[1, 2]", "[]", "null", "1e999"],
)
def test_odd_payloads_are_shown_somehow(text: str) -> None:
    assert split_payload(text, is_cut=True)


@pytest.mark.parametrize(
    "odd",
    [
        {"role": "user", "content": {"deep": [1]}},
        {"role": "user", "tool_calls": "none"},
        {"role": "user", "tool_calls": [None, 7, {"function": {"arguments": 3}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
    ],
)
def test_odd_messages_keep_their_role(odd: dict[str, Any]) -> None:
    found = split_payload(json.dumps([odd]))
    assert {one.role for one in found} <= {"user", "tool_call"}
