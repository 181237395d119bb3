"""Clients against a real server on loopback, which misbehaves in every way that servers do."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar

import pytest
import uvloop

import rollscope
from rollscope.errors import MissingExtra
from rollscope.rollout.client import (
    AnswerTooLarge,
    EndpointTimeout,
    EndpointUnavailable,
    HttpEngine,
    MalformedAnswer,
    OpenAIClient,
    RequestRefused,
    RetryRule,
    TornStream,
)
from rollscope.rollout.engine import GenerationConfig, ModelRequest
from rollscope.testing.capture import capture
from tests.integration.scripted_server import (
    Answer,
    Connection,
    Server,
    hang,
    raw,
    reply,
    serving,
    stream,
)

T = TypeVar("T")
USER = {"role": "user", "content": "what now"}
QUICK = RetryRule(max_retries=2, base_s=0.001, retry_after_cap_s=0.01)
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def chat(content: str | None = "go on", answer_id: str = "c1", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "message": said, "finish_reason": "stop"}
    return {"id": answer_id, "model": "m", "choices": [choice], "usage": USAGE}


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, 60))


async def ask(server: Server, stream: bool = False, **settings: Any) -> Any:
    """Ask once and give the whole answer."""
    settings = {"retry": QUICK, **settings}
    async with OpenAIClient(server.url, model="m", **settings) as client:
        create = client.chat.completions.create
        if stream:
            return await (await create(messages=[USER], stream=True, max_tokens=9)).answer()
        return await create(messages=[USER], max_tokens=9)


def outcome(*answers: Answer, stream: bool = False, **settings: Any) -> tuple[Any, int]:
    """Give the answer or the error of one call, and how many requests it took."""

    async def main() -> tuple[Any, int]:
        async with serving(*answers) as server:
            try:
                answer = await ask(server, stream, **settings)
            except Exception as error:
                answer = error
            return answer, len(server.requests)

    return run(main())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_chat_is_sent_traced_and_kept(loop: Any) -> None:
    async def main() -> None:
        async with (
            serving(reply(chat())) as server,
            OpenAIClient(server.url, "secret", "m", headers={"X-Team": "rl"}) as client,
        ):
            answer = await client.chat.completions.create(
                messages=[USER], max_tokens=9, temperature=0.5, extra_body={"min_p": 0.1}
            )
            (request,) = server.requests
        assert request.path == "/v1/chat/completions"
        assert request.body == {
            "messages": [USER],
            "model": "m",
            "max_tokens": 9,
            "temperature": 0.5,
            "min_p": 0.1,
        }
        assert request.headers["authorization"] == "Bearer secret"
        assert request.headers["x-team"] == "rl"
        assert request.headers["traceparent"].split("-")[2]
        assert answer.choices[0].message.content == "go on"
        assert client.interactions["c1"].messages == [USER]
        client.set_last_reward(1.0)
        assert client.export_interactions()["c1"].reward == 1.0
        with pytest.raises(ValueError, match="tokens of interaction c1 are not known"):
            client.interactions["c1"].to_tensor_dict()

    with capture() as captured, asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
        attrs = captured.named("generate").attrs
    assert {name: attrs[name] for name in ("model", "tokens_in", "tokens_out")} == {
        "model": "m",
        "tokens_in": 7,
        "tokens_out": 2,
    }
    assert (attrs["status"], attrs["tries"]) == (200, 1)
    assert "ttft_s" not in attrs


def test_tool_calls_come_through_and_link_the_conversation() -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    async def main() -> None:
        answers = [reply(chat(None, "c1", tool_calls=[call])), reply(chat("seen", "c2"))]
        async with serving(*answers) as server, OpenAIClient(server.url) as client:
            first = await client.chat.completions.create(messages=[USER], max_tokens=9)
            message = first.choices[0].message
            assert message.tool_calls is not None
            assert message.tool_calls[0].function.name == "look"
            told = {"role": "tool", "tool_call_id": "t1", "content": "a door"}
            await client.chat.completions.create(messages=[USER, message, told], max_tokens=9)
            assert server.requests[1].body["messages"][1]["tool_calls"] == [call]
        assert client.interactions["c2"].parent is client.interactions["c1"]

    run(main())


def test_without_a_limit_512_tokens_are_asked_for_and_one_warning_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> list[int]:
        async with serving(reply(chat())) as server, OpenAIClient(server.url) as client:
            for _ in range(2):
                await client.chat.completions.create(messages=[USER])
            return [request.body["max_completion_tokens"] for request in server.requests]

    with caplog.at_level(logging.WARNING, "rollscope"):
        assert run(main()) == [512, 512]
    assert len(caplog.records) == 1


def test_the_total_limit_leaves_room_for_the_prompt() -> None:
    async def main() -> None:
        settings: dict[str, Any] = {"max_total_tokens": 100, "count_tokens": lambda _: 60}
        async with serving(reply(chat())) as server, OpenAIClient(server.url, **settings) as client:
            await client.chat.completions.create(messages=[USER])
            assert server.requests[0].body["max_completion_tokens"] == 40
            with pytest.raises(ValueError, match="exceeds max_total_tokens 50"):
                await client.chat.completions.create(messages=[USER], max_total_tokens=50)
            assert len(client.interactions) == 1

    run(main())


@pytest.mark.parametrize("step", [0, 1, 7])
def test_a_stream_is_joined_however_it_is_cut(step: int) -> None:
    look = {"index": 0, "id": "t1", "type": "function", "function": {"name": "look"}}
    more = [{"index": 0, "function": {"arguments": part}} for part in ('{"wo": "', 'Tür 🚪"}')]
    events = [
        piece(role="assistant"),
        piece(content="schön "),
        piece(content="日本 🎉"),
        piece(tool_calls=[look]),
        *(piece(tool_calls=[part]) for part in more),
        piece("tool_calls"),
        {"id": "c1", "choices": [], "usage": USAGE},
        b"[DONE]",
    ]

    async def main() -> None:
        async with serving(stream(events, step=step)) as server:
            async with OpenAIClient(server.url, model="m") as client:
                pieces = await client.chat.completions.create(
                    messages=[USER], stream=True, max_tokens=9
                )
                with rollscope.phase("reading"):
                    said = [
                        chunk.choices[0].delta.content
                        async for chunk in pieces
                        if chunk.choices and chunk.choices[0].delta.content
                    ]
                assert said == ["schön ", "日本 🎉"]
                answer = await pieces.answer()
                message = answer.choices[0].message
                assert message.content == "schön 日本 🎉"
                assert message.tool_calls is not None
                assert message.tool_calls[0].function.arguments == '{"wo": "Tür 🚪"}'
                assert client.interactions["c1"].answer[0]["content"] == "schön 日本 🎉"
            assert server.requests[0].body["stream"] is True

    with capture() as captured:
        run(main())
        generating, reading = captured.named("generate"), captured.named("reading")
    assert generating.attrs["tokens_out"] == 2
    assert 0 <= generating.attrs["ttft_s"] < 60
    assert reading.parent_id != generating.span_id


@pytest.mark.parametrize(
    "failing",
    [
        reply({"error": {"message": "slow down"}}, 429, Retry_After="9000"),
        reply({"error": "busy"}, 503, Retry_After="Wed, 01 Jan 2020 00:00:00 GMT"),
        reply(b"<html>", 500, "text/html"),
        reply(b"", 502),
        raw(b""),
        raw(b"HTTP/1.1 200 OK\r\nContent-"),
        raw(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"id": "c'),
    ],
    ids=["429", "503", "500", "502", "no head", "cut head", "cut body"],
)
def test_what_may_pass_is_tried_again_until_it_does_or_the_tries_are_spent(failing: Answer) -> None:
    answer, requests = outcome(failing, failing, reply(chat()))
    assert answer.choices[0].message.content == "go on"
    assert requests == 3
    error, requests = outcome(failing)
    assert isinstance(error, EndpointUnavailable)
    assert isinstance(error, ConnectionError)
    assert (error.tries, requests) == (3, 3)


def test_the_servers_reason_is_in_the_error_and_on_the_span() -> None:
    with capture() as captured:
        error, _ = outcome(reply({"error": {"message": "slow down"}}, 429))
        span = captured.named("generate")
    assert "answered 429: slow down" in str(error)
    assert (span.attrs["status"], span.attrs["tries"]) == (429, 3)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    async def main() -> None:
        async with serving(reply(chat())) as server:
            gone = server
        with pytest.raises(EndpointUnavailable):
            await ask(gone)

    run(main())


@pytest.mark.parametrize("status", [400, 401, 404, 422, 302])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_refusal_is_not_tried_again(status: int, streaming: bool) -> None:
    refusal = reply({"error": {"message": "no such model"}}, status, Location="/v1/other")
    error, requests = outcome(refusal, stream=streaming)
    assert isinstance(error, RequestRefused)
    assert (error.status, error.tries, requests) == (status, 1, 1)
    assert "no such model" in str(error)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"id": "c1"}',
        b"[]",
        b"null",
        b"\xff\xfe",
        b"<html>" * 10_000,
        b'{"choices": []}',
    ],
)
def test_an_answer_that_cannot_be_read_is_quoted_briefly_and_not_tried_again(body: bytes) -> None:
    error, requests = outcome(reply(body))
    assert isinstance(error, MalformedAnswer)
    assert requests == 1
    assert len(str(error)) < 1000


def test_a_server_that_does_not_speak_http_is_told_apart() -> None:
    error, requests = outcome(raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))
    assert isinstance(error, MalformedAnswer)
    assert requests == 1


def test_answers_over_the_size_limit_are_not_read_to_their_end() -> None:
    async def endless(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await connection.send(b"10000\r\n" + b" " * 0x10000 + b"\r\n")

    error, requests = outcome(endless, max_body_bytes=1_000_000)
    assert isinstance(error, AnswerTooLarge)
    assert requests == 1


@pytest.mark.parametrize("data", [b"data: {}\n\n", b"x" * 1000], ids=["events", "one line"])
def test_streams_over_the_size_limit_are_ended(data: bytes) -> None:
    async def endless(connection: Connection) -> None:
        await connection.send(SSE_HEAD)
        while True:
            await connection.send(data * 100)

    error, _ = outcome(endless, stream=True, max_body_bytes=100_000)
    assert isinstance(error, AnswerTooLarge)


@pytest.mark.parametrize(
    "torn",
    [
        stream([piece(content="a")], ending=b""),
        stream([piece(content="a")]),
        stream([piece(content="a"), b"[DONE]"]),
        stream([]),
        raw(SSE_HEAD + b'data: {"id": "c1", "cho'),
    ],
    ids=["dropped", "no end", "no finish", "empty", "cut event"],
)
def test_a_stream_that_ends_before_its_answer_is_an_error_and_nothing_is_kept(torn: Answer) -> None:
    async def main() -> None:
        async with serving(torn) as server, OpenAIClient(server.url) as client:
            pieces = await client.chat.completions.create(
                messages=[USER], stream=True, max_tokens=9
            )
            with pytest.raises(MalformedAnswer):
                await pieces.answer()
            assert client.interactions == {}
            assert len(server.requests) == 1
            assert [chunk async for chunk in pieces] == []

    run(main())


def test_a_stream_broken_off_midway_gives_what_came_and_then_says_so() -> None:
    async def main() -> None:
        torn = stream([piece(content="a"), piece(content="b")], ending=b"")
        async with serving(torn) as server, OpenAIClient(server.url) as client:
            pieces = await client.chat.completions.create(
                messages=[USER], stream=True, max_tokens=9
            )
            for said in "ab":
                assert (await anext(pieces)).choices[0].delta.content == said
            with pytest.raises(TornStream):
                await anext(pieces)

    run(main())


def test_a_stream_without_a_last_word_is_whole_once_the_answer_has_finished() -> None:
    answer, _ = outcome(stream([piece(content="a"), piece("stop")]), stream=True)
    assert answer.choices[0].message.content == "a"


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (b"{broken", MalformedAnswer),
        (b'{"choices": 3}', MalformedAnswer),
        ({"error": {"message": "out of memory"}}, EndpointUnavailable),
    ],
)
def test_bad_news_inside_a_stream_is_an_error(event: Any, kind: type[Exception]) -> None:
    error, _ = outcome(stream([piece(content="a"), event]), stream=True)
    assert type(error) is kind


@pytest.mark.parametrize("content_type", ["text/html", "application/json", "text/plain"])
def test_what_is_no_stream_is_not_taken_for_one(content_type: str) -> None:
    error, _ = outcome(reply(b"<html>hello", 200, content_type), stream=True)
    assert isinstance(error, MalformedAnswer)
    assert content_type in str(error)
    assert "hello" in str(error)


@pytest.mark.parametrize(
    ("limits", "sent", "streaming"),
    [
        ({"timeout_s": 0.2}, b"", False),
        ({"first_byte_s": 0.2}, b"", False),
        ({"timeout_s": 0.2}, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", False),
        ({"timeout_s": 0.2}, SSE_HEAD + b"data: {}\n\n", True),
        ({"first_byte_s": 0.2}, SSE_HEAD, True),
    ],
)
def test_a_server_that_takes_too_long_is_left(
    limits: dict[str, Any], sent: bytes, streaming: bool
) -> None:
    async def main() -> None:
        async with serving(hang(sent)) as server:
            with pytest.raises(EndpointTimeout, match=r"0\.2 s") as caught:
                await ask(server, streaming, **limits)
            assert isinstance(caught.value, TimeoutError)
            await server.client_left.wait()
            assert len(server.requests) == 1

    run(main())


def test_a_server_that_takes_no_connection_is_given_up_in_time() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
            address = full.getsockname()
            for _ in range(4):  # more than a queue of none has room for
                one = waiting.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(address)
            url = f"http://127.0.0.1:{address[1]}"
            rule = RetryRule(max_retries=1, base_s=0.001)
            async with OpenAIClient(url, connect_s=0.2, retry=rule) as client:
                with pytest.raises(EndpointTimeout, match="no connection") as caught:
                    await client.completions.create(prompt="x", max_tokens=1)
        assert (caught.value.tries, caught.value.status) == (2, None)

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_cancelling_closes_the_request_so_that_the_server_can_stop(streaming: bool) -> None:
    async def main() -> None:
        reached = asyncio.Event()

        async def answer(connection: Connection) -> None:
            reached.set()
            await hang(SSE_HEAD if streaming else b"")(connection)

        async with serving(answer) as server:
            call = asyncio.create_task(ask(server, streaming))
            await reached.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await server.client_left.wait()

    run(main())


def test_closing_a_stream_early_closes_the_request_and_keeps_nothing() -> None:
    first = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'

    async def main() -> None:
        async with serving(hang(SSE_HEAD + first)) as server, OpenAIClient(server.url) as client:
            create = client.chat.completions.create
            async with await create(messages=[USER], stream=True, max_tokens=9) as pieces:
                async for chunk in pieces:
                    assert chunk.choices[0].delta.content == "a"
                    break
            await server.client_left.wait()
            assert client.interactions == {}

    with capture() as captured:
        run(main())
        assert captured.named("generate").attrs["status"] == 200


def test_no_more_requests_are_under_way_than_allowed_and_waiting_is_not_slowness() -> None:
    async def main() -> None:
        async def slow(connection: Connection) -> None:
            await asyncio.sleep(0.02)
            await reply(chat(answer_id=""))(connection)

        async with serving(slow) as server:
            settings: dict[str, Any] = {"max_connections": 4, "timeout_s": 5, "first_byte_s": 5}
            async with OpenAIClient(server.url, **settings) as client:
                create = client.chat.completions.create
                await asyncio.gather(*(create(messages=[USER], max_tokens=9) for _ in range(60)))
                assert len(client.interactions) == 60
            assert server.most_running == 4

    run(main())


def test_hundreds_of_requests_can_be_under_way_at_once() -> None:
    async def main() -> None:
        everyone = asyncio.Event()

        async def together(connection: Connection) -> None:
            if connection.server.running == 300:
                everyone.set()
            await everyone.wait()
            await reply(chat())(connection)

        async with serving(together) as server, OpenAIClient(server.url) as client:
            create = client.chat.completions.create
            await asyncio.gather(*(create(messages=[USER], max_tokens=9) for _ in range(300)))
            assert server.most_running == 300

    run(main())


def test_sessions_share_connections_and_not_interactions() -> None:
    async def main() -> None:
        async with (
            serving(reply(chat())) as server,
            OpenAIClient(server.url, keep_interactions=False) as client,
        ):
            session = client.for_session()
            await session.chat.completions.create(messages=[USER], max_tokens=9)
            await client.chat.completions.create(messages=[USER], max_tokens=9)
            assert list(session.interactions) == ["c1"]
            assert client.interactions == {}

    run(main())


def test_texts_are_continued_whole_and_in_pieces() -> None:
    whole = {"id": "t", "choices": [{"text": "ab", "finish_reason": "stop"}], "usage": USAGE}
    parts = [{"choices": [{"text": part}]} for part in "ab"]
    end = {"choices": [{"text": "", "finish_reason": "length"}]}

    async def main() -> None:
        async with serving(reply(whole), stream([*parts, end])) as server:
            async with OpenAIClient(server.url, max_total_tokens=10) as client:
                create = client.completions.create
                assert (await create(prompt=[1, 2, 3])).choices[0].text == "ab"
                pieces = await create(prompt="x", stream=True, max_tokens=3)
                answer = await pieces.answer()
                assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("ab", "length")
            assert server.requests[0].path == "/v1/completions"
            assert server.requests[0].body == {"prompt": [1, 2, 3], "max_tokens": 7}

    run(main())


@pytest.mark.parametrize("name", ["max_output_tokens", "max_tokens", "max_completion_tokens"])
def test_a_response_is_limited_under_any_name_and_the_server_told_the_right_one(name: str) -> None:
    async def main() -> None:
        async with serving(reply({"id": "r", "output": []})) as server:
            async with OpenAIClient(server.url) as client:
                await client.responses.create(input="hi", **{name: 9})
            assert server.requests[0].body == {"input": "hi", "max_output_tokens": 9}

    run(main())


def test_the_responses_api_is_spoken_and_kept_as_a_conversation() -> None:
    def answer(answer_id: str, *output: Any) -> dict[str, Any]:
        usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
        return {"id": answer_id, "output": output, "usage": usage}

    call = {"type": "function_call", "call_id": "t1", "name": "look", "arguments": "{}"}
    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "ok"}],
    }

    async def main() -> None:
        answers = reply(answer("r1", {"type": "reasoning", "summary": []}, call))
        async with serving(answers, reply(answer("r2", said))) as server:
            async with OpenAIClient(server.url) as client:
                create = client.responses.create
                await create(input="hi", instructions="be brief", max_output_tokens=5)
                told = {"type": "function_call_output", "call_id": "t1", "output": "a door"}
                second = await create(input=[told], previous_response_id="r1", max_output_tokens=5)
            assert second.output_text == "ok"
            assert server.requests[0].body["max_output_tokens"] == 5
            assert server.requests[1].body["previous_response_id"] == "r1"
            assert client.interactions["r2"].parent is client.interactions["r1"]

    with capture() as captured:
        run(main())
        assert [span.attrs["tokens_out"] for span in captured.spans()] == [4, 4]


def test_without_aiohttp_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingExtra, match=r"rollscope\[rollout\]"):
        run(OpenAIClient("http://127.0.0.1:1").completions.create(prompt="x", max_tokens=1))


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://host/v1", "http://", "http://h/v1?x=1"])
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        OpenAIClient(url)


def _generated(logprobs: Any, finish: str | None = "stop", **choice: Any) -> dict[str, Any]:
    return {"choices": [{"text": "x", "logprobs": logprobs, "finish_reason": finish, **choice}]}


async def _generate(server: Server, **config: Any) -> Any:
    async with HttpEngine(server.url.removesuffix("/v1"), model="m", retry=QUICK) as engine:
        engine.set_version(8)
        request = ModelRequest([1, 2, 3], GenerationConfig(**config), rid="r7")
        return await engine.agenerate(request)


@pytest.mark.parametrize(
    ("logprobs", "choice"),
    [
        ({"tokens": ["token_id:5", "token_id:6"], "token_logprobs": [-0.1, -0.2]}, {}),
        ({"tokens": ["he", "llo"], "token_logprobs": [-0.1, -0.2]}, {"token_ids": [5, 6]}),
    ],
)
@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stop"), ("length", "length"), ("abort", "abort"), (None, "abort")],
)
def test_an_engine_over_http_gives_tokens_logprobs_and_versions(
    logprobs: Any, choice: dict[str, Any], finish: str | None, reason: str
) -> None:
    async def main() -> None:
        async with serving(reply(_generated(logprobs, finish, **choice))) as server:
            response = await _generate(server, max_new_tokens=20, greedy=True, stop_token_ids=[0])
            (request,) = server.requests
        assert response.input_tokens == [1, 2, 3]
        assert response.output_tokens == [5, 6]
        assert response.output_logprobs == [-0.1, -0.2]
        assert response.output_versions == [8, 8]
        assert response.stop_reason == reason
        assert request.path == "/v1/completions"
        assert request.headers["x-request-id"] == "r7"
        assert request.body["prompt"] == [1, 2, 3]
        assert (request.body["max_tokens"], request.body["temperature"]) == (20, 0.0)
        assert request.body["stop_token_ids"] == [0]

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        _generated(None),
        _generated({"tokens": ["he"], "token_logprobs": [-0.1]}),
        _generated({"tokens": ["token_id:x"], "token_logprobs": [-0.1]}),
        _generated({"tokens": ["token_id:5"], "token_logprobs": []}),
        {"choices": []},
        {},
    ],
)
def test_an_engine_whose_server_does_not_tell_tokens_says_what_is_needed(answer: Any) -> None:
    async def main() -> None:
        async with serving(reply(answer)) as server:
            with pytest.raises(MalformedAnswer, match="return_token_ids"):
                await _generate(server)

    run(main())


def test_an_engines_version_can_come_from_elsewhere() -> None:
    versions = iter([4, 5])
    engine = HttpEngine("http://127.0.0.1:1", version=lambda: next(versions))
    assert [engine.get_version(), engine.get_version()] == [4, 5]
