"""What was said in a session, from the call that keeps it to the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rollscope as rs
from rollscope.answers.encoding import encode_answer
from rollscope.answers.payloads import PayloadMessage, Payloads, session_payloads
from rollscope.answers.turns import session_turns
from rollscope.errors import CommandError
from rollscope.rollout.client import OpenAIClient, RolloutClient
from rollscope.store.embedded import RunStore
from tests.integration.scripted_server import Server, reply, serving, stream
from tests.integration.test_openai_client import USER, chat, piece
from tests.unit.rollout.client.fakes import ScriptedEngine, WordTokenizer

HOSTILE = '</script><b>"\u202e\x1b[31m\0\ud800'


@contextmanager
def recording(tmp_path: Path, **settings: Any) -> Iterator[Path]:
    """Record a run with payloads on."""
    rs.init(dir=tmp_path, run="run", **{"payloads": True, **settings})
    try:
        yield tmp_path / "run"
    finally:
        rs.shutdown()


def ask(run: Path, session: str = "a/1#0", full: str = "") -> Payloads:
    with RunStore(run, threads=1) as store:
        answer = session_payloads(store, session, full)
        encode_answer(answer)
        return answer


def said(answer: Payloads) -> list[tuple[str, str | None, str]]:
    return [(one.name, one.role, one.text) for one in answer.messages]


def named(one: PayloadMessage) -> str:
    return f"{one.span_id:016x},{one.index}"


def test_messages_are_found_with_the_spans_that_they_were_said_in(tmp_path: Path) -> None:
    with recording(tmp_path) as run:
        for key in ("a/1", "b/2"):
            with rs.task(key), rs.session(sample=0):
                with rs.phase("generate") as phase:
                    rs.payload("messages", [{"role": "user", "content": f"hi {key}"}])
                with rs.phase("reward"):
                    rs.payload("verdict", {"ok": True})
            if key == "a/1":
                span_id = phase.id
    answer = ask(run)
    assert said(answer) == [
        ("messages", "user", "hi a/1"),
        ("verdict", None, '{\n  "ok": true\n}'),
    ]
    first = answer.messages[0]
    assert (first.span_id, first.index, first.is_whole, first.cut) == (span_id, 0, True, False)
    assert (answer.captured, answer.why, answer.of) == (True, None, 2)


def test_without_payloads_the_answer_says_that_they_are_opt_in(tmp_path: Path) -> None:
    with recording(tmp_path, payloads=False) as run, rs.task("a/1"), rs.session(sample=0):
        rs.payload("messages", [USER])
    answer = ask(run)
    assert not answer.captured
    assert "payloads=True" in str(answer.why)


def test_a_session_that_said_nothing_is_told_apart(tmp_path: Path) -> None:
    with recording(tmp_path) as run:
        with rs.task("a/1"), rs.session(sample=0):
            pass
        with rs.task("b/2"), rs.session(sample=0):
            rs.payload("messages", [USER])
    answer = ask(run)
    assert (answer.captured, answer.messages) == (False, [])
    assert "none was handed over in this session" in str(answer.why)


def test_long_messages_are_short_until_opened_and_bounded_then(tmp_path: Path) -> None:
    with (
        recording(tmp_path, payload_max_bytes=400_000) as run,
        rs.task("a/1"),
        rs.session(sample=0),
    ):
        rs.payload(
            "messages",
            [{"role": "user", "content": c * n} for c, n in (("é", 9_000), ("y", 300_000))],
        )
    two, three = ask(run).messages
    assert (len(two.text), two.bytes, two.is_whole) == (4096, 18_000, False)
    opened = ask(run, full=named(two))
    assert [one.text for one in opened.messages] == ["é" * 9_000]
    assert (opened.messages[0].is_whole, opened.note) == (True, None)
    longest = ask(run, full=named(three))
    assert len(longest.messages[0].text) == 150_000
    assert "of 300,000 characters; `rollscope cat run --payloads`" in str(longest.note)


@pytest.mark.parametrize("full", ["nonsense", "0000000000000001,0", ",", "1,2,3"])
def test_a_message_that_is_not_there_cannot_be_opened(tmp_path: Path, full: str) -> None:
    with recording(tmp_path) as run, rs.task("a/1"), rs.session(sample=0):
        rs.payload("messages", [USER])
    with pytest.raises(CommandError, match="has no message"):
        ask(run, full=full)


def test_all_messages_together_are_bounded(tmp_path: Path) -> None:
    with recording(tmp_path) as run, rs.task("a/1"), rs.session(sample=0):
        for n in range(400):
            rs.payload("text", f"{n} " + "x" * 4_000)
    answer = ask(run)
    assert 200 < len(answer.messages) < 400 == answer.of
    assert f"{400 - len(answer.messages)} more messages" in str(answer.note)


def test_a_conversation_that_grows_is_shown_once(tmp_path: Path) -> None:
    talk: list[dict[str, str]] = [{"role": "user", "content": "q0"}]
    with recording(tmp_path) as run, rs.task("a/1"), rs.session(sample=0):
        for n in range(3):
            with rs.phase("generate"):
                rs.payload("messages", talk)
                rs.payload("completion", [{"role": "assistant", "content": f"a{n}"}])
            talk += [
                {"role": "assistant", "content": f"a{n}"},
                {"role": "user", "content": f"q{n + 1}"},
            ]
    answer = ask(run)
    assert [one.text for one in answer.messages] == ["q0", "a0", "q1", "a1", "q2", "a2"]
    assert [one.repeated for one in answer.messages] == [0, 0, 2, 0, 4, 0]


def test_hostile_text_comes_through_as_text(tmp_path: Path) -> None:
    values = [HOSTILE, [{"role": HOSTILE, "content": HOSTILE}], {HOSTILE: HOSTILE}, [HOSTILE] * 3]
    with recording(tmp_path) as run, rs.task("a/1"), rs.session(sample=0):
        for value in values:
            rs.payload(HOSTILE, value)
    with RunStore(run, threads=1) as store:
        answer = session_payloads(store, "a/1#0")
        decoded = json.loads(encode_answer(answer))
    assert len(decoded["messages"]) == len(values)
    assert all("</script>" in one["text"] for one in decoded["messages"])


def test_what_was_added_meanwhile_is_found_too(tmp_path: Path) -> None:
    with recording(tmp_path) as run, rs.task("a/1"), rs.session(sample=0):
        rs.payload("text", "one")
        rs.flush()
        with RunStore(run, threads=1) as store:
            assert [one.text for one in session_payloads(store, "a/1#0").messages] == ["one"]
            rs.payload("text", "two")
            rs.flush()
            found = session_payloads(store, "a/1#0")
    assert [one.text for one in found.messages] == ["one", "two"]


CALL = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}


async def talk_to(server: Server) -> None:
    async with OpenAIClient(server.url, model="m") as client:
        create = client.chat.completions.create
        await create(messages=[USER], max_tokens=9)
        streamed = await create(messages=[USER], max_tokens=9, stream=True)
        await streamed.answer()


def test_the_client_hands_over_what_was_asked_and_answered(tmp_path: Path) -> None:
    async def main() -> None:
        pieces = stream([piece(content="by "), piece(content="piece"), piece("stop")])
        async with (
            serving(reply(chat(None, tool_calls=[CALL])), pieces) as server,
            rs.task("a/1"),
            rs.session(sample=0),
        ):
            await talk_to(server)

    with recording(tmp_path) as run:
        asyncio.run(main())
    answer = ask(run)
    call = json.dumps({"id": "t1", "name": "look", "arguments": {"at": 1}}, indent=2)
    assert said(answer) == [
        ("messages", "user", USER["content"]),
        ("completion", "tool_call", call),
        ("messages", "user", USER["content"]),
        ("completion", "assistant", "by piece"),
    ]
    with RunStore(run, threads=1) as store:
        turns = session_turns(store, "a/1#0").turns
    assert [turn.number for turn in turns] == [0, 1]
    assert {one.span_id for one in answer.messages} == {turn.span_ids[0] for turn in turns}


def test_the_clients_texts_and_responses_are_kept_too(tmp_path: Path) -> None:
    async def main() -> None:
        text = {"id": "x", "choices": [{"index": 0, "text": " world", "finish_reason": "stop"}]}
        item = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ok"}],
        }
        async with (
            serving(reply(text), reply({"id": "r1", "output": [item]})) as server,
            rs.task("a/1"),
            rs.session(sample=0),
            OpenAIClient(server.url, model="m") as client,
        ):
            await client.completions.create(prompt="hello", max_tokens=3)
            await client.responses.create(input="well?", instructions="be brief")

    with recording(tmp_path) as run:
        asyncio.run(main())
    assert said(ask(run)) == [
        ("prompt", None, "hello"),
        ("completion", None, " world"),
        ("messages", "system", "be brief"),
        ("messages", "user", "well?"),
        ("completion", "assistant", "ok"),
    ]


def test_the_client_hands_nothing_over_where_payloads_are_off(tmp_path: Path) -> None:
    async def main() -> None:
        pieces = stream([piece(content="x"), piece("stop")])
        async with (
            serving(reply(chat()), pieces) as server,
            rs.task("a/1"),
            rs.session(sample=0),
        ):
            await talk_to(server)

    with recording(tmp_path, payloads=False) as run:
        asyncio.run(main())
    assert not (run / "payloads").exists()


def test_a_client_over_an_engine_hands_over_the_conversation_too(tmp_path: Path) -> None:
    async def main() -> None:
        engine = ScriptedEngine(WordTokenizer(), "well then")
        async with rs.task("a/1"), rs.session(sample=0):
            client = RolloutClient(engine, engine.tokenizer)
            await client.chat.completions.create(messages=[USER], max_completion_tokens=9)

    with recording(tmp_path) as run:
        asyncio.run(main())
    assert said(ask(run)) == [
        ("messages", "user", USER["content"]),
        ("completion", "assistant", "well then"),
    ]
