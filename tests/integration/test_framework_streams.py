"""Streamed answers of the `openai` package, against a real server on loopback."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

import rollscope as rs
from rollscope.testing.capture import Capture, capture
from tests.integration.asking_openai import (
    PIECES,
    RESPONSE,
    USER,
    generate,
    in_session,
    in_session_sync,
    open_spans,
    piece,
)
from tests.integration.scripted_server import hang, stream


@pytest.fixture
def captured() -> Iterator[Capture]:
    with capture() as recorded:
        yield recorded


def test_a_stream_ends_its_phase_with_its_last_piece(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> list[str | None]:
        create = client.chat.completions.create
        answer = await create(model="policy", messages=[USER], stream=True)
        assert isinstance(answer, openai.AsyncStream)
        assert answer.response.status_code == 200
        assert rs.current().name == "session"  # what is done between pieces is the caller's
        said = []
        async for one in answer:
            assert captured.named("generate").status == "open"
            assert rs.current().name == "session"
            said.append(one.choices[0].delta.content)
        with rs.phase("toolcall"):
            return said

    said, _ = in_session(ask, stream(PIECES))

    assert said == ["go", " on"]
    span = generate(captured)
    assert (span.status, span.attrs["finish"], span.attrs["tokens_out"]) == ("ok", "stop", 2)
    assert span.end_ns is not None
    assert 0 < span.attrs["ttft_s"] <= (span.end_ns - span.start_ns) / 1e9
    assert "closed_early" not in span.attrs
    assert captured.named("toolcall").parent_id == span.parent_id
    assert captured.named("toolcall").start_ns >= span.end_ns


def test_a_stream_of_the_blocking_client_ends_with_its_last_piece(captured: Capture) -> None:
    def ask(client: openai.OpenAI) -> list[str | None]:
        create = client.chat.completions.create
        with create(model="policy", messages=[USER], stream=True) as answer:
            assert isinstance(answer, openai.Stream)
            return [one.choices[0].delta.content for one in answer]

    said, _ = in_session_sync(ask, stream(PIECES))

    assert said == ["go", " on"]
    span = generate(captured)
    assert (span.status, span.attrs["finish"]) == ("ok", "stop")
    assert "closed_early" not in span.attrs


def test_the_first_token_of_a_response_is_its_first_delta(captured: Capture) -> None:
    delta = {"type": "response.output_text.delta", "delta": "go", "item_id": "i"}
    more = {"output_index": 0, "content_index": 0, "sequence_number": 1, "logprobs": []}
    events = [
        {"type": "response.created", "sequence_number": 0, "response": RESPONSE | {"usage": None}},
        delta | more,
        {"type": "response.incomplete", "sequence_number": 2, "response": RESPONSE},
    ]

    async def ask(client: openai.AsyncOpenAI) -> list[str]:
        answer = await client.responses.create(model="policy", input="x", stream=True)
        first = await anext(answer)
        (span,) = (span for span in open_spans() if span.name == "generate")
        assert "ttft_s" not in span.attrs
        kinds = [first.type, (await anext(answer)).type]
        assert span.attrs["ttft_s"] > 0
        return [*kinds, *[event.type async for event in answer]]

    kinds, _ = in_session(ask, stream(events))

    assert kinds == [event["type"] for event in events]
    assert generate(captured).attrs["tokens_out"] == 2
    assert "ttft_s" in generate(captured).attrs


@pytest.mark.parametrize("way", ["close", "with", "forget"])
def test_a_stream_that_is_not_read_to_its_end_ends_its_phase(captured: Capture, way: str) -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        create = client.chat.completions.create
        answer: Any = await create(model="policy", messages=[USER], stream=True)
        await anext(answer)
        assert captured.named("generate").status == "open"
        if way == "close":
            await answer.close()
        elif way == "with":
            async with answer:
                pass
        else:
            await answer.response.aclose()
            del answer
            gc.collect()
        assert captured.named("generate").status == "ok"

    in_session(ask, stream(PIECES))

    assert generate(captured).attrs["closed_early"] is True


def test_a_stream_that_breaks_is_an_error(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        create = client.chat.completions.create
        answer = await create(model="policy", messages=[USER], stream=True)
        with pytest.raises(openai.APIError):
            async for _ in answer:
                pass

    in_session(ask, stream([piece("go"), {"error": {"message": "out of memory"}}]))

    span = generate(captured)
    assert (span.status, span.attrs["error_type"]) == ("error", "APIError")
    assert "ttft_s" in span.attrs


def test_a_stream_that_hangs_shows_where(captured: Capture) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    first = head + b"data: " + json.dumps(piece("go")).encode() + b"\n\n"

    async def ask(client: openai.AsyncOpenAI) -> None:
        create = client.chat.completions.create
        answer = await create(model="policy", messages=[USER], stream=True)
        await anext(answer)
        reading = asyncio.ensure_future(anext(answer))
        await asyncio.sleep(0)  # it runs as far as it can
        (span,) = (span for span in open_spans() if span.name == "generate")
        (stack,) = (stack for stack in rs.stacks() if stack.span_id == span.id)
        assert any("streams.py" in frame for frame in stack.frames)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    in_session(ask, hang(first))

    assert generate(captured).status == "cancelled"


def test_the_helper_that_streams_is_traced(captured: Capture) -> None:
    async def ask(client: openai.AsyncOpenAI) -> Any:
        async with client.chat.completions.stream(model="policy", messages=[USER]) as answer:
            return await answer.get_final_completion()

    whole, _ = in_session(ask, stream(PIECES))

    assert whole.choices[0].message.content == "go on"
    assert (generate(captured).status, generate(captured).attrs["finish"]) == ("ok", "stop")
