"""The application: all routes over one library of runs, behind the gate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Router
from starlette.types import ASGIApp

from rollscope.errors import RollscopeError
from rollscope.server.access import Access
from rollscope.server.failures import answer_failure
from rollscope.server.gate import Gate
from rollscope.server.library import Library
from rollscope.server.routes import answers, events, exports, stack, static, timeline

__all__ = ["make_app"]


def make_app(library: Library, access: Access) -> ASGIApp:
    """Make the application.

    Args:
        library: The runs to show.
        access: Who may ask.
    """

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        library.hub.start()
        opener = asyncio.create_task(library.open_early())
        sweeper = asyncio.create_task(library.sweep())
        try:
            yield
        finally:
            for task in (opener, sweeper):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            library.hub.close()
            await library.close()

    api = (
        *answers.ROUTES,
        *timeline.ROUTES,
        *stack.ROUTES,
        *exports.ROUTES,
        *events.ROUTES,
    )
    app = Starlette(
        routes=[
            # A name is right or wrong; a redirect would repeat what was asked for.
            Mount("/api/v1", app=Router(list(api), redirect_slashes=False)),
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
    app.state.page, app.state.page_problem = static.load_page()
    return Gate(app, access)
