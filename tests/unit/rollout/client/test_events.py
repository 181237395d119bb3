from __future__ import annotations

from typing import Any

from rollscope.rollout.client.events import ChatJoiner, EventReader, TextJoiner
from rollscope.rollout.client.shapes import ChatCompletionChunk, Completion


def _join(*deltas: dict[str, Any], finish: str | None = "stop") -> Any:
    joiner = ChatJoiner()
    for delta in deltas:
        joiner.add(ChatCompletionChunk.read({"id": "c1", "choices": [{"delta": delta}]}))
    joiner.add(ChatCompletionChunk.read({"choices": [{"delta": {}, "finish_reason": finish}]}))
    joiner.add(ChatCompletionChunk.read({"choices": [], "usage": {"prompt_tokens": 4}}))
    return joiner.joined()


def _call(index: int | None, call_id: str | None, name: str | None, arguments: str) -> Any:
    delta = {"id": call_id, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [delta if index is None else {"index": index, **delta}]}


def test_text_is_joined_and_the_usage_of_the_last_piece_kept() -> None:
    answer = _join({"role": "assistant"}, {"content": "he"}, {"content": "llo"})
    assert answer.id == "c1"
    assert answer.choices[0].message.content == "hello"
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens == 4


def test_pieces_of_several_tool_calls_are_put_together_by_their_number() -> None:
    answer = _join(
        _call(1, "b", "move", '{"x"'),
        _call(0, "a", "look", ""),
        _call(1, None, None, ": 1}"),
        _call(0, None, None, "{}"),
    )
    calls = answer.choices[0].message.tool_calls
    assert [(c.id, c.function.name, c.function.arguments) for c in calls] == [
        ("a", "look", "{}"),
        ("b", "move", '{"x": 1}'),
    ]
    assert answer.choices[0].message.content is None


def test_calls_of_a_server_that_does_not_number_them_stay_apart() -> None:
    answer = _join(_call(None, "a", "look", "{}"), _call(None, "b", "move", "{}"))
    assert [call.id for call in answer.choices[0].message.tool_calls] == ["a", "b"]


def test_what_was_reasoned_is_kept_apart_from_what_was_said() -> None:
    message = _join({"reasoning_content": "hm"}, {"content": "yes"}).choices[0].message
    assert (message.reasoning_content, message.content) == ("hm", "yes")


def test_nothing_has_begun_by_a_role_alone() -> None:
    joiner = ChatJoiner()
    joiner.add(ChatCompletionChunk.read({"choices": [{"delta": {"role": "assistant"}}]}))
    assert not joiner.has_begun
    joiner.add(ChatCompletionChunk.read({"choices": [{"delta": {"content": "x"}}]}))
    assert joiner.has_begun


def test_continuations_of_a_text_are_joined() -> None:
    joiner = TextJoiner()
    for text, finish in [("a", None), ("b", "length")]:
        joiner.add(Completion.read({"choices": [{"text": text, "finish_reason": finish}]}))
    assert joiner.joined().choices[0].text == "ab"
    assert joiner.finish_reason == "length"


def test_comments_and_other_fields_are_left_out_and_lines_of_data_joined() -> None:
    reader = EventReader()
    stream = b": ping\n\nevent: x\nid: 4\ndata: one\ndata:two\n\n\n\ndata: three\n\n"
    assert reader.feed(stream) == [b"one\ntwo", b"three"]
