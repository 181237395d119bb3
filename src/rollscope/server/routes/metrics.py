"""Metrics of all runs for monitoring systems, and whether the server is up."""

import asyncio
import gzip
import re
from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rollscope.metrics.exposition import TextFormat, choose_format, write_text
from rollscope.metrics.families import Exposed
from rollscope.server.exposer import LIMIT_S, Exposer
from rollscope.server.gate import HEALTH_PATH, METRICS_PATH
from rollscope.server.routes.context import given_parameters

__all__ = ["ROUTES"]

_TIMEOUT: Final = "x-prometheus-scrape-timeout-seconds"
_SPARE_S: Final = 0.5
_LEAST_S: Final = 0.2
_QUICK: Final = 1
"""The level of gzip: names and labels repeat so much that more than this hardly saves anything."""


async def _metrics(request: Request) -> Response:
    given_parameters(request, ())
    exposer: Exposer = request.app.state.exposer
    form = choose_format(request.headers.get("accept", ""))
    exposed = await exposer.look(_limit_s(request.headers.get(_TIMEOUT)))
    packs = _takes_gzip(request.headers.get("accept-encoding", ""))
    body = await asyncio.to_thread(_write, exposed, form, packs=packs)
    headers = {"Content-Type": form.value, "Vary": "Accept, Accept-Encoding"}
    return Response(body, headers=headers | ({"Content-Encoding": "gzip"} if packs else {}))


def _write(exposed: Sequence[Exposed], form: TextFormat, *, packs: bool) -> bytes:
    text = write_text(exposed, form)
    return gzip.compress(text, _QUICK, mtime=0) if packs else text


def _takes_gzip(accepted: str) -> bool:
    """Say whether gzip is among what is accepted, and not with a weight of 0, which refuses it."""
    for part in accepted.lower().split(","):
        coding, *weights = part.replace(" ", "").split(";")
        if coding in ("gzip", "*"):
            return not any(re.fullmatch(r"q=0(\.0*)?", weight) for weight in weights)
    return False


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
