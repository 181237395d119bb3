"""What the timeline is drawn from: tiles, whole frames, what changed, areas and single spans."""

import asyncio
import gzip
import re
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.errors import QueryError
from rollscope.server.bodies import Body, body_response, make_body
from rollscope.server.failures import Failure
from rollscope.server.opened import OpenRun
from rollscope.server.routes.context import given_parameters, read_whole, run_of
from rollscope.server.timelines import current_timeline, sessions_matching
from rollscope.timeline import GROUPINGS, DeltaTooOld, TileQuery, TimelineIndex

__all__ = ["MOST_SPANS", "ROUTES"]

MOST_SPANS: Final = 1_200_000
"""Of a whole frame: a million and some; beyond it a page stays with tiles."""
_MOST_PIXELS: Final = 8192
_MOST_LANES: Final = 1024
_MOST_RANGES: Final = 32
_RANGE: Final = re.compile("[0-9]{1,9}-[0-9]{1,9}", re.ASCII)
_WINDOW: Final = ("by", "t0", "t1", "first", "lanes")
_BINARY: Final = "application/octet-stream"
_WORTH_PACKING: Final = 4096


async def _tile(request: Request) -> Response:
    given = given_parameters(request, (*_WINDOW, "width", "f", "only", "overview", "silhouettes"))
    width = read_whole(given, "width", 1024, least=1, most=_MOST_PIXELS)
    overview = read_whole(given, "overview", 0, most=_MOST_PIXELS)
    has_groups = read_whole(given, "silhouettes", 0, most=1) == 1
    run, index = await _index(request, given)
    t0_ns, t1_ns, first, lanes = _window(given, index)
    sessions = await sessions_matching(run, given["f"]) if given.get("f") else None
    query = TileQuery(
        t0_ns=t0_ns,
        t1_ns=t1_ns,
        width=width,
        first=first,
        lanes=lanes,
        only=_ranges(given["only"]) if "only" in given else None,
        sessions=sessions,
    )
    make = partial(index.tile, query, overview=overview, silhouettes=has_groups)
    return await _send(request, make)


async def _frame(request: Request) -> Response:
    given = given_parameters(request, ("by", "mode"))
    mode = given.get("mode", "raw")
    if mode not in ("raw", "packed"):
        raise Failure(400, f"The parameter 'mode' is {mode[:40]!r}.", "Give raw or packed.")
    run, index = await _index(request, given)
    if index.total_spans > MOST_SPANS:
        raise Failure(
            413,
            f"The run has {index.total_spans:,} spans, more than {MOST_SPANS:,}.",
            "Draw it from tiles.",
        )
    if mode == "raw":
        content = await asyncio.to_thread(index.frame, "raw")
        return Response(content, media_type=_BINARY)

    async def compute() -> Body:
        return await asyncio.to_thread(
            lambda: make_body(index.frame("packed"), _BINARY, packs=False)
        )

    return body_response(request, await run.answers.get(("frame", index.by), run.moment, compute))


async def _delta(request: Request) -> Response:
    given = given_parameters(request, ("by", "since"))
    since = read_whole(given, "since", None)
    _, index = await _index(request, given)
    try:
        return await _send(request, partial(index.delta, since))
    except DeltaTooOld as error:
        raise Failure(410, str(error), "Load the current window again.") from error


async def _area(request: Request) -> Response:
    given = given_parameters(request, _WINDOW)
    run, index = await _index(request, given)
    window = _window(given, index)
    # It reads the store, so it goes where a question that takes too long is stopped.
    body = await run.ask(lambda _: make_body(msgspec.json.encode(index.area(*window))))
    return body_response(request, body)


async def _span(request: Request) -> Response:
    given = given_parameters(request, ("by", "session", "lane", "row", "start"))
    lane, row = read_whole(given, "lane", None), read_whole(given, "row", None)
    start_ns = read_whole(given, "start", None)
    run, index = await _index(request, given)
    try:
        found = await run.ask(lambda _: index.span(lane, row, start_ns))
    except (QueryError, IndexError) as error:
        raise Failure(404, "There is no span at that place.", "Load the window again.") from error
    return body_response(request, make_body(msgspec.json.encode(found)))


async def _index(request: Request, given: dict[str, str]) -> tuple[OpenRun, TimelineIndex]:
    by = given.get("by", "host")
    if by not in GROUPINGS:
        raise Failure(
            400, f"The parameter 'by' is {by[:40]!r}.", f"Give one of: {', '.join(GROUPINGS)}."
        )
    run = await run_of(request)
    return run, await current_timeline(run, by)


def _window(given: dict[str, str], index: TimelineIndex) -> tuple[int, int, int, int]:
    t0_ns = read_whole(given, "t0", index.t0_ns)
    t1_ns = read_whole(given, "t1", max(index.last_ns, index.t0_ns + 1))
    if t1_ns <= t0_ns:
        raise Failure(400, "The window ends before it begins.", "Give t0 and t1 in order.")
    first = read_whole(given, "first", 0, most=2**31)
    return t0_ns, t1_ns, first, read_whole(given, "lanes", 64, least=1, most=_MOST_LANES)


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Read positions of lanes, such as `0-64,128-192`; the second of each is left out."""
    parts = text.split(",") if text else []
    if len(parts) > _MOST_RANGES or not all(_RANGE.fullmatch(part) for part in parts):
        raise Failure(
            400,
            f"The parameter 'only' is {text[:40]!r}.",
            f"Give up to {_MOST_RANGES} ranges of lanes, such as 0-64,128-192.",
        )
    pairs = (part.split("-") for part in parts)
    return tuple((int(low), int(high)) for low, high in pairs)


async def _send(request: Request, make: Callable[[], bytes]) -> Response:
    """Send a frame, lightly packed: tiles go over tunnels too."""
    packs = "gzip" in request.headers.get("accept-encoding", "")

    def work() -> tuple[bytes, bool]:
        content = make()
        if packs and len(content) >= _WORTH_PACKING:
            return gzip.compress(content, 1, mtime=0), True
        return content, False

    try:
        content, is_packed = await asyncio.to_thread(work)
    except QueryError as error:
        raise Failure(400, str(error), "Correct the window.") from error
    headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if is_packed else {})
    return Response(content, headers=headers, media_type=_BINARY)


ROUTES: Final = (
    Route("/run/{run}/tile", _tile),
    Route("/run/{run}/frame", _frame),
    Route("/run/{run}/delta", _delta),
    Route("/run/{run}/area", _area),
    Route("/run/{run}/span", _span),
)
