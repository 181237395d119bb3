"""The page itself: fixed names, always asked for anew, sent again only if they have changed."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.errors import MissingExtra
from rollscope.server.bodies import Body, body_response
from rollscope.server.failures import Failure
from rollscope.webui import INDEX, load_assets

__all__ = ["ROUTES", "load_page"]


def load_page() -> tuple[dict[str, Body], str]:
    """Give the files of the page, or why there are none: the API works without it."""
    try:
        assets = load_assets()
    except MissingExtra as error:
        return {}, str(error)
    page = {
        name: Body(asset.media_type, asset.body, asset.gzipped, asset.etag)
        for name, asset in assets.items()
    }
    return page, ""


async def _file(request: Request) -> Response:
    page: dict[str, Body] = request.app.state.page
    name = request.path_params.get("name", INDEX)
    body = page.get(name)
    if body is not None:
        return body_response(request, body)
    problem: str = request.app.state.page_problem
    if problem and name == INDEX:
        raise Failure(503, f"There is no page to show: {problem}.", "The API works without it.")
    raise Failure(404, "There is nothing at this address.", "The page lies at the root.")


ROUTES: Final = (Route("/", _file), Route("/{name}", _file))
