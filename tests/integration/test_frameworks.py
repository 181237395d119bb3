"""The `openai` package itself, traced, against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

import rollscope as rs
from rollscope.integrations.openai import instrument, uninstrument
from rollscope.model.records import PayloadRecord
from rollscope.testing.capture import Capture, capture
from tests.integration.asking_openai import (
    CHAT,
    PIECES,
    RESPONSE,
    TEXT,
    USER,
    generate,
    in_session,
    in_session_sync,
)
from tests.integration.scripted_server import Connection, hang, reply, stream


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture() as recorded:
        yield recorded


def test_a_chat_is_a_phase_with_what_the_answer_tells(captured: Capture) -> None:
    answer, server = in_session(
        lambda client: client.chat.completions.create(model="policy", messages=[USER]),
        reply(CHAT),
    )

    assert answer.choices[0].message.content == "go on"
    span = generate(captured)
    assert span.status == "ok"
    assert span.attrs == {
        "model": "policy-7b",
        "request_id": "chat-1",
        "finish": "length",
        "tokens_in": 7,
        "tokens_out": 2,
        "tokens_cached": 4,
    }
    (request,) = server.requests
    assert request.headers["traceparent"].split("-")[2] == span.span_id
    assert request.body == {"model": "policy", "messages": [USER]}


def test_the_client_that_blocks_is_traced_alike(captured: Capture) -> None:
    answer, server = in_session_sync(
        lambda client: client.chat.completions.create(model="policy", messages=[USER]),
        reply(CHAT),
    )

    assert answer.choices[0].finish_reason == "length"
    span = generate(captured)
    assert (span.attrs["tokens_out"], span.attrs["request_id"]) == (2, "chat-1")
    assert server.requests[0].headers["traceparent"].split("-")[2] == span.span_id


def test_completions_and_responses_are_phases_too(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        await client.completions.create(model="policy", prompt="what now")
        await client.responses.create(model="policy", input="what now")

    in_session(ask, reply(TEXT), reply(RESPONSE))

    spans = [span for span in captured.spans() if span.name == "generate"]
    assert [(s.attrs["finish"], s.attrs["request_id"]) for s in spans] == [
        ("stop", "text-1"),
        ("max_output_tokens", "resp-1"),
    ]
    assert (spans[1].attrs["tokens_in"], spans[1].attrs["tokens_reasoning"]) == (7, 1)


def test_a_refused_request_is_an_error_with_its_status(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.RateLimitError):
            await client.chat.completions.create(model="policy", messages=[USER])

    in_session(ask, reply({"error": {"message": "busy"}}, 429, x_request_id="req-9"))

    span = generate(captured)
    assert span.status == "error"
    assert span.attrs == {
        "model": "policy",
        "error_type": "RateLimitError",
        "status": 429,
        "request_id": "req-9",
    }
    assert (span.reason or "").startswith("RateLimitError: ")


def test_a_cancelled_request_is_cancelled(captured: Capture) -> None:
    arrived = asyncio.Event()

    async def take_in(connection: Connection) -> None:
        arrived.set()
        await hang()(connection)

    async def ask(client: openai.AsyncOpenAI) -> None:
        create = client.chat.completions.create
        asking = asyncio.ensure_future(create(model="policy", messages=[USER]))
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    in_session(ask, take_in)

    assert generate(captured).status == "cancelled"


def test_headers_of_the_caller_win(captured: Capture) -> None:
    mine = {"TraceParent": f"00-{'1' * 32}-{'2' * 16}-01", "X-Team": "rl"}
    _, server = in_session(
        lambda client: client.chat.completions.create(
            model="policy", messages=[USER], extra_headers=mine
        ),
        reply(CHAT),
    )

    assert server.requests[0].headers["traceparent"] == mine["TraceParent"]
    assert server.requests[0].headers["x-team"] == "rl"


def test_headers_are_kept_back_when_asked(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        instrument(client, propagate=False)
        await client.chat.completions.create(model="policy", messages=[USER])

    _, server = in_session(ask, reply(CHAT))

    assert "traceparent" not in server.requests[0].headers
    assert generate(captured).status == "ok"


def test_all_clients_are_traced_once_each_and_left_alone_afterwards(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        instrument()
        try:
            instrument()  # twice is once
            await client.chat.completions.create(model="policy", messages=[USER])
            copied = client.with_options(timeout=9)
            await copied.chat.completions.create(model="policy", messages=[USER])
        finally:
            uninstrument()
        await copied.chat.completions.create(model="policy", messages=[USER])
        await client.chat.completions.create(model="policy", messages=[USER])
        uninstrument(client)
        await client.chat.completions.create(model="policy", messages=[USER])

    _, server = in_session(ask, reply(CHAT))

    assert len(server.requests) == 5
    assert len([span for span in captured.spans() if span.name == "generate"]) == 3
    assert ["traceparent" in request.headers for request in server.requests] == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_an_instrumented_client_does_as_before_when_nothing_is_recorded() -> None:
    async def ask(client: openai.AsyncOpenAI) -> Any:
        assert not rs.enabled()
        create = client.chat.completions.create
        return await create(model="policy", messages=[USER], stream=True)

    answer, server = in_session(ask, stream(PIECES))

    assert type(answer) is openai.AsyncStream
    assert "traceparent" not in server.requests[0].headers


def test_a_raw_response_is_timed_and_read_by_its_caller(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> Any:
        create = client.chat.completions.with_raw_response.create
        raw = await create(model="policy", messages=[USER])
        return raw.parse()

    answer, _ = in_session(ask, reply(CHAT))

    assert answer.choices[0].message.content == "go on"
    assert generate(captured).status == "ok"


def test_what_was_said_is_kept_when_payloads_are() -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        create = client.chat.completions.create
        await create(model="policy", messages=[USER])
        async for _ in await create(model="policy", messages=[USER], stream=True):
            pass
        await client.completions.create(model="policy", prompt="what now")

    with capture(payloads=True) as captured:
        in_session(ask, reply(CHAT), stream(PIECES), reply(TEXT))
        kept = [
            (record.name, json.loads(record.text))
            for record in captured.records()
            if isinstance(record, PayloadRecord)
        ]

    message = {"role": "assistant", "content": "go on"}
    assert kept == [
        ("messages", [USER]),
        ("completion", [message]),
        ("messages", [USER]),
        ("completion", "go on"),
        ("prompt", "what now"),
        ("completion", "go on"),
    ]
