"""The stream of events: how far each run has come, so that pages ask only when there is news."""

from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from rollscope.server.hub import Hub
from rollscope.server.library import Library
from rollscope.server.opened import OpenRun
from rollscope.server.progress import RunProgress
from rollscope.server.routes.context import given_parameters, library_of

__all__ = ["KEEP_ALIVE_S", "ROUTES"]

KEEP_ALIVE_S: Final = 15.0
_LIST_EVERY_S: Final = 2.0
"""How often a page that lists runs hears of new ones at the latest."""
_RETRY: Final = b"retry: 2000\n\n"
"""How long, in milliseconds, a browser waits before it comes back."""
_ALIVE: Final = b"event: alive\ndata: still here\n\n"
"""No comment, which a page would not hear: it tells a quiet run from a link that is dead."""


async def _events(request: Request) -> Response:
    library = library_of(request)
    name = given_parameters(request, ("run",)).get("run")
    seen = request.headers.get("last-event-id", "")
    run = None if name is None else await library.open(name)
    stream = _runs_stream(library) if run is None else _run_stream(library, run, seen)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


async def _progress(request: Request) -> Response:
    """Say once what the stream says, for pages that a proxy keeps the stream from."""
    run = await library_of(request).open(request.path_params["run"])
    if not run.is_current():
        await run.ask(lambda _: None)  # wakes the thread, which now looks for news
    body = msgspec.json.encode(run.progress)
    return Response(body, headers={"Cache-Control": "no-store"}, media_type="application/json")


async def _run_stream(library: Library, run: OpenRun, seen: str) -> AsyncIterator[bytes]:
    """Say where the run is, then whenever it comes further."""
    hub = library.hub
    listener = hub.join(run.name)
    run.watchers += 1
    try:
        yield _RETRY
        await run.ask(lambda _: None)  # wakes the thread, which now looks for news
        if run.progress is not None and str(run.progress.seq) != seen:
            yield _seq_event(run.progress)
        while not hub.is_closing:
            news = await listener.wait(KEEP_ALIVE_S)
            for progress in news:
                yield _seq_event(progress)
            if not news and not hub.is_closing:
                yield _ALIVE
    finally:
        run.watchers -= 1
        hub.leave(listener)


async def _runs_stream(library: Library) -> AsyncIterator[bytes]:
    """Say which runs there are, then whenever one is added or removed, or an open one goes on."""
    hub: Hub = library.hub
    listener = hub.join(None)
    known: list[str] | None = None
    quiet_s = 0.0
    try:
        yield _RETRY
        while not hub.is_closing:
            names = await library.names()
            if names != known:
                known, quiet_s = names, 0.0
                yield b"event: runs\ndata: " + msgspec.json.encode({"runs": names}) + b"\n\n"
            news = await listener.wait(_LIST_EVERY_S)
            for progress in news:
                yield _seq_event(progress)
            quiet_s = 0.0 if news else quiet_s + _LIST_EVERY_S
            if quiet_s >= KEEP_ALIVE_S:
                quiet_s = 0.0
                yield _ALIVE
    finally:
        hub.leave(listener)


def _seq_event(progress: RunProgress) -> bytes:
    data = msgspec.json.encode(progress)
    return b"event: seq\nid: %d\ndata: %s\n\n" % (progress.seq, data)


ROUTES: Final = (
    Route("/events", _events),
    Route("/run/{run}/progress", _progress),
)
