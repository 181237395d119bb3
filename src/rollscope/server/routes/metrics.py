"""Metrics of all runs for monitoring systems, and whether the server is up."""

import asyncio
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rollscope.metrics.exposition import choose_format, write_text
from rollscope.server.exposer import LIMIT_S, Exposer
from rollscope.server.gate import HEALTH_PATH, METRICS_PATH
from rollscope.server.routes.context import given_parameters

__all__ = ["ROUTES"]

_TIMEOUT: Final = "x-prometheus-scrape-timeout-seconds"
_SPARE_S: Final = 0.5
_LEAST_S: Final = 0.2


async def _metrics(request: Request) -> Response:
    given_parameters(request, ())
    exposer: Exposer = request.app.state.exposer
    form = choose_format(request.headers.get("accept", ""))
    exposed = await exposer.look(_limit_s(request.headers.get(_TIMEOUT)))
    body = await asyncio.to_thread(partial(write_text, exposed, form))
    return Response(body, headers={"Content-Type": form.value})


def _limit_s(timeout: str | None) -> float:
    """Say how long to wait for slow runs: less than whoever asks waits for us."""
    try:
        given_s = float(timeout or "")
    except ValueError:
        return LIMIT_S
    return max(min(LIMIT_S, given_s - _SPARE_S), _LEAST_S) if given_s == given_s else LIMIT_S


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


ROUTES: Final = (
    Route(METRICS_PATH, _metrics, methods=["GET"]),
    Route(HEALTH_PATH, _health, methods=["GET"]),
)
