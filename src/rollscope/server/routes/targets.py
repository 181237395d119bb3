"""Who is asked for metrics on behalf of a run: listed, added and removed."""

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.collect.scraping import Scraper
from rollscope.collect.targets import make_target
from rollscope.collect.watching import Watch
from rollscope.model.undecodable import UNDECODABLE
from rollscope.server.failures import Failure
from rollscope.server.routes.context import given_parameters
from rollscope.server.routes.ingest import collector_of

__all__ = ["ROUTES", "TargetLine", "TargetList"]

_BODY_BYTES: Final = 64 * 1024
_FORM: Final = 'Send {"url": "http://host:8000/metrics", "replica": "r0", "labels": {}}.'


class TargetLine(msgspec.Struct, kw_only=True):
    """Someone who is asked."""

    url: str
    replica: str | None
    labels: dict[str, str]
    run: str | None
    """None: goes into the run that is being recorded."""
    is_up: bool | None
    """None before the first answer."""
    trouble: str
    """What is wrong with it."""
    asked_ns: int
    metrics: int
    """That its last answer gave."""
    bad_lines: int


class TargetList(msgspec.Struct):
    """All of them."""

    targets: list[TargetLine]


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    replica: str | None = None
    labels: dict[str, str] = {}


def _scraper_of(request: Request) -> Scraper:
    scraper: Scraper = request.app.state.scraper
    return scraper


def _run_of(request: Request) -> str:
    """Give the run, which need not have begun.

    Raises:
        IngestError: No run may be called so, or this server shows another one.
    """
    run: str = request.path_params["run"]
    collector_of(request).keeper.check_run(run)
    return run


async def _list(request: Request) -> Response:
    given_parameters(request, ())
    lines = [_line(watch) for watch in _scraper_of(request).watches(_run_of(request))]
    return _json(TargetList(lines))


async def _add(request: Request) -> Response:
    run = _run_of(request)
    given = await _read(request)
    try:
        target = make_target(given.url, replica=given.replica, labels=given.labels, run=run)
        _scraper_of(request).add(target)
    except ValueError as error:
        text = str(error)
        raise Failure(400, f"{text[:1].upper()}{text[1:]}.", _FORM) from None
    return await _list(request)


async def _remove(request: Request) -> Response:
    run = _run_of(request)
    url = given_parameters(request, ("url",)).get("url", "")
    try:
        url = make_target(url).address.url
    except ValueError:
        raise Failure(400, "No target is named.", "Add ?url= and its address.") from None
    if not _scraper_of(request).remove(run, url):
        raise Failure(404, "No such target was added to this run.", "GET lists those there are.")
    return Response(status_code=204)


async def _read(request: Request) -> _Given:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _BODY_BYTES:
            raise Failure(413, "That is too much for one target.", _FORM)
    try:
        return msgspec.json.decode(body, type=_Given)
    except UNDECODABLE as error:
        raise Failure(400, f"That is no target: {error}.", _FORM) from None


def _line(watch: Watch) -> TargetLine:
    target = watch.target
    return TargetLine(
        url=target.address.url,
        replica=target.replica,
        labels=target.labels,
        run=target.run,
        is_up=watch.is_up,
        trouble=watch.trouble,
        asked_ns=watch.asked_ns,
        metrics=watch.series,
        bad_lines=watch.bad_lines,
    )


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


ROUTES: Final = (
    Route("/run/{run}/targets", _list, methods=["GET"]),
    Route("/run/{run}/targets", _add, methods=["POST"]),
    Route("/run/{run}/targets", _remove, methods=["DELETE"]),
)
