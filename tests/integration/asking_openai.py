"""Asking a scripted server through the `openai` package, within a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import openai

import rollscope as rs
from rollscope.instrument import default
from rollscope.integrations.openai import instrument
from rollscope.model.records import SpanRecord
from rollscope.testing.capture import Capture
from tests.integration.scripted_server import Answer, Server, serving

__all__ = [
    "CHAT",
    "PIECES",
    "RESPONSE",
    "TEXT",
    "USER",
    "generate",
    "in_session",
    "in_session_sync",
    "open_spans",
    "piece",
]

T = TypeVar("T")
USER: Any = {"role": "user", "content": "what now"}
USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 2,
    "total_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 4},
}
CHAT = {
    "id": "chat-1",
    "object": "chat.completion",
    "created": 1,
    "model": "policy-7b",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "go on"},
            "finish_reason": "length",
        }
    ],
    "usage": USAGE,
}
TEXT = {
    "id": "text-1",
    "object": "text_completion",
    "created": 1,
    "model": "policy-7b",
    "choices": [{"index": 0, "text": "go on", "finish_reason": "stop", "logprobs": None}],
    "usage": USAGE,
}
RESPONSE = {
    "id": "resp-1",
    "object": "response",
    "created_at": 1,
    "model": "policy-7b",
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [],
    "usage": {
        "input_tokens": 7,
        "output_tokens": 2,
        "total_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}


def piece(content: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    base = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "policy-7b"}
    return {**base, "choices": [delta], **more}


PIECES = [piece("go"), piece(" on", "stop", usage=USAGE), b"[DONE]"]


def _run(main: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(main, 60))


def in_session(
    ask: Callable[[openai.AsyncOpenAI], Coroutine[Any, Any, T]], *answers: Answer
) -> tuple[T, Server]:
    """Ask an instrumented client within a session."""

    async def main() -> tuple[T, Server]:
        async with serving(*answers) as server:
            url = server.url
            client = openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0)
            async with client, rs.task("item"), rs.session(sample=3):
                return await ask(instrument(client)), server

    return _run(main())


def in_session_sync(ask: Callable[[openai.OpenAI], T], *answers: Answer) -> tuple[T, Server]:
    """Do so by the client that blocks, in a thread beside the server."""

    async def main() -> tuple[T, Server]:
        async with serving(*answers) as server:
            url = server.url
            with openai.OpenAI(base_url=url, api_key="k", max_retries=0) as client:
                async with rs.task("item"), rs.session(sample=3):
                    return await asyncio.to_thread(ask, instrument(client)), server

    return _run(main())


def open_spans() -> list[rs.Span]:
    recorder = default._tracer._recorder
    assert recorder is not None
    return list(recorder.buffers.open.values())


def generate(captured: Capture) -> SpanRecord:
    span = captured.named("generate")
    assert (span.kind, span.task_key, span.sample) == ("phase", "item", 3)
    assert span.parent_id == captured.named("session").span_id
    return span
