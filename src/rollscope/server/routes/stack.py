"""Asking running processes where they hang: the one route that makes anybody do something."""

import asyncio
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.answers.encoding import encode_answer
from rollscope.server.bodies import body_response, make_body
from rollscope.server.failures import Failure
from rollscope.server.routes.context import given_parameters, run_of
from rollscope.server.stacks import take_stacks

__all__ = ["ROUTES"]

_ID: Final = re.compile(r"[0-9a-f]{1,16}")


async def _stack(request: Request) -> Response:
    text = given_parameters(request, ("session",)).get("session")
    if text is not None and not _ID.fullmatch(text):
        raise Failure(400, f"{text[:40]!r} is no session id.", "Give its 16 hexadecimal digits.")
    run = await run_of(request)
    answer = await take_stacks(run, None if text is None else int(text, 16))
    body = await asyncio.to_thread(lambda: make_body(encode_answer(answer)))
    return body_response(request, body)


ROUTES: Final = (Route("/run/{run}/stack", _stack, methods=["POST"]),)
