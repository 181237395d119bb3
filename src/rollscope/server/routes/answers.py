"""The list of runs, and every answer of the registry, as the commands print them with `--json`."""

import asyncio
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.answers.encoding import encode_answer
from rollscope.answers.question import Question
from rollscope.answers.questions import QUESTIONS, questions_schema
from rollscope.server.bodies import Body, body_response, make_body
from rollscope.server.failures import Failure
from rollscope.server.library import Library
from rollscope.server.opened import OpenRun
from rollscope.server.routes.context import given_parameters, library_of, run_of
from rollscope.server.timelines import prepare_timeline
from rollscope.store.embedded import RunStore

__all__ = ["ROUTES"]

_FIRST_QUESTION: Final = "overview"
"""What every page of a run begins with."""
_STALE: Final = "Rollscope-Stale"
"""Seconds until a newer answer can be had, where the run has come further than this one."""


async def _runs(request: Request) -> Response:
    given_parameters(request, ())
    listed = await library_of(request).describe()
    body = await asyncio.to_thread(make_body, msgspec.json.encode(listed))
    return body_response(request, body)


async def _overview(request: Request) -> Response:
    return await _answer(request, QUESTIONS["overview"])


async def _named(request: Request) -> Response:
    name = request.path_params["name"]
    question = QUESTIONS.get(name)
    if question is None:
        raise Failure(
            404, f"There is no answer {name[:40]!r}.", f"There are: {', '.join(QUESTIONS)}."
        )
    return await _answer(request, question)


async def _answer(request: Request, question: Question) -> Response:
    given = given_parameters(request)
    run = await run_of(request)
    if question.name == _FIRST_QUESTION:
        prepare_timeline(run)
    key = (question.name, *(f"{name}={value}" for name, value in sorted(given.items())))
    compute = partial(_compute, library_of(request), run, question, given)
    response = body_response(request, await run.answers.get(key, run.moment, compute))
    # Always sent: a browser that has the body already keeps the headers it is not sent again.
    response.headers[_STALE] = f"{run.answers.renewed_in_s(key, run.moment()):.3f}"
    return response


async def _compute(
    library: Library, run: OpenRun, question: Question, given: dict[str, str]
) -> Body:
    loop = asyncio.get_running_loop()

    def job(store: RunStore) -> Body:
        answer = question.ask(store, given, partial(library.open_from_thread, loop=loop))
        return make_body(encode_answer(answer))

    return await run.ask(job)


async def _schema(request: Request) -> Response:
    body = await asyncio.to_thread(lambda: make_body(msgspec.json.encode(questions_schema())))
    return body_response(request, body)


ROUTES: Final = (
    Route("/runs", _runs),
    Route("/schema", _schema),
    Route("/run/{run}", _overview),
    Route("/run/{run}/answer/{name}", _named),
)
