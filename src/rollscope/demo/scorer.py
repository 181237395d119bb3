"""A process of the demo: the reward service. Most answers take moments, a few take seconds."""

import argparse
import asyncio
from random import Random
from typing import Final

from aiohttp import web

import rollscope as rs
from rollscope.demo.language import rate
from rollscope.demo.serving import serve

__all__ = ["Scorer"]

_MEDIAN_S: Final = 0.1
_SPREAD: Final = 0.7
_SLOW_SHARE: Final = 0.01
_SLOW_TIMES: Final = 12.0
_LONGEST_S: Final = 3.0
_FAULT_SHARE: Final = 0.15
_FAULT_S: Final = (4.0, 6.0)


class Scorer:
    """Rates answers, each after a time that it draws."""

    def __init__(self, seed: int, *, is_slow: bool = False) -> None:
        self._random = Random(seed)  # noqa: S311  (wants repetition, not secrecy)
        self._is_slow = is_slow

    def app(self) -> web.Application:
        """Give the web application."""
        app = web.Application()
        app.add_routes([web.post("/score", self.score)])
        return app

    async def score(self, request: web.Request) -> web.Response:
        """Rate one answer."""
        body = await request.json()
        with rs.attach(dict(request.headers)), rs.span("reward.verify"):
            await asyncio.sleep(self._takes_s())
            return web.json_response({"reward": rate(str(body["problem"]), str(body["answer"]))})

    def _takes_s(self) -> float:
        if self._is_slow and self._random.random() < _FAULT_SHARE:
            return self._random.uniform(*_FAULT_S)
        takes_s = self._random.lognormvariate(0.0, _SPREAD) * _MEDIAN_S
        if self._random.random() < _SLOW_SHARE:
            takes_s *= _SLOW_TIMES
        return min(takes_s, _LONGEST_S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--slow", action="store_true")
    args = parser.parse_args()
    rs.init()
    try:
        asyncio.run(serve(Scorer(args.seed, is_slow=args.slow).app()))
    finally:
        rs.shutdown()
