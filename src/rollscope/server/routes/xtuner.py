"""`/api/trace`, where programs that watched XTuner's viewers ask: of the newest run, or of one."""

from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.server.bodies import Body, body_response, make_body
from rollscope.server.failures import Failure
from rollscope.server.opened import OpenRun
from rollscope.server.routes.context import given_parameters, library_of
from rollscope.server.xtunertraces import LATEST_BATCH, producer_trace, rollout_trace
from rollscope.store.embedded import RunStore

__all__ = ["ROUTES"]

_SCOPES: Final = (LATEST_BATCH, "all")


async def _trace(request: Request) -> Response:
    given = given_parameters(request, ("train_step", "scope", "run"))
    scope, step = given.get("scope", LATEST_BATCH), given.get("train_step")
    if scope not in _SCOPES:
        raise Failure(400, "There is no such scope.", f"There are: {', '.join(_SCOPES)}.")
    run = await _run(request, given.get("run"))
    key = ("xtuner", f"train_step={step}" if step is not None else f"scope={scope}")
    body = await run.answers.get(key, run.moment, partial(_compute, run, scope, step))
    return body_response(request, body)


async def _run(request: Request, name: str | None) -> OpenRun:
    library = library_of(request)
    if name is None:
        names = await library.names()
        if not names:
            raise Failure(404, "There is no run yet.", "Ask again when something is traced.")
        name = names[-1]
    return await library.open(name)


async def _compute(run: OpenRun, scope: str, step: str | None) -> Body:
    def job(store: RunStore) -> Body:
        found: dict[str, Any]
        found = producer_trace(store, scope) if step is None else rollout_trace(store, step)
        return make_body(msgspec.json.encode(found))

    return await run.ask(job)


ROUTES: Final = (Route("/api/trace", _trace, methods=["GET"]),)
