from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from rollscope.rollout.client import RolloutClient
from rollscope.rollout.engine import GenerationConfig
from rollscope.testing.capture import capture
from tests.unit.rollout.client.fakes import ScriptedEngine, WordTokenizer

USER = {"role": "user", "content": "what now"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}


def _client(*answers: str, **settings: Any) -> tuple[RolloutClient, ScriptedEngine]:
    engine = ScriptedEngine(WordTokenizer(), *answers)
    return RolloutClient(engine, engine.tokenizer, **settings), engine


def _chat(client: RolloutClient, *messages: Any, **settings: Any) -> Any:
    settings = {"max_completion_tokens": 50, **settings}
    return asyncio.run(client.chat.completions.create(messages=messages, **settings))


def test_a_chat_is_answered_in_the_shape_of_the_sdk_and_kept() -> None:
    client, engine = _client("go on", engine_max_tokens=40)
    with capture() as captured:
        answer = _chat(client, USER, model="m", temperature=0.3, stop="x", top_p=openai.NOT_GIVEN)
        span = captured.named("generate")
    (choice,) = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "go on")
    assert (choice.finish_reason, answer.object) == ("stop", "chat.completion")
    assert answer.usage.model_dump() == {
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "total_tokens": 8,
    }
    config = engine.requests[0].gconfig
    assert (config.temperature, config.top_p, config.stop) == (0.3, 1.0, ("x",))
    assert config.max_new_tokens == 35
    assert config.stop_token_ids == (0,)
    (kept,) = client.interactions.values()
    assert (kept.id, kept.messages) == (answer.id, [USER])
    assert kept.answer == [{"role": "assistant", "content": "go on"}]
    assert span.attrs["tokens_in"] == 5
    assert span.attrs["tokens_out"] == 3


def test_an_interaction_becomes_a_trajectory_in_which_only_the_answer_counts() -> None:
    client, engine = _client("go on")
    answer = _chat(client, USER)
    client.set_reward(answer.id, 0.5)
    trajectory = client.interactions[answer.id].to_tensor_dict()
    plain = {key: value.tolist() for key, value in trajectory.items()}
    prompt = engine.requests[0].input_ids
    assert plain["input_ids"] == [[*prompt, *engine.tokenizer.encode("go on"), 0]]
    assert plain["loss_mask"] == [[0] * 5 + [1] * 3]
    assert plain["logprobs"] == [[0.0] * 5 + [-0.5] * 3]
    assert plain["versions"] == [[-1] * 5 + [3] * 3]
    assert plain["attention_mask"] == [[True] * 8]
    assert plain["rewards"] == [0.5]


def test_without_any_limit_answers_end_at_512_tokens_and_one_warning_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client, engine = _client("a", "b")
    with caplog.at_level(logging.WARNING, "rollscope"):
        for _ in range(2):
            _chat(client, USER, max_completion_tokens=None)
    assert [request.gconfig.max_new_tokens for request in engine.requests] == [512, 512]
    assert [record.getMessage() for record in caplog.records] == [
        "no limit was set on the length of answers, so they end after 512 tokens; "
        "set max_completion_tokens"
    ]


def test_a_setting_without_effect_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    client, engine = _client("a", "b", gconfig=GenerationConfig(extra={"a": 1}))
    with caplog.at_level(logging.WARNING, "rollscope"):
        for _ in range(2):
            _chat(client, USER, moood="good", user="me", extra_body={"min_p": 0.1})
    assert len(caplog.records) == 1
    assert "moood" in caplog.text
    assert engine.requests[0].gconfig.extra == {"a": 1, "min_p": 0.1}


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"n": 2}, NotImplementedError),
        ({"stream": True}, NotImplementedError),
        ({"max_tokens": 5}, ValueError),
        ({"max_completion_tokens": True}, TypeError),
        ({"max_total_tokens": 5}, ValueError),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing_behind(
    settings: dict[str, Any], error: type[Exception]
) -> None:
    client, engine = _client("a")
    with pytest.raises(error):
        _chat(client, USER, **settings)
    assert client.interactions == {}
    assert client._asked == {}
    assert engine.requests == []


