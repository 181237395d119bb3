"""The application: all routes over one library of runs, behind the gate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Router
from starlette.types import ASGIApp

from rollscope.collect.collector import Collector
from rollscope.collect.scraping import Scraper, ScrapeSettings
from rollscope.errors import RollscopeError
from rollscope.exposing.pushing import Pushed, Pusher
from rollscope.server.access import Access
from rollscope.server.exposer import Exposer
from rollscope.server.failures import answer_failure
from rollscope.server.gate import Gate
from rollscope.server.library import Library
from rollscope.server.monitors import Monitors
from rollscope.server.routes import (
    answers,
    events,
    exports,
    ingest,
    metrics,
    otlp,
    rlinsight,
    stack,
    static,
    targets,
    timeline,
    wiring,
    xtuner,
)

__all__ = ["make_app", "make_collector"]


def make_collector(library: Library) -> Collector:
    """Make what receives for the runs of a library."""
    only_run = library.only_run
    place = library.place if only_run is None else library.place.resolve().parent
    return Collector(place, only_run=only_run, when_run_made=library.look_again)


def make_app(
    library: Library,
    access: Access,
    collector: Collector | None = None,
    scrape: ScrapeSettings | None = None,
    monitors: Monitors | None = None,
    pushed: Pushed | None = None,
) -> ASGIApp:
    """Make the application.

    Args:
        library: The runs to show.
        access: Who may ask.
        collector: Keeps what is sent; one for the library if not given.
        scrape: Who is asked for metrics, beside those that are named later.
        monitors: Which monitoring programs stand beside it.
        pushed: Who is sent the metrics of all runs.
    """
    collector = collector or make_collector(library)
    scraper = Scraper(collector, scrape)
    exposer = Exposer(library)
    pusher = Pusher(exposer.look, pushed or Pushed(), exposer.failures)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        library.hub.start()
        opener = asyncio.create_task(library.open_early())
        sweeper = asyncio.create_task(library.sweep())
        tender = asyncio.create_task(collector.tend())
        asker = asyncio.create_task(scraper.run())
        sender = asyncio.create_task(pusher.run())
        try:
            yield
        finally:
            for task in (opener, sweeper, tender, asker, sender):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            library.hub.close()
            await pusher.close()
            await exposer.close()
            await scraper.close()
            await collector.close()
            await library.close()

    api = (
        *answers.ROUTES,
        *timeline.ROUTES,
        *stack.ROUTES,
        *exports.ROUTES,
        *events.ROUTES,
        *targets.ROUTES,
        *rlinsight.ROUTES,
        *wiring.ROUTES,
    )
    app = Starlette(
        routes=[
            # A name is right or wrong; a redirect would repeat what was asked for.
            Mount("/api/v1", app=Router(list(api), redirect_slashes=False)),
            *metrics.ROUTES,
            *ingest.ROUTES,
            *otlp.ROUTES,
            *xtuner.ROUTES,
            *static.ROUTES,
        ],
        lifespan=life,
        exception_handlers={
            HTTPException: answer_failure,
            RollscopeError: answer_failure,
            Exception: answer_failure,
        },
    )
    app.router.redirect_slashes = False
    app.state.library = library
    app.state.collector = collector
    app.state.scraper = scraper
    app.state.exposer = exposer
    app.state.access = access
    app.state.monitors = monitors or Monitors()
    app.state.page, app.state.page_problem = static.load_page()
    return Gate(app, access)
