"""Who is asked for metrics: listed, added and removed, for one run or for the whole server.

`sd` gives the same targets in the form in which Prometheus asks for them.
"""

import time
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.collect.discovery import discovery_groups, encode_groups
from rollscope.collect.expiry import GoneTarget
from rollscope.collect.scraping import Scraper
from rollscope.collect.targets import make_target
from rollscope.collect.watchlist import TargetFixed, Watched
from rollscope.model.undecodable import UNDECODABLE
from rollscope.server.failures import Failure
from rollscope.server.routes.context import given_parameters
from rollscope.server.routes.ingest import collector_of

__all__ = ["ROUTES", "TargetLine", "TargetList"]

_BODY_BYTES: Final = 64 * 1024
_FORM: Final = 'Send {"url": "http://host:8000/metrics", "replica": "r0", "labels": {}}.'
_AT_THE_START: Final = "Start the server with other options, or change its file of targets."


class TargetLine(msgspec.Struct, kw_only=True):
    """Someone who is asked."""

    url: str
    replica: str | None
    labels: dict[str, str]
    run: str | None
    """None: goes into the run that is being recorded."""
    source: str
    """`option`, `file` or `request`."""
    is_up: bool | None
    """None before the first answer."""
    trouble: str
    """What is wrong with it."""
    asked_ns: int
    metrics: int
    """That its last answer gave."""
    bad_lines: int
    is_discovered: bool
    """Whether a Prometheus is told of it: not if its address holds a secret."""
    goes_ns: int | None
    """When it is asked no more, if it stays down or its run is not recorded."""


class TargetList(msgspec.Struct):
    """All of them."""

    targets: list[TargetLine]
    gone: list[GoneTarget]
    """The last ones that the server has let go of by itself."""
    problem: str
    """Why those that were added are forgotten when the server ends, if they are."""


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    url: str
    replica: str | None = None
    labels: dict[str, str] = {}
    run: str | None = None


def _scraper_of(request: Request) -> Scraper:
    scraper: Scraper = request.app.state.scraper
    return scraper


def _run_of(request: Request, named: str | None = None) -> str | None:
    """Give the run, which need not have begun; None: whichever is being recorded.

    Raises:
        Failure: The address names one, and what was sent another.
        IngestError: No run may be called so, or this server shows another one.
    """
    run: str | None = request.path_params.get("run", named)
    if named not in (None, run):
        raise Failure(400, "Two runs are named.", "Leave out `run`, or send to api/v1/targets.")
    if run is not None:
        collector_of(request).keeper.check_run(run)
    return run


async def _list(request: Request) -> Response:
    given_parameters(request, ())
    return _listed(request)


def _listed(request: Request) -> Response:
    scraper, run = _scraper_of(request), _run_of(request)
    lines = [_line(one, scraper) for one in scraper.watched(run)]
    gone = [one for one in scraper.expiry.gone if run is None or one.run in (None, run)]
    return _json(msgspec.json.encode(TargetList(lines, gone, scraper.store.problem)))


async def _add(request: Request) -> Response:
    given_parameters(request, ())
    given = await _read(request)
    run = _run_of(request, given.run)
    try:
        target = make_target(given.url, replica=given.replica, labels=given.labels, run=run)
        await _scraper_of(request).register(target)
    except TargetFixed as error:
        raise Failure(409, f"{error}.", _AT_THE_START) from None
    except ValueError as error:
        text = str(error)
        raise Failure(400, f"{text[:1].upper()}{text[1:]}.", _FORM) from None
    return _listed(request)


async def _remove(request: Request) -> Response:
    is_of_run = "run" in request.path_params
    given = given_parameters(request, ("url",) if is_of_run else ("url", "run"))
    run = _run_of(request, given.get("run"))
    try:
        url = make_target(given.get("url", "")).address.url
    except ValueError:
        raise Failure(400, "No target is named.", "Add ?url= and its address.") from None
    try:
        was_there = await _scraper_of(request).unregister((run, url))
    except TargetFixed as error:
        raise Failure(409, f"{error}.", _AT_THE_START) from None
    if not was_there:
        where = "without a run" if run is None else "to this run"
        raise Failure(404, f"No such target was added {where}.", "GET lists those there are.")
    return Response(status_code=204)


async def _discover(request: Request) -> Response:
    given_parameters(request, ())
    return _json(encode_groups(_scraper_of(request).discovery()))


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


def _line(watched: Watched, scraper: Scraper) -> TargetLine:
    watch, target = watched.watch, watched.watch.target
    remaining_s = scraper.expiry.remaining_s(target)
    return TargetLine(
        url=target.address.url,
        replica=target.replica,
        labels=target.labels,
        run=target.run,
        source=watched.source.value,
        is_up=watch.is_up,
        trouble=watch.trouble,
        asked_ns=watch.asked_ns,
        metrics=watch.series,
        bad_lines=watch.bad_lines,
        is_discovered=bool(discovery_groups([target], None)),
        goes_ns=None if remaining_s is None else time.time_ns() + int(remaining_s * 1e9),
    )


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


ROUTES: Final = (
    *(
        Route(path, answer, methods=[method])
        for path in ("/targets", "/run/{run}/targets")
        for method, answer in (("GET", _list), ("POST", _add), ("DELETE", _remove))
    ),
    Route("/sd", _discover, methods=["GET"]),
)