@pytest.mark.parametrize("name", ["max_output_tokens", "max_tokens", "max_completion_tokens"])
def test_a_response_takes_its_limit_under_any_name(name: str) -> None:
    client, engine = _client("a")
    asyncio.run(client.responses.create(input="hi", **{name: 9}))
    assert engine.requests[0].gconfig.max_new_tokens == 9


def test_a_response_speaks_of_its_limit_by_its_own_name(caplog: pytest.LogCaptureFixture) -> None:
    client, _ = _client("a")
    with pytest.raises(ValueError, match="max_output_tokens must be above 0"):
        asyncio.run(client.responses.create(input="hi", max_output_tokens=0))
    with caplog.at_level(logging.WARNING, "rollscope"):
        asyncio.run(client.responses.create(input="hi"))
    assert "set max_output_tokens" in caplog.text


def test_what_was_asked_stays_as_it_was_when_the_caller_goes_on_with_his_messages() -> None:
    client, _ = _client("a", "b")
    part = {"type": "text", "text": "look"}
    message = {"role": "user", "content": [part]}
    answer = _chat(client, message)
    part["text"] = "look again"
    assert client.interactions[answer.id].messages[0]["content"][0]["text"] == "look"


def test_a_chat_without_messages_is_refused() -> None:
    client, _ = _client()
    with pytest.raises(ValueError, match="empty"):
        _chat(client)


def test_tool_calls_are_read_from_the_answer_when_tools_are_given() -> None:
    said = 'let me see <tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
    client, engine = _client(said, said)
    message = _chat(client, USER, tools=[TOOL]).choices[0].message
    assert message.content == "let me see"
    (call,) = message.tool_calls
    assert (call.type, call.function.name) == ("function", "look")
    assert call.function.arguments == '{"at": 1}'
    assert engine.tokenizer.words[engine.requests[0].input_ids[0]] == "<tools:1>"
    plain = _chat(client, USER)
    assert plain.choices[0].message.content == said
    assert plain.choices[0].finish_reason == "stop"


def test_calls_that_cannot_be_read_stay_part_of_the_text() -> None:
    client, _ = _client("<tool_call>{broken</tool_call>")
    message = _chat(client, USER, tools=[TOOL]).choices[0].message
    assert (message.content, message.tool_calls) == ("<tool_call>{broken</tool_call>", None)


def test_the_reader_of_tool_calls_can_be_replaced() -> None:
    call = SimpleNamespace(name="jump", arguments={})
    client, _ = _client("JUMP", split_tool_calls=lambda text: ("", [call]))
    choice = _chat(client, USER, tools=[TOOL]).choices[0]
    assert choice.message.content is None
    assert choice.message.tool_calls[0].function.name == "jump"
    assert choice.finish_reason == "tool_calls"


def test_a_conversation_that_goes_on_has_the_one_before_as_parent() -> None:
    said = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    client, _ = _client(said, "other", "seen", "elsewhere")
    first = _chat(client, USER, tools=[TOOL])
    other = _chat(client, USER)
    message = first.choices[0].message  # handed back as it is
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "a door"}
    second = _chat(client, USER, message, result, tools=[TOOL])
    changed = _chat(client, USER, {"role": "assistant", "content": "hm"}, result)
    kept = client.interactions
    assert kept[second.id].parent is kept[first.id]
    assert kept[changed.id].parent is None
    assert kept[other.id].parent is None


def _two_turns(history: Any) -> tuple[RolloutClient, list[str]]:
    client, _ = _client("one", "two", "three", history=history)
    first = _chat(client, USER)
    again = {"role": "user", "content": "again"}
    second = _chat(client, USER, first.choices[0].message, again)
    lone = _chat(client, {"role": "user", "content": "else"})
    return client, [first.id, second.id, lone.id]


