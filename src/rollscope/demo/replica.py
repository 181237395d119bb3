"""A process of the demo: one replica of the inference engine, behind an OpenAI-compatible address.

It answers `/v1/completions` as vLLM does with token ids, takes new weights, and tells its metrics.
"""

import argparse
import asyncio
import contextlib
from typing import Any

from aiohttp import web

import rollscope as rs
from rollscope.demo.batching import BatchingEngine
from rollscope.demo.faults import join_from_another_host
from rollscope.demo.language import decode
from rollscope.demo.policy import MODEL
from rollscope.demo.serving import serve

__all__ = ["Replica"]


class Replica:
    """The routes of a replica."""

    def __init__(self, engine: BatchingEngine, lane: str) -> None:
        self._engine = engine
        self._lane = lane
        self._answered = 0

    def app(self) -> web.Application:
        """Give the web application."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(
            [
                web.post("/v1/completions", self.complete),
                web.get("/v1/models", self.models),
                web.get("/health", self.health),
                web.post("/weights/{version}", self.load),
            ]
        )
        return app

    async def complete(self, request: web.Request) -> web.Response:
        """Answer one prompt of token ids."""
        body = await request.json()
        prompt = [int(token) for token in body["prompt"]]
        with (
            rs.attach(dict(request.headers)),
            rs.span("engine.request", replica=self._lane, tokens_in=len(prompt)) as span,
        ):
            stops = frozenset(body.get("stop_token_ids") or ())
            tokens, logprobs, why = await self._engine.generate(prompt, stops, body["max_tokens"])
            span.set(tokens_out=len(tokens), finish=why)
        self._answered += 1
        return web.json_response(_completion(self._answered, prompt, tokens, logprobs, why))

    async def models(self, _: web.Request) -> web.Response:
        """List the one model there is."""
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def health(self, _: web.Request) -> web.Response:
        """Say that it is there, and with which weights."""
        return web.json_response({"status": "ok", "version": self._engine.version})

    async def load(self, request: web.Request) -> web.Response:
        """Take new weights."""
        version = int(request.match_info["version"])
        with rs.attach(dict(request.headers)), rs.state("weights.transfer", lane=self._lane):
            try:
                self._engine.load(await request.read(), version)
            except ValueError as error:
                return web.json_response({"error": str(error)}, status=400)
        return web.json_response({"version": version})


def _completion(
    number: int, prompt: list[int], tokens: list[int], logprobs: list[float], why: str
) -> dict[str, Any]:
    choice = {
        "index": 0,
        "text": decode(tokens),
        "token_ids": tokens,
        "finish_reason": why,
        "logprobs": {
            "tokens": [f"token_id:{token}" for token in tokens],
            "token_logprobs": logprobs,
        },
    }
    return {
        "id": f"cmpl-{number}",
        "object": "text_completion",
        "model": MODEL,
        "choices": [choice],
        "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(tokens)},
    }


async def _main(rank: int, seed: int) -> None:
    lane = f"replica_{rank}"
    engine = BatchingEngine(lane, seed)
    decoding = asyncio.create_task(engine.run())
    await serve(Replica(engine, lane).app(), until=decoding.done)
    decoding.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await decoding


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--skew-s", type=float, default=0.0)
    args = parser.parse_args()
    if args.skew_s:
        join_from_another_host(args.skew_s)
    else:
        rs.init()
    try:
        asyncio.run(_main(args.rank, args.seed))
    finally:
        rs.shutdown()