@pytest.mark.parametrize("history", ["template", "tokens"])
def test_concat_exports_a_conversation_once_with_all_its_answers(history: Any) -> None:
    client, (first, second, lone) = _two_turns(history)
    client.set_last_reward(2.0)
    client.set_reward(second, 1.0)
    exported = client.export_interactions("concat")
    assert list(exported) == [second, lone]
    trajectory: Any = exported[second].to_tensor_dict()
    assert client.tokenizer.decode(trajectory["input_ids"][0].tolist()) == (
        "<user> what now <end> <assistant> one <end> <user> again <end> <assistant> two <end>"
    )
    assert trajectory["loss_mask"].tolist() == [[0] * 5 + [1] * 2 + [0] * 4 + [1] * 2]
    assert trajectory["rewards"].tolist() == [1.0]
    assert list(client.export_interactions()) == [first, second, lone]
    own: Any = client.export_interactions()[second].to_tensor_dict()
    assert own["loss_mask"].tolist() == [[0] * 11 + [1] * 2]


def test_an_answer_that_the_prompt_of_the_next_does_not_contain_is_a_sample_of_its_own() -> None:
    client, _ = _client("one", "two", chat_template_kwargs={"think": True})
    first = _chat(client, USER)
    second = _chat(client, USER, first.choices[0].message, USER)
    assert client.interactions[second.id].parent is client.interactions[first.id]
    exported = client.export_interactions("concat")
    assert list(exported) == [first.id, second.id]
    trajectory: Any = exported[second.id].to_tensor_dict()
    assert trajectory["loss_mask"].sum() == 2


def test_a_call_may_say_more_to_the_chat_template() -> None:
    client, engine = _client("one", "two", chat_template_kwargs={"think": True})
    body = {"chat_template_kwargs": {"think": False}, "min_p": 0.1}
    for settings in ({}, {"extra_body": body}):
        _chat(client, USER, **settings)
    thinking, plain = (engine.tokenizer.decode(one.input_ids) for one in engine.requests)
    assert thinking == f"{plain} <think>"
    assert engine.requests[1].gconfig.extra == {"min_p": 0.1}
    assert "chat_template_kwargs" in body


def test_rewards_are_passed_on_backwards_and_only_once() -> None:
    client, ids = _two_turns("template")
    client.set_last_reward(1.0)
    client.set_reward(ids[0], 0.25)
    client.apply_reward_discount(0.5)
    assert [client.interactions[key].reward for key in ids] == [0.5, 0.5, 1.0]
    with pytest.raises(RuntimeError, match="already"):
        client.apply_reward_discount(0.5)


def test_rewards_for_what_is_not_there_are_refused() -> None:
    client, _ = _client()
    with pytest.raises(RuntimeError, match="no answer"):
        client.set_last_reward(1.0)
    with pytest.raises(KeyError, match="nothing"):
        client.set_reward("nothing", 1.0)
    style: Any = "all"
    with pytest.raises(ValueError, match="individual or concat"):
        client.export_interactions(style)


def test_the_responses_api_speaks_in_items_and_goes_on_from_an_earlier_response() -> None:
    said = 'well <tool_call>{"name": "look", "arguments": {}}</tool_call>'
    client, engine = _client(said, "a door it is", history="tokens")
    tool = {"type": "function", "name": "look", "parameters": {}}

    async def run() -> tuple[Any, Any]:
        create = client.responses.create
        first = await create(
            input="what now", instructions="be brief", tools=[tool], max_output_tokens=9
        )
        told = {"type": "function_call_output", "call_id": "c", "output": "a door"}
        second = await create(
            input=[told], tools=[tool], previous_response_id=first.id, max_output_tokens=9
        )
        return first, second

    first, second = asyncio.run(run())
    assert first.output_text == "well"
    assert [item.type for item in first.output] == ["message", "function_call"]
    assert first.output[1].name == "look"
    assert second.output_text == "a door it is"
    assert (second.usage.output_tokens, engine.requests[0].gconfig.max_new_tokens) == (5, 9)
    kept = client.interactions
    assert kept[second.id].parent is kept[first.id]
    assert kept[first.id].messages[0] == {"role": "system", "content": "be brief"}
    assert [message["role"] for message in kept[second.id].messages] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert list(client.export_interactions("concat")) == [second.id]


def test_a_response_cannot_go_on_from_one_that_is_not_known() -> None:
    client, _ = _client()
    with pytest.raises(KeyError, match="resp_x"):
        asyncio.run(client.responses.create(input="hi", previous_response_id="resp_x"))
